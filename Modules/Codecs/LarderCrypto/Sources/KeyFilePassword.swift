#if Crypto
import Crypto
import Foundation

/// A password that does not appear in descriptions, mirrors and errors.
///
/// Text is prepared with the profile OpaqueString of RFC 8265, so a password that is typed on another keyboard or
/// system is the same one: it is normalized (NFC), and a space of any kind becomes an ASCII space. A file is written
/// with the prepared password. If the prepared password does not open a file, the password as it was given is tried,
/// because other programs may have written the file with it.
///
/// Its memory is overwritten when the last copy is released. That does not apply to the text or the bytes that it was
/// created from.
///
/// ```swift
/// try await ring.save(to: .passwordFile(usbStick + "/recovery.jwe", password: KeyFilePassword(secret)))
/// ```
public struct KeyFilePassword: Sendable {
  /// The forms of the password, in symmetric keys because these wipe their memory.
  ///
  /// The first one encrypts. All of them are tried to decrypt.
  private let forms: [SymmetricKey]

  /// Creates a password from text.
  ///
  /// - Parameter text: The text, including any whitespace.
  /// - Throws: ``KeyRingError`` with `invalidArgument` if the text is empty.
  public init(_ text: String) throws(KeyRingError) {
    try self.init(forms: [KeyFilePassword.prepared(text), Array(text.utf8)])
  }

  /// Creates a password from bytes, which are used as they are.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: ``KeyRingError`` with `invalidArgument` if there are no bytes.
  public init(bytes: [UInt8]) throws(KeyRingError) {
    try self.init(forms: [bytes])
  }

  /// Creates a password from the content of a file, such as a secret that a container mounts.
  ///
  /// A line feed at the end, or a carriage return with a line feed, is not part of the password. Text in UTF-8 is
  /// prepared like that of ``init(_:)``; other bytes are used as they are. A carriage return before the line feed is
  /// tried as a part of the password too.
  ///
  /// - Parameter content: The bytes of the file.
  /// - Throws: ``KeyRingError`` with `invalidArgument` if there is no password.
  public init(fileContent content: [UInt8]) throws(KeyRingError) {
    var line = content[...]
    if line.last == UInt8(ascii: "\n") { line.removeLast() }
    var bare = line
    if line.count < content.count, bare.last == UInt8(ascii: "\r") { bare.removeLast() }
    let prepared = String(validating: bare, as: UTF8.self).map(KeyFilePassword.prepared)
    // A file with nothing but a line ending has no password.
    try self.init(forms: bare.isEmpty ? [[]] : [prepared ?? Array(bare), Array(bare), Array(line)])
  }

  private init(forms: [[UInt8]]) throws(KeyRingError) {
    guard forms.allSatisfy({ !$0.isEmpty }) else {
      throw KeyRingError(.invalidArgument, message: "the password must not be empty")
    }
    var unique: [[UInt8]] = []
    for form in forms where !unique.contains(form) { unique.append(form) }
    self.forms = unique.map { SymmetricKey(data: $0) }
  }

  /// Returns the UTF-8 bytes of a text after the profile OpaqueString (RFC 8265, section 4.2).
  ///
  /// Characters that the profile disallows are kept, because nothing is gained by locking their user out.
  private static func prepared(_ text: String) -> [UInt8] {
    var spaced = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      spaced.append(scalar.properties.generalCategory == .spaceSeparator ? " " : scalar)
    }
    return Array(String(spaced).precomposedStringWithCanonicalMapping.utf8)
  }

  /// Calls a closure with the bytes of the form that encrypts.
  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try forms[0].withUnsafeBytes(body)
  }

  /// The password in each of its forms, the one that encrypts first.
  var variants: [KeyFilePassword] { forms.map { KeyFilePassword(only: $0) } }

  private init(only form: SymmetricKey) { forms = [form] }
}

extension KeyFilePassword: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// `<password>`.
  public var description: String { "<password>" }

  /// `<password>`.
  public var debugDescription: String { description }

  /// A mirror without the bytes.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
#endif
