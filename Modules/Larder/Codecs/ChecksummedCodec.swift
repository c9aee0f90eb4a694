/// A codec that appends a checksum to the bytes of another codec in order to detect damage.
///
/// ```swift
/// let store = try await LMDBStore<User>(path: "users", codec: .cbor(User.self).checksummed())
/// ```
///
/// The checksum is the bitwise complement of the CRC-32C of the bytes (RFC 3720, appendix B.4), in four bytes, the
/// least significant one first. The complement ensures that any number of zeros counts as damage. Otherwise, a part of
/// a file that was never written would be valid, because it reads as zeros and the CRC-32C of no bytes is zero.
///
/// The checksum detects every change of a single bit and every burst of at most 32 wrong bits. Other damage stays
/// undetected with a probability of about one in four billion. The checksum does not protect against deliberate
/// changes.
///
/// A store reports a damaged value as ``StoreError/Code/corrupted``, with ``ChecksumError`` as the underlying error.
/// Keys are not covered, so a store whose files have no checksums of their own does not detect damaged keys.
public struct ChecksummedCodec<Base: Codec>: Codec {
  /// The size of a checksum, in bytes.
  private static var checksumSize: Int { MemoryLayout<UInt32>.size }

  /// The codec that encodes the values.
  public let base: Base

  /// The name of the format: the name of the base followed by `+crc32c`.
  public let name: String

  /// Creates a codec with checksums.
  ///
  /// - Parameter base: The codec that encodes the values.
  public init(_ base: Base) {
    self.base = base
    name = base.name + Self.nameSuffix
  }

  /// ``CodecFormat/binary``.
  public var format: CodecFormat { .binary }

  /// The names that the base adopts, followed by `+crc32c`.
  public var adoptedNames: [String] { base.adoptedNames.map { $0 + Self.nameSuffix } }

  /// The newest name of the base, followed by `+crc32c`, if the base still writes an older format.
  public var newestName: String? { base.newestName.map { $0 + Self.nameSuffix } }

  /// A Boolean value that indicates whether the base encrypts the values.
  public var encryptsValues: Bool { base.encryptsValues }

  private static var nameSuffix: String { "+crc32c" }

  /// Appends the bytes of a value and their checksum.
  ///
  /// - Throws: The error that the base throws.
  public func encode(_ value: Base.Value, into bytes: inout [UInt8], context: ValueContext) throws {
    let start = bytes.count
    try base.encode(value, into: &bytes, context: context.forBase { $0.dropLast(Self.checksumSize) })
    let checksum = ~CRC32C.checksum(of: bytes[start...])
    withUnsafeBytes(of: checksum.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Verifies the checksum of the bytes of a value, and returns the value.
  ///
  /// - Throws: ``ChecksumError`` if the checksum is wrong or missing; the error that the base throws.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Base.Value {
    let size = bytes.byteCount - Self.checksumSize
    guard size >= 0 else { throw ChecksumError(byteCount: bytes.byteCount) }
    let isSound = bytes.withUnsafeBytes { buffer in
      let stored = UInt32(littleEndian: buffer.loadUnaligned(fromByteOffset: size, as: UInt32.self))
      return ~CRC32C.checksum(of: buffer.prefix(size)) == stored
    }
    guard isSound else { throw ChecksumError(byteCount: bytes.byteCount) }
    return try base.decode(bytes.extracting(first: size), context: context)
  }
}

extension Codec {
  /// Returns this codec with a checksum after each value; see ``ChecksummedCodec``.
  ///
  /// ```swift
  /// let careful = try await LMDBStore<Customer>(
  ///   path: folder + "/careful", codec: .cbor(Customer.self).checksummed())
  /// ```
  public func checksummed() -> ChecksummedCodec<Self> {
    ChecksummedCodec(self)
  }
}

extension AuthenticatedCodec {
  /// Returns this codec with a checksum after each value, which it does not need.
  @available(
    *, deprecated,
    message: "an authenticated codec detects every change itself; omit checksummed(), or call it before encrypted(…)"
  )
  public func checksummed() -> ChecksummedCodec<Self> {
    ChecksummedCodec(self)
  }
}

/// An error that indicates that the checksum of a value is wrong or missing, because its bytes are damaged.
public struct ChecksumError: RedactedError, Hashable {
  /// The number of stored bytes, including the checksum.
  public let byteCount: Int

  /// Creates an error.
  ///
  /// - Parameter byteCount: The number of stored bytes, including the checksum.
  public init(byteCount: Int) {
    self.byteCount = byteCount
  }
}

extension ChecksumError: CustomStringConvertible {
  /// The error as text for people, without any byte of the value.
  public var description: String { "the checksum does not match the \(byteCount) bytes" }
}
