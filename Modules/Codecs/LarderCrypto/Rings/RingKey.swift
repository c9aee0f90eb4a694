#if Crypto
import Crypto
public import Foundation
import Larder
import Synchronization

/// A key of a ``KeyRing``, ready for use, with the number of values that it has encrypted.
final class RingKey: Sendable {
  /// The number of values with random nonces of 96 bits that one key may encrypt (NIST SP 800-38D, section 8.3).
  static let maximumSealCount: UInt64 = 1 << 32

  /// The size of a key, in bytes.
  static let size = 32

  let id: KeyRing.KeyID
  /// The time of creation, in seconds since 1 January 1970, UTC.
  let created: Int64
  let key: SymmetricKey

  /// The number of values that the key has encrypted since the ring was opened.
  let sealCount = Atomic<UInt64>(0)

  private let aesGCMPrefix: [UInt8]
  private let chaChaPolyPrefix: [UInt8]

  init(_ key: SymmetricKey, created: Int64) {
    let id = KeyRing.KeyID(of: key)
    self.id = id
    self.created = created
    self.key = key
    aesGCMPrefix = EncryptedValue.prefix(algorithm: .aesGCM, keyID: id)
    chaChaPolyPrefix = EncryptedValue.prefix(algorithm: .chaChaPoly, keyID: id)
  }

  /// Returns the bytes before the nonce of a value that is encrypted with this key.
  func prefix(for algorithm: EncryptionAlgorithm) -> [UInt8] {
    algorithm == .aesGCM ? aesGCMPrefix : chaChaPolyPrefix
  }

  /// Counts a value that is about to be encrypted.
  ///
  /// - Throws: ``KeyRingError`` with `full`.
  func countSeal() throws(KeyRingError) {
    guard sealCount.add(1, ordering: .relaxed).newValue <= RingKey.maximumSealCount else {
      throw KeyRingError(
        .full, message: "the key \(id) has encrypted 2^32 values, which is its limit; call rotate() on the key ring")
    }
  }
}

/// The keys of a ``KeyRing`` at one time.
final class RingSnapshot: Sendable {
  /// The keys, oldest first.
  let keys: [RingKey]
  /// The key that encrypts new values.
  let primary: RingKey
  /// The number of times that the ring at rest had been saved.
  let generation: UInt64

  init(keys: [RingKey], primary: RingKey, generation: UInt64) {
    self.keys = keys
    self.primary = primary
    self.generation = generation
  }

  /// Checks that a ring at rest may replace this one.
  ///
  /// Keys may be missing in a newer generation that has the primary key of this ring: another process has removed them.
  /// In any other ring, such as an older copy, they are missing by mistake.
  ///
  /// - Throws: ``KeyRingError`` with `changed`.
  func checkReplacement(_ document: RingDocument) throws(KeyRingError) {
    let lost = keys.filter { !document.has($0.id) }
    guard !lost.isEmpty else { return }
    guard document.generation <= generation || !document.has(primary.id) else { return }
    let values = lost.reduce(0) { $0 + $1.sealCount.load(ordering: .relaxed) }
    let isOther = lost.count == keys.count
    throw KeyRingError(
      .changed,
      message: "the key source has \(isOther ? "another key ring" : "an older copy of the key ring"), without the key"
        + "\(lost.count == 1 ? "" : "s") \(lost.map(\.id.description).joined(separator: ", ")), under which this "
        + "process has encrypted \(values) values; the keys are kept in memory. Call "
        + (isOther ? "" : "save() to put them back, or ") + "save(to:) to save them in another place")
  }

  /// Returns the key with an identifier, or `nil` if there isn't one.
  subscript(id: KeyRing.KeyID) -> RingKey? {
    // Most values are encrypted with the primary key, and a ring has few others.
    primary.id == id ? primary : keys.first { $0.id == id }
  }
}

extension KeyRing {
  /// The identifier of a key: the first eight bytes of its JWK thumbprint (RFC 7638) with SHA-256.
  ///
  /// It identifies the key without revealing anything about it.
  public struct KeyID: Sendable, Hashable {
    /// The identifier as a number; the first byte is the most significant one.
    let rawValue: UInt64

    init(rawValue: UInt64) {
      self.rawValue = rawValue
    }

    init(of key: SymmetricKey) {
      var json = Array("{\"k\":\"".utf8)
      key.withUnsafeBytes { json.append(contentsOf: Base64URL.text(of: $0).utf8) }
      json.append(contentsOf: "\",\"kty\":\"oct\"}".utf8)
      rawValue = Crypto.SHA256.hash(data: json).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The eight bytes.
    public var bytes: [UInt8] { rawValue.bigEndianBytes }
  }

  /// A description of a key, without the key itself.
  public struct Key: Sendable, Hashable {
    /// The identifier.
    public let id: KeyID

    /// The time when the key was created, in whole seconds.
    public let created: Date

    /// A Boolean value that indicates whether the key encrypts new values.
    public let isPrimary: Bool

    /// The number of values that this ring has encrypted with the key since it was opened.
    ///
    /// Other processes count their own values, and the count starts at 0 each time.
    public let sealCount: UInt64
  }
}

extension KeyRing.KeyID: LosslessStringConvertible {
  /// Creates an identifier from its text.
  ///
  /// - Parameter description: 16 hexadecimal digits in lower case. For any other text, the result is `nil`.
  public init?(_ description: String) {
    guard description.utf8.count == 16, let number = UInt64(description, radix: 16) else { return nil }
    self.init(rawValue: number)
    guard self.description == description else { return nil }
  }

  /// The identifier as 16 hexadecimal digits in lower case, the `kid` of the key in a ring at rest.
  public var description: String {
    let digits = String(rawValue, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
#endif
