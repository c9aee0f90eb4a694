#if Crypto
import Larder

/// A stored value as a COSE_Encrypt0 message (RFC 9052, section 5.2) of the one form that ``EncryptedCodec`` writes.
///
/// In CBOR diagnostic notation, `16([<<{1: 3}>>, {4: h'…', 5: h'…'}, h'…'])`: the algorithm, the identifier of the key,
/// the nonce, and the encrypted value followed by the tag. Every length is definite and in its shortest form.
struct EncryptedValue {
  /// The size of the nonce of both algorithms, in bytes.
  static let nonceSize = 12

  /// The size of the tag of both algorithms, in bytes.
  static let tagSize = 16

  /// The maximum number of bytes that a message has in addition to the plain value.
  ///
  /// The longest prefix has 20 bytes.
  static let maximumOverhead = 20 + nonceSize + CBORHead.maximumSize + tagSize

  let algorithm: EncryptionAlgorithm
  let keyID: KeyRing.KeyID
  let nonce: UnsafeRawBufferPointer
  /// The encrypted value, followed by the tag.
  let content: UnsafeRawBufferPointer

  /// Returns the protected header as a byte string.
  static func protectedHeader(for algorithm: EncryptionAlgorithm) -> [UInt8] {
    switch algorithm {
    case .aesGCM: [0x43, 0xA1, 0x01, 0x03]
    case .chaChaPoly: [0x44, 0xA1, 0x01, 0x18, 0x18]
    }
  }

  /// Returns the bytes of a message before its nonce.
  static func prefix(algorithm: EncryptionAlgorithm, keyID: KeyRing.KeyID) -> [UInt8] {
    // Tag 16, an array of three, the protected header, and a map of the key identifier and the nonce.
    [0xD0, 0x83] + protectedHeader(for: algorithm) + [0xA2, 0x04, 0x48] + keyID.bytes + [0x05, 0x4C]
  }

  /// Reads a message.
  ///
  /// - Parameter bytes: The whole stored value. The result points into it.
  /// - Throws: ``EncryptedValueError`` if the bytes have any other form.
  init(_ bytes: UnsafeRawBufferPointer) throws(EncryptedValueError) {
    // The fourth byte of the protected header is 3 only for AES-GCM; for the other algorithm, it is 0x18.
    algorithm = bytes.count > 5 && bytes[5] == 0x18 ? .chaChaPoly : .aesGCM
    let keyIDOffset = algorithm == .aesGCM ? 9 : 10
    let nonceOffset = keyIDOffset + 8 + 2
    let headOffset = nonceOffset + EncryptedValue.nonceSize
    guard bytes.count > headOffset else { throw EncryptedValueError("the encrypted value is truncated") }
    keyID = KeyRing.KeyID(
      rawValue: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: keyIDOffset, as: UInt64.self)))
    guard EncryptedValue.hasPrefix(bytes, algorithm: algorithm, keyIDOffset: keyIDOffset) else {
      throw EncryptedValueError("the value is not an encrypted value")
    }
    var contentOffset = headOffset
    guard let size = CBORHead.read(CBORHead.byteString, in: bytes, at: &contentOffset), size >= EncryptedValue.tagSize,
      size == bytes.count - contentOffset
    else { throw EncryptedValueError("the encrypted value has the wrong length") }
    nonce = UnsafeRawBufferPointer(rebasing: bytes[nonceOffset..<headOffset])
    content = UnsafeRawBufferPointer(rebasing: bytes[contentOffset...])
  }

  /// Returns whether the bytes around the key identifier are those of ``prefix(algorithm:keyID:)``.
  private static func hasPrefix(
    _ bytes: UnsafeRawBufferPointer, algorithm: EncryptionAlgorithm, keyIDOffset: Int
  ) -> Bool {
    // Numbers of up to eight bytes, which are compared faster than arrays.
    let start: UInt64 = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
    let isStartRight =
      switch algorithm {
      case .aesGCM: start == 0xD083_43A1_0103_A204 && bytes[8] == 0x48
      case .chaChaPoly: start == 0xD083_44A1_0118_18A2 && bytes[8] == 0x04 && bytes[9] == 0x48
      }
    return isStartRight && bytes[keyIDOffset + 8] == 0x05 && bytes[keyIDOffset + 9] == 0x4C
  }
}

extension KeyRing.KeyID {
  /// Reads the identifier of the key that a stored value is encrypted with.
  ///
  /// The identifier itself is not authenticated, so use it only for reports.
  ///
  /// ```swift
  /// let id = try stored.withBytes { try KeyRing.KeyID(ofEncryptedValue: $0) }
  /// print(ring.keys.contains { $0.id == id })
  /// ```
  ///
  /// - Parameter bytes: The bytes that an ``EncryptedCodec`` has written.
  /// - Throws: ``EncryptedValueError`` if the bytes have another form.
  public init(ofEncryptedValue bytes: RawSpan) throws {
    self = try bytes.withUnsafeBytes { bytes throws(EncryptedValueError) in try EncryptedValue(bytes).keyID }
  }
}
#endif
