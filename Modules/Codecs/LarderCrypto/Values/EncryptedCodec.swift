#if Crypto
import Foundation
public import Larder

/// A codec that encrypts each value that another codec encodes, so a store of any kind holds encrypted values.
///
/// ```swift
/// let ring = try await KeyRing.open(in: .file("/var/lib/app/keys.json"))
/// let users = try await LMDBStore<User>(
///   path: "users", codec: .cbor(User.self).encrypted(with: ring, purpose: "users"))
/// ```
///
/// A stored value is a COSE_Encrypt0 message (RFC 9052), 49 bytes longer than the plain value if that has 8 to 239
/// bytes. The key of the entry and the purpose are authenticated with it. A value that was changed, cut, or copied
/// from another entry or purpose is reported as `StoreError.Code.corrupted`, with ``EncryptedValueError`` as the
/// underlying error.
///
/// The message names the key that it is encrypted with. If the ring does not have that key, reading throws
/// `StoreError.Code.keyUnavailable`, and the value can be read once the ring has the key. New values are always
/// encrypted with the primary key of the ring. Values under older keys stay readable as long as the ring has these
/// keys.
///
/// Call ``Larder/Codec/encrypted(with:purpose:algorithm:)`` last, after `.versioned(…)`, `.expiring()` and
/// `.compressed()`, so the deadline is authenticated and the value is compressed before it is encrypted.
///
/// Encrypting twice yields different bytes, because each value gets a random nonce. In an `update`, a value that stays
/// equal keeps its stored bytes if they are encrypted with the primary key and the algorithm of this codec.
public struct EncryptedCodec<Base: Codec>: AuthenticatedCodec {
  /// The codec that encodes a value before it is encrypted.
  public let base: Base

  /// The keys.
  public let keyRing: KeyRing

  /// A name for the kind of values.
  ///
  /// It is authenticated with each value.
  public let purpose: String

  /// The algorithm that encrypts new values.
  public let algorithm: EncryptionAlgorithm

  /// The name of the format: the name of the base codec, followed by ``nameSuffix``.
  public let name: String

  private let sealer: ValueSealer

  /// Creates a codec that encrypts the output of another codec.
  ///
  /// - Parameters:
  ///   - base: The codec that encodes values before they are encrypted.
  ///   - keyRing: The keys.
  ///   - purpose: A name for the kind of values, such as `users`. Use another purpose for each store that shares a ring,
  ///     and do not change it, because values of another purpose cannot be read.
  ///   - algorithm: The algorithm that encrypts new values. Defaults to ``EncryptionAlgorithm/aesGCM``.
  public init(_ base: Base, keyRing: KeyRing, purpose: String, algorithm: EncryptionAlgorithm = .aesGCM) {
    self.base = base
    self.keyRing = keyRing
    self.purpose = purpose
    self.algorithm = algorithm
    name = base.name + EncryptedCodec.nameSuffix
    sealer = ValueSealer(purpose: purpose)
  }

  /// The suffix of the names of encrypted formats: `+cose`.
  public static var nameSuffix: String { "+cose" }

  /// `CodecFormat.cbor`.
  public var format: CodecFormat { .cbor }

  /// The names that the base codec adopts, followed by ``nameSuffix``.
  public var adoptedNames: [String] { base.adoptedNames.map { $0 + EncryptedCodec.nameSuffix } }

  /// The newest name of the base, followed by ``nameSuffix``, if the base still writes an older format.
  public var newestName: String? { base.newestName.map { $0 + EncryptedCodec.nameSuffix } }

  /// `true`.
  public var encryptsValues: Bool { true }

  /// Appends the encrypted bytes of a value, or the stored bytes if they encrypt an equal value.
  ///
  /// - Throws: Any error of the base codec; ``KeyRingError`` with `full` if the primary key has encrypted 2^32 values.
  public func encode(_ value: Base.Value, into bytes: inout [UInt8], context: ValueContext) throws {
    let start = bytes.count
    let plainStart = start + EncryptedValue.maximumOverhead
    let keys = keyRing.snapshot
    bytes.append(contentsOf: repeatElement(0, count: EncryptedValue.maximumOverhead))
    var inner = context
    inner.stored = nil
    guard let stored = context.stored, let previous = sealer.openStored(stored, key: context.key, keys: keys) else {
      try base.encode(value, into: &bytes, context: inner)
      return try sealer.seal(&bytes, from: start, key: context.key, keys: keys, algorithm: algorithm)
    }
    inner.stored = ArraySlice(previous.plain)
    try base.encode(value, into: &bytes, context: inner)
    if previous.ringKey === keys.primary, previous.algorithm == algorithm, bytes[plainStart...] == inner.stored {
      bytes.replaceSubrange(start..., with: stored)
    } else {
      try sealer.seal(&bytes, from: start, key: context.key, keys: keys, algorithm: algorithm)
    }
  }

  /// Returns the value that the bytes encode, after decrypting them.
  ///
  /// - Throws: ``EncryptedValueError`` if the bytes were not written by this codec, were changed, or belong to another
  ///   entry or purpose; ``KeyRingError`` with `unavailable` if the ring does not have the key; any error of the base
  ///   codec.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Base.Value {
    let opened = try bytes.withUnsafeBytes { try sealer.open($0, key: context.key, keys: keyRing.snapshot) }
    return try opened.plain.withUnsafeBytes { try base.decode($0.bytes, context: context) }
  }
}

extension Codec {
  /// Returns this codec with encrypted values; see ``EncryptedCodec``.
  ///
  /// ```swift
  /// let source = FileKeySource(path: keyFolder + "/keys.json")
  /// let ring = try await KeyRing.open(in: source, createsIfMissing: isFirstStart)
  /// let users = try await LMDBStore<User>(
  ///   path: folder + "/users", codec: .cbor(User.self).encrypted(with: ring, purpose: "users"))
  /// ```
  ///
  /// - Parameters:
  ///   - keyRing: The keys.
  ///   - purpose: A name for the kind of values, such as `users`. Use another purpose for each store that shares a ring,
  ///     and do not change it, because values of another purpose cannot be read.
  ///   - algorithm: The algorithm that encrypts new values. Defaults to ``EncryptionAlgorithm/aesGCM``. Values of either
  ///     algorithm can be read, so it can be changed at any time.
  public func encrypted(
    with keyRing: KeyRing, purpose: String, algorithm: EncryptionAlgorithm = .aesGCM
  ) -> EncryptedCodec<Self> {
    EncryptedCodec(self, keyRing: keyRing, purpose: purpose, algorithm: algorithm)
  }
}

/// An algorithm for authenticated encryption with a key of 256 bits.
public enum EncryptionAlgorithm: Sendable, Hashable, CaseIterable {
  /// AES-256 in Galois/Counter Mode (NIST SP 800-38D), COSE algorithm 3, which most processors accelerate.
  case aesGCM
  /// ChaCha20 and Poly1305 (RFC 8439), COSE algorithm 24.
  ///
  /// It is faster on processors without instructions for AES. A value takes one byte more.
  case chaChaPoly
}

/// An error that reports bytes that ``EncryptedCodec`` did not write for this entry and purpose.
public struct EncryptedValueError: RedactedError, StoreErrorConvertible, Hashable {
  /// A text for people that says what is wrong, without any part of the value.
  public let message: String

  /// `corrupted`.
  public var storeErrorCode: StoreError.Code { .corrupted }

  /// Creates an error about a stored value.
  init(_ message: String) {
    self.message = message
  }
}

extension EncryptedValueError: CustomStringConvertible {
  /// The message.
  public var description: String { message }
}
#endif
