/// Puts a checksum behind the bytes of another codec, and finds damage by it.
///
/// ```swift
/// let store = try await LMDBStore<User>(path: "users", codec: .cbor(User.self).checksummed())
/// ```
///
/// Behind the bytes of a value stand the inverted bits of their CRC-32C (RFC 3720, appendix B.4), four bytes with the
/// lowest first. Inverted, since zeros have to be damage, however many there are: what was never written reads as zeros,
/// and the CRC-32C of no bytes is zero. It finds every change of a single bit and every run of wrong bits that is no longer
/// than 32, and of other damage all but one in four thousand million. It is no protection from who changes a value on
/// purpose.
///
/// A store over it reports a damaged value as ``StoreError/Code/corrupted``, with ``ChecksumError`` as the underlying
/// error. Keys are not covered: a store whose files have no checksums of their own does not find those that are damaged.
public struct ChecksummedCodec<Base: Codec>: Codec {
  /// How many bytes a checksum takes.
  private static var checksumSize: Int { MemoryLayout<UInt32>.size }

  /// The codec that makes the bytes of a value.
  public let base: Base

  /// The name of the format: that of the base, with `+crc32c` behind it.
  public let name: String

  /// Wraps a codec.
  ///
  /// - Parameter base: Makes the bytes of a value.
  public init(_ base: Base) {
    self.base = base
    name = "\(base.name)+crc32c"
  }

  /// ``CodecFormat/binary``.
  public var format: CodecFormat { .binary }

  /// Appends the bytes of a value, and their checksum.
  ///
  /// - Throws: What the base throws.
  public func encode(_ value: Base.Value, into bytes: inout [UInt8]) throws {
    let start = bytes.count
    try base.encode(value, into: &bytes)
    let checksum = ~CRC32C.checksum(of: bytes[start...])
    withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Checks the bytes of a value, and makes the value of them.
  ///
  /// - Throws: ``ChecksumError`` where they are not what was encoded; what the base throws.
  public func decode(_ bytes: RawSpan) throws -> Base.Value {
    let size = bytes.byteCount - Self.checksumSize
    guard size >= 0 else { throw ChecksumError(byteCount: bytes.byteCount) }
    let isSound = bytes.withUnsafeBytes { buffer in
      let stored = UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: size, as: UInt32.self))
      return ~CRC32C.checksum(of: buffer.prefix(size)) == stored
    }
    guard isSound else { throw ChecksumError(byteCount: bytes.byteCount) }
    return try base.decode(bytes.extracting(first: size))
  }
}

extension Codec {
  /// This codec with a checksum behind each value, by which damage is found; see ``ChecksummedCodec``.
  public func checksummed() -> ChecksummedCodec<Self> {
    ChecksummedCodec(self)
  }
}
