#if Compression
public import Larder

/// Compresses the bytes of another codec, value by value, so that a store with any codec takes less room.
///
/// ```swift
/// let users = try await LMDBStore<User>(path: "users", codec: .cbor().compressed())
/// ```
///
/// A value begins with a byte that says what follows.
///
/// - 0: the bytes of the other codec, as they are. So are values below the threshold, and those that would not shrink.
/// - 1: a compressed value: how many bytes compression has saved, as an unsigned LEB128 number (DWARF 5, section 7.6), at
///   most 10 bytes; the CRC-32 of the value (RFC 1952, section 8), 4 bytes with the lowest first; and the value as raw
///   deflate (RFC 1951).
/// - 2: as 1, compressed with a preset dictionary (RFC 1950, section 2.2). The identifier of the dictionary, 2 bytes with
///   the lower one first, stands before the rest; it is the lower half of the dictionary's CRC-32. The checksum is that of
///   the dictionary and the value behind it, so that another dictionary of the same identifier gives no wrong value.
///
/// A zlib stream as RFC 1950 has it says the same in 5 bytes more, or 6 without a dictionary, which records of 150 bytes
/// that shrink to 40 would feel; it does not say how long the value is, either. That length is known before anything is
/// decompressed, more is never written, and one that deflate cannot reach with the bytes that are there is refused
/// before memory is taken: what a hostile value can cost is 1,032 times its size.
///
/// Damage to a compressed value is found by its checksum. What is stored as it is has none; put
/// ``Larder/Codec/checksummed()`` around the codec to have every value covered.
///
/// A codec keeps the memory that zlib works in, for as many values at once as the machine has processors, each made when
/// it is first needed: up to 270 KB to compress, twice that with a dictionary, and 40 KB to decompress. Copies of a codec
/// share it.
public struct CompressedCodec<Base: Codec>: Codec {
  /// The codec that makes the bytes of a value.
  public let base: Base

  /// The name of the format: that of the base, with ``nameSuffix`` behind it.
  public let name: String

  /// The dictionaries: the current one compresses, all of them decompress.
  public var dictionaries: CompressionDictionaries { streams.dictionaries }

  /// How many bytes a value must have to be compressed.
  public let threshold: Int

  private let streams: CompressionStreams

  /// Wraps a codec.
  ///
  /// - Parameters:
  ///   - base: Makes the bytes of a value.
  ///   - level: How much work is spent: from 1, the fastest, to 9, the smallest; what is outside counts as the nearest.
  ///   - dictionaries: The dictionaries: the current one compresses, all of them decompress.
  ///   - threshold: How many bytes a value must have to be compressed; `nil` for 512 without a current dictionary, since
  ///     smaller values hardly shrink, and for 48 with one.
  public init(
    _ base: Base, level: Int = 6, dictionaries: CompressionDictionaries = CompressionDictionaries(),
    threshold: Int? = nil
  ) {
    self.base = base
    self.threshold = threshold ?? (dictionaries.current == nil ? 512 : 48)
    name = base.name + CompressedCodec.nameSuffix
    streams = CompressionStreams(level: min(max(level, 1), 9), dictionaries: dictionaries)
  }

  /// What the names of such formats end in: `+deflate`.
  public static var nameSuffix: String { "+deflate" }

  /// ``CodecFormat/binary``.
  public var format: CodecFormat { .binary }

  /// Appends the bytes of a value, compressed where that makes them fewer.
  ///
  /// - Throws: What the base throws; ``ZlibError`` where there is no memory.
  public func encode(_ value: Base.Value, into bytes: inout [UInt8]) throws {
    let start = bytes.count
    bytes.append(CompressedValueHeader.storedMark)
    try base.encode(value, into: &bytes)
    let size = bytes.count - start - 1
    guard size >= threshold, size <= Deflater.maximumInputSize else { return }
    let surplus = try bytes.withUnsafeMutableBytes { bytes in
      try streams.compress(UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
    }
    bytes.removeLast(surplus)
  }

  /// Makes a value of its bytes, decompressed where they are compressed.
  ///
  /// - Throws: ``CompressedFormatError`` where they are not what was encoded; ``MissingDictionaryError`` where they were
  ///   compressed with a dictionary that is not there; `ChecksumError` where the value is not the one that was
  ///   compressed; ``ZlibError`` where there is no memory; what the base throws.
  public func decode(_ bytes: RawSpan) throws -> Base.Value {
    guard bytes.byteCount > 0 else { throw CompressedFormatError("the value is empty") }
    if bytes.unsafeLoad(as: UInt8.self) == CompressedValueHeader.storedMark {
      return try base.decode(bytes.extracting(droppingFirst: 1))
    }
    return try bytes.withUnsafeBytes { bytes in
      let (header, content) = try CompressedValueHeader.read(bytes)
      // A short value never leaves the stack.
      return try withUnsafeTemporaryAllocation(byteCount: header.size, alignment: 1) { value in
        try streams.decompress(content, header: header, into: value)
        return try base.decode(value.bytes)
      }
    }
  }
}

extension Codec {
  /// This codec with compressed values; see ``CompressedCodec``.
  ///
  /// - Parameters:
  ///   - level: How much work is spent: from 1, the fastest, to 9, the smallest; 6 unless given.
  ///   - dictionary: What values are compressed with, and decompressed; without one only large values shrink. Where
  ///     values were compressed with others before, give ``compressed(level:dictionaries:threshold:)`` all of them.
  ///   - threshold: How many bytes a value must have to be compressed; `nil`, the default, for 512 without a dictionary
  ///     and 48 with one.
  public func compressed(
    level: Int = 6, dictionary: CompressionDictionary? = nil, threshold: Int? = nil
  ) -> CompressedCodec<Self> {
    CompressedCodec(
      self, level: level, dictionaries: CompressionDictionaries(only: dictionary), threshold: threshold)
  }

  /// This codec with compressed values, the older ones with other dictionaries; see ``CompressedCodec``.
  ///
  /// - Parameters:
  ///   - level: How much work is spent: from 1, the fastest, to 9, the smallest; 6 unless given.
  ///   - dictionaries: The current one compresses, all of them decompress.
  ///   - threshold: How many bytes a value must have to be compressed; `nil`, the default, for 512 without a current
  ///     dictionary and 48 with one.
  public func compressed(
    level: Int = 6, dictionaries: CompressionDictionaries, threshold: Int? = nil
  ) -> CompressedCodec<Self> {
    CompressedCodec(self, level: level, dictionaries: dictionaries, threshold: threshold)
  }
}
#endif
