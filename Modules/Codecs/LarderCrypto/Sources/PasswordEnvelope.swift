#if Crypto
import Crypto
import CryptoExtras
import Foundation
import Larder

/// Bytes encrypted with a password: a JSON Web Encryption (RFC 7516) in compact serialization, with the algorithms
/// PBES2-HS512+A256KW (RFC 7518, section 4.8) and A256GCM.
///
/// ```
/// header.encrypted key.nonce.ciphertext.tag
/// {"alg":"PBES2-HS512+A256KW","enc":"A256GCM","larder-crc32c":"8d3f2a10","p2c":600000,"p2s":"…"}
/// ```
///
/// A wrong password and a damaged salt, count or encrypted key would have the same effect: the key cannot be unwrapped.
/// `larder-crc32c` distinguishes them. It is the CRC-32C of the text `count.salt.encrypted key` in eight hexadecimal
/// digits. Other programs ignore it, and theirs need not write it. The tag authenticates everything else.
struct PasswordEnvelope {
  /// The accepted counts of iterations.
  ///
  /// A larger count only wastes time, and a smaller one is no protection.
  static let acceptedIterations = 1_000...10_000_000

  private static let algorithm = "PBES2-HS512+A256KW"
  private static let encryption = "A256GCM"
  private static let checksumMember = "larder-crc32c"
  private static let wrappedKeySize = 40
  private static let nonceSize = 12
  private static let tagSize = 16

  // MARK: Sealing

  /// Encrypts bytes with a new random salt and a new random key.
  ///
  /// Deriving the key takes about 0.5 s for 600,000 iterations.
  ///
  /// - Parameters:
  ///   - content: The bytes.
  ///   - password: The password.
  ///   - iterations: The number of iterations that the key is derived with.
  /// - Throws: An error of Crypto.
  static func seal(_ content: [UInt8], with password: KeyFilePassword, iterations: Int) throws -> [UInt8] {
    let salt = SymmetricKey(size: .bits128).withUnsafeBytes { [UInt8]($0) }
    let key = SymmetricKey(size: .bits256)
    let wrappedKey = try AES.KeyWrap.wrap(key, using: derivedKey(password, salt: salt, iterations: iterations))
    let (saltText, wrappedText) = (text(of: salt), text(of: wrappedKey))
    let header = text(
      of: Array(
        """
        {"alg":"\(algorithm)","enc":"\(encryption)",\
        "\(checksumMember)":"\(checksum(iterations: iterations, salt: saltText, wrappedKey: wrappedText))",\
        "p2c":\(iterations),"p2s":"\(saltText)"}
        """.utf8))
    let box = try AES.GCM.seal(content, using: key, authenticating: Array(header.utf8))
    let parts = [
      header, wrappedText, text(of: Array(box.nonce)), text(of: box.ciphertext),
      text(of: box.tag),
    ]
    return Array(parts.joined(separator: ".").utf8)
  }

  private static func text(of bytes: some Collection<UInt8>) -> String {
    Array(bytes).withUnsafeBytes { Base64URL.text(of: $0) }
  }

  private static func derivedKey(_ password: KeyFilePassword, salt: [UInt8], iterations: Int) throws -> SymmetricKey {
    try password.withUnsafeBytes {
      try KDF.Insecure.PBKDF2.deriveKey(
        from: $0, salt: Array(algorithm.utf8) + [0] + salt, using: .sha512, outputByteCount: 32,
        unsafeUncheckedRounds: iterations)
    }
  }

  private static func checksum(iterations: Int, salt: String, wrappedKey: String) -> String {
    let checksum = CRC32C.checksum(of: "\(iterations).\(salt).\(wrappedKey)".utf8)
    return Hexadecimal.text(of: checksum)
  }

  // MARK: Opening

  /// Decrypts bytes.
  ///
  /// - Parameters:
  ///   - bytes: The envelope.
  ///   - password: The password.
  /// - Throws: ``KeyRingError``: `wrongPassword`; `corrupted` if the envelope is damaged, has other algorithms, or a
  ///   count of iterations outside ``acceptedIterations``.
  static func open(_ bytes: [UInt8], with password: KeyFilePassword) throws -> [UInt8] {
    let envelope = try PasswordEnvelope(bytes)
    let key = try envelope.key(with: password)
    do {
      let box = try AES.GCM.SealedBox(
        nonce: AES.GCM.Nonce(data: envelope.nonce), ciphertext: envelope.ciphertext, tag: envelope.tag)
      return Array(try AES.GCM.open(box, using: key, authenticating: envelope.header))
    } catch {
      throw damage("the content was changed; restore the file from a backup", error)
    }
  }

