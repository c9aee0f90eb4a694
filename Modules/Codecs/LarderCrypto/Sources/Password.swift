#if Crypto
internal import Crypto
import Foundation

/// A password that does not appear in descriptions, mirrors and errors.
///
/// Its memory is overwritten when the last copy is released. That does not apply to the text or the bytes that it was
/// created from.
public struct Password: Sendable {
  /// The bytes, in a symmetric key because that wipes its memory.
  private let secret: SymmetricKey

  /// Creates a password from text, whose UTF-8 bytes are used as they are.
  ///
  /// An accented letter can be composed or decomposed, and these are different passwords. Keyboards type composed letters.
  ///
  /// - Parameter text: The text, including any whitespace.
  /// - Throws: ``KeyRingError`` with `invalidArgument` if the text is empty.
  public init(_ text: String) throws(KeyRingError) {
    try self.init(bytes: Array(text.utf8))
  }

  /// Creates a password from bytes.
  ///
  /// - Parameter bytes: The bytes.
  /// - Throws: ``KeyRingError`` with `invalidArgument` if there are no bytes.
  public init(bytes: [UInt8]) throws(KeyRingError) {
    guard !bytes.isEmpty else {
      throw KeyRingError(.invalidArgument, message: "the password must not be empty")
    }
    secret = SymmetricKey(data: bytes)
  }

  /// Calls a closure with the bytes.
  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try secret.withUnsafeBytes(body)
  }
}

extension Password: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// `<password>`.
  public var description: String { "<password>" }

  /// `<password>`.
  public var debugDescription: String { description }

  /// A mirror without the bytes.
  public var customMirror: Mirror { Mirror(self, children: []) }
}
#endif