  /// Unwraps the key of the content, with the first form of the password that does.
  ///
  /// - Throws: ``KeyRingError`` with `wrongPassword`.
  private func key(with password: KeyFilePassword) throws -> SymmetricKey {
    var failure: (any Error)?
    for form in password.variants {
      let derived = try PasswordEnvelope.derivedKey(form, salt: salt, iterations: iterations)
      do {
        return try AES.KeyWrap.unwrap(wrappedKey, using: derived)
      } catch {
        failure = error
      }
    }
    throw KeyRingError(
      .wrongPassword,
      message: isChecked ? "the password is wrong" : "the password is wrong, or the encrypted key is damaged",
      underlying: failure)
  }

  /// The first part as it is in the file, which the tag authenticates.
  private let header: [UInt8]
  private let iterations: Int
  private let salt: [UInt8]
  private let wrappedKey: [UInt8]
  private let nonce: [UInt8]
  private let ciphertext: [UInt8]
  private let tag: [UInt8]
  /// A Boolean value that indicates whether a checksum has shown that the salt, the count and the encrypted key are not
  /// damaged.
  private let isChecked: Bool

  /// Splits an envelope into its parts and checks all that can be checked without the password.
  private init(_ bytes: [UInt8]) throws(KeyRingError) {
    // Editors and shells append a line feed.
    let end = bytes.last == UInt8(ascii: "\n") ? bytes.count - 1 : bytes.count
    let texts = bytes[..<end].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard texts.count == 5 else {
      throw PasswordEnvelope.damage("it must have five parts, with a period between them (RFC 7516, section 7.1)")
    }
    var parts: [[UInt8]] = []
    for text in texts {
      guard let part = Base64URL.bytes(of: text) else { throw PasswordEnvelope.damage("a part is not base64url") }
      parts.append(part)
    }
    header = Array(texts[0].utf8)
    wrappedKey = parts[1]
    nonce = parts[2]
    ciphertext = parts[3]
    tag = parts[4]
    guard wrappedKey.count == Self.wrappedKeySize, nonce.count == Self.nonceSize, tag.count == Self.tagSize else {
      throw PasswordEnvelope.damage("the encrypted key, the nonce or the tag has another length than A256GCM requires")
    }
    let members = try PasswordEnvelope.members(of: parts[0])
    guard members["alg"]?.text == Self.algorithm, members["enc"]?.text == Self.encryption else {
      throw PasswordEnvelope.damage("its algorithms must be \(Self.algorithm) and \(Self.encryption)")
    }
    // RFC 7516 requires refusing the extensions that `crit` lists. `zip` declares compressed content.
    for name in ["crit", "zip"] where members[name] != nil {
      throw PasswordEnvelope.damage("the header parameter \(name) is not supported")
    }
    guard let count = members["p2c"].flatMap({ Int($0.json.description) }),
      Self.acceptedIterations ~= count
    else {
      throw PasswordEnvelope.damage(
        "the count of iterations (p2c) must be from \(Self.acceptedIterations.lowerBound) to "
          + "\(Self.acceptedIterations.upperBound)")
    }
    guard let saltText = members["p2s"]?.text, let salt = Base64URL.bytes(of: saltText),
      8...1024 ~= salt.count
    else { throw PasswordEnvelope.damage("the salt (p2s) must have from 8 to 1,024 bytes") }
    iterations = count
    self.salt = salt
    let checksum = PasswordEnvelope.checksum(
      iterations: count, salt: saltText, wrappedKey: texts[1])
    isChecked = members[Self.checksumMember] != nil
    guard !isChecked || members[Self.checksumMember]?.text == checksum else {
      throw PasswordEnvelope.damage("the checksum does not match; restore the file from a backup")
    }
  }

  /// Returns the header parameters, whose names must be unique (RFC 7516, section 4).
  private static func members(
    of header: [UInt8]
  ) throws(KeyRingError) -> [String: (json: JSONText, text: String?)] {
    var result: [String: (json: JSONText, text: String?)] = [:]
    do {
      for member in try JSONText(header).members() ?? [] {
        let text = try member.value.string()
        guard result.updateValue((member.value, text), forKey: member.name) == nil else {
          throw damage("a header parameter occurs twice")
        }
      }
    } catch let error as KeyRingError {
      throw error
    } catch {
      throw damage("the header is not JSON", error)
    }
    return result
  }

  private static func damage(_ message: String, _ underlying: (any Error)? = nil) -> KeyRingError {
    KeyRingError(.corrupted, message: "invalid password file: \(message)", underlying: underlying)
  }
}
#endif
