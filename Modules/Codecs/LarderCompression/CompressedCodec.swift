#if Compression
public import Larder

/// A codec that compresses each value that another codec encodes, so a store with any codec takes less space.
///
/// ```swift
/// let users = try await LMDBStore<User>(path: "users", codec: .cbor().compressed())
/// ```
///
/// The first byte of a value is a mark for what follows.
///
/// - 0: the bytes of the base codec, unchanged. Values below the threshold and values that would not shrink are stored
///   this way.
/// - 1: a compressed value. The number of bytes that compression has saved, as an unsigned LEB128 number of at most 10
///   bytes (DWARF 5, section 7.6); the CRC-32 of the value (RFC 1952, section 8), 4 bytes, little-endian; and the value
///   as raw deflate (RFC 1951).
/// - 2: a value compressed with a preset dictionary (RFC 1950, section 2.2). The format is that of 1 with the
///   identifier of the dictionary, 2 bytes, little-endian, after the mark. The identifier is the lower half of the
///   dictionary's CRC-32. The checksum covers the dictionary followed by the value, so another dictionary with the same
///   identifier never yields a wrong value.
///
/// A zlib stream (RFC 1950) would hold the same in 5 bytes more, or 6 without a dictionary, which matters for records
/// of 150 bytes that shrink to 40, and it does not state the length of the value. Here the length is known before
/// anything is decompressed, and no more than that is ever written. A length that deflate cannot reach with the bytes
/// present is refused before memory is allocated, so a hostile value can cost at most 1,032 times its size.
///
/// The checksum detects damage to a compressed value. Values that are stored unchanged have no checksum; wrap the codec
/// in `checksummed()` to cover every value.
///
/// A codec keeps zlib's working memory for as many concurrent values as the machine has processors. Each is allocated
/// when it is first needed: up to 270 KB to compress, twice that with a dictionary, and 40 KB to decompress. Copies of
/// a codec share this memory.
public struct CompressedCodec<Base: Codec>: Codec {
  /// The codec that encodes a value before it is compressed.
  public let base: Base

  /// The name of the format: the name of the base codec, followed by ``nameSuffix``.
  public let name: String

  /// The dictionaries, of which the current one compresses and all decompress.
  public var dictionaries: CompressionDictionaries { streams.dictionaries }

  /// The minimum size, in bytes, of a value that is compressed.
  public let threshold: Int

  private let streams: CompressionStreams

  /// Creates a codec that compresses the output of another codec.
  ///
  /// - Parameters:
  ///   - base: The codec that encodes values before they are compressed.
  ///   - level: The compression level, from 1 (fastest) to 9 (smallest). Defaults to 6. Other levels are clamped to
  ///     this range.
  ///   - dictionaries: The dictionaries. The current one compresses, and all of them decompress. Defaults to no dictionaries.
  ///   - threshold: The minimum size, in bytes, of a value that is compressed. Defaults to `nil`, meaning 512
  ///     without a current dictionary, since smaller values hardly shrink, and 48 with one.
  public init(
    _ base: Base, level: Int = 6, dictionaries: CompressionDictionaries = CompressionDictionaries(),
    threshold: Int? = nil
  ) {
    self.base = base
    self.threshold = threshold ?? (dictionaries.current == nil ? 512 : 48)
    name = base.name + CompressedCodec.nameSuffix
    streams = CompressionStreams(level: min(max(level, 1), 9), dictionaries: dictionaries)
  }

  /// The suffix of the names of compressed formats: `+deflate`.
  public static var nameSuffix: String { "+deflate" }

  /// `CodecFormat.binary`.
  public var format: CodecFormat { .binary }

  /// The names that the base codec adopts, followed by ``nameSuffix``.
  public var adoptedNames: [String] { base.adoptedNames.map { $0 + CompressedCodec.nameSuffix } }

  /// The newest name of the base, followed by ``nameSuffix``, if the base still writes an older format.
  public var newestName: String? { base.newestName.map { $0 + CompressedCodec.nameSuffix } }

  /// A Boolean value that indicates whether the base encrypts the values.
  public var encryptsValues: Bool { base.encryptsValues }

  /// Appends the bytes of a value, compressed if that makes them fewer.
  ///
  /// - Throws: Any error of the base codec; ``ZlibError`` if there is not enough memory.
  public func encode(_ value: Base.Value, into bytes: inout [UInt8], context: ValueContext) throws {
    let start = bytes.count
    bytes.append(CompressedValueHeader.storedMark)
    let context = context.forBase { $0.first == CompressedValueHeader.storedMark ? $0.dropFirst() : nil }
    try base.encode(value, into: &bytes, context: context)
    let size = bytes.count - start - 1
    guard size >= threshold, size <= ZlibDeflater.maximumInputSize else { return }
    let surplus = try bytes.withUnsafeMutableBytes { bytes in
      try streams.compress(UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
    }
    bytes.removeLast(surplus)
  }

  /// Returns the value that the bytes encode, after decompressing them if they are compressed.
  ///
  /// - Throws: `ValueFormatError` if the bytes were not written by this codec; ``MissingDictionaryError`` if
  ///   they were compressed with a dictionary that this codec does not have; `ChecksumError` if the decompressed value
  ///   is not the one that was compressed; ``ZlibError`` if there is not enough memory; any error of the base codec.
  public func decode(_ bytes: RawSpan, context: ValueContext) throws -> Base.Value {
    guard bytes.byteCount > 0 else { throw ValueFormatError("the value is empty") }
    if bytes.unsafeLoad(as: UInt8.self) == CompressedValueHeader.storedMark {
      return try base.decode(bytes.extracting(droppingFirst: 1), context: context)
    }
    return try bytes.withUnsafeBytes { bytes in
      let (header, content) = try CompressedValueHeader.read(bytes)
      // Short values stay on the stack.
      return try withUnsafeTemporaryAllocation(byteCount: header.size, alignment: 1) { value in
        try streams.decompress(content, header: header, into: value)
        return try base.decode(value.bytes, context: context)
      }
    }
  }
}

extension Codec {
  /// Returns this codec with compressed values; see ``CompressedCodec``.
  ///
  /// ```swift
  /// let articles = try await JSONFileStore<Article>(
  ///   path: folder + "/articles.json", codec: .json(Article.self).compressed())
  /// ```
  ///
  /// - Parameters:
  ///   - level: The compression level, from 1 (fastest) to 9 (smallest). Defaults to 6.
  ///   - dictionary: The dictionary that compresses and decompresses values. Defaults to no dictionary, with which only large
  ///     values shrink. If values were compressed with other dictionaries before, pass all of them to
  ///     ``compressed(level:dictionaries:threshold:)``.
  ///   - threshold: The minimum size, in bytes, of a value that is compressed. Defaults to `nil`, meaning 512
  ///     without a dictionary and 48 with one.
  public func compressed(
    level: Int = 6, dictionary: CompressionDictionary? = nil, threshold: Int? = nil
  ) -> CompressedCodec<Self> {
    CompressedCodec(
      self, level: level, dictionaries: CompressionDictionaries(only: dictionary), threshold: threshold)
  }

  /// Returns this codec with compressed values, which older dictionaries can still decompress; see ``CompressedCodec``.
  ///
  /// - Parameters:
  ///   - level: The compression level, from 1 (fastest) to 9 (smallest). Defaults to 6.
  ///   - dictionaries: The dictionaries. The current one compresses, and all of them decompress.
  ///   - threshold: The minimum size, in bytes, of a value that is compressed. Defaults to `nil`, meaning 512
  ///     without a current dictionary and 48 with one.
  public func compressed(
    level: Int = 6, dictionaries: CompressionDictionaries, threshold: Int? = nil
  ) -> CompressedCodec<Self> {
    CompressedCodec(self, level: level, dictionaries: dictionaries, threshold: threshold)
  }
}

extension AuthenticatedCodec {
  /// Returns a codec that tries in vain to compress the bytes of this one.
  @available(
    *, deprecated, message: "the bytes of an authenticated codec do not shrink; call compressed() before encrypted(…)"
  )
  public func compressed(
    level: Int = 6, dictionary: CompressionDictionary? = nil, threshold: Int? = nil
  ) -> CompressedCodec<Self> {
    CompressedCodec(
      self, level: level, dictionaries: CompressionDictionaries(only: dictionary), threshold: threshold)
  }

  /// Returns a codec that tries in vain to compress the bytes of this one.
  @available(
    *, deprecated, message: "the bytes of an authenticated codec do not shrink; call compressed() before encrypted(…)"
  )
  public func compressed(
    level: Int = 6, dictionaries: CompressionDictionaries, threshold: Int? = nil
  ) -> CompressedCodec<Self> {
    CompressedCodec(self, level: level, dictionaries: dictionaries, threshold: threshold)
  }
}

/// The zlib streams that a ``CompressedCodec`` and its copies share, whatever the type of their values.
final class CompressionStreams: Sendable {
  /// The size, in bytes, up to which a value gets a stream with a window of just the required size, which is faster to
  /// prepare.
  private static let smallSize = 2048

  /// The distance from the end of its window within which deflate finds no repetitions: `MIN_LOOKAHEAD` of zlib's
  /// `deflate.h`.
  private static let windowMargin = 262

  /// The dictionaries that compress and decompress values.
  let dictionaries: CompressionDictionaries

  private let current: CompressionDictionary?
  private let smallDeflaters: StreamPool<ZlibDeflater>
  private let largeDeflaters: StreamPool<ZlibDeflater>
  private let inflaters: StreamPool<ZlibInflater>

  /// Creates pools whose streams are created when they are first needed.
  ///
  /// - Parameters:
  ///   - level: The compression level, from 1 to 9.
  ///   - dictionaries: The dictionaries. The current one compresses, and all of them decompress.
  init(level: Int, dictionaries: CompressionDictionaries) {
    self.dictionaries = dictionaries
    let current = dictionaries.current
    self.current = current
    let dictionary = current?.bytes ?? []
    let smallWindowBits = Self.windowBits(for: dictionary.count + Self.smallSize)
    smallDeflaters = StreamPool { () throws(ZlibError) in
      try ZlibDeflater(
        level: level, windowBits: smallWindowBits, memoryLevel: smallWindowBits - 8, dictionary: dictionary.span.bytes)
    }
    largeDeflaters = StreamPool { () throws(ZlibError) in
      try ZlibDeflater(level: level, dictionary: dictionary.span.bytes)
    }
    inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }
  }

  /// Returns the smallest window, as a power of two from 10 to 15, that reaches all of `size` bytes from its end.
  static func windowBits(for size: Int) -> Int {
    (10...15).first { size + windowMargin <= 1 << $0 } ?? 15
  }

  /// Compresses a value in place, if that makes it smaller.
  ///
  /// - Parameter bytes: The mark of a value that is stored unchanged, followed by the value. If the result is above 0,
  ///   both have been replaced by a header and the compressed value, which are shorter.
  /// - Returns: The number of bytes at the end that are no longer used; 0 if the value was not compressed.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  func compress(_ bytes: UnsafeMutableRawBufferPointer) throws -> Int {
    let value = UnsafeRawBufferPointer(rebasing: bytes[1...])
    let pool = value.count <= Self.smallSize ? smallDeflaters : largeDeflaters
    return try withUnsafeTemporaryAllocation(byteCount: value.count, alignment: 1) { content in
      let contentSize = try pool.withStream { (stream) throws(ZlibError) in try stream.deflate(value, into: content) }
      guard let contentSize else { return 0 }
      let checksum = ZlibCRC32.checksum(of: value, continuing: current?.checksum ?? 0)
      let header = CompressedValueHeader(dictionaryID: current?.id, size: value.count, checksum: checksum)
        .bytes(contentSize: contentSize)
      guard header.count + contentSize < bytes.count else { return 0 }
      bytes.copyBytes(from: header)
      UnsafeMutableRawBufferPointer(rebasing: bytes[header.count...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: content[..<contentSize]))
      return bytes.count - header.count - contentSize
    }
  }

  /// Decompresses a value.
  ///
  /// - Parameters:
  ///   - content: The compressed value.
  ///   - header: The header of the value.
  ///   - value: Memory of the size that the header states. It is filled, unless this method throws.
  /// - Throws: ``MissingDictionaryError``; `ValueFormatError` or `ChecksumError` if the bytes are damaged;
  ///   ``ZlibError`` if there is not enough memory.
  func decompress(
    _ content: UnsafeRawBufferPointer, header: CompressedValueHeader, into value: UnsafeMutableRawBufferPointer
  ) throws {
    var dictionary: CompressionDictionary?
    if let id = header.dictionaryID {
      dictionary = dictionaries[id]
      if dictionary == nil {
        throw MissingDictionaryError(id: id, availableIDs: dictionaries.all.map(\.id), path: dictionaries.path)
      }
    }
    let dictionaryBytes = dictionary?.bytes ?? []
    do throws(ZlibError) {
      try inflaters.withStream { (stream) throws(ZlibError) in
        try stream.inflate(content, into: value, dictionary: dictionaryBytes.span.bytes)
      }
    } catch {
      throw error == .damaged ? ValueFormatError("the compressed bytes are damaged") : error
    }
    let checksum = ZlibCRC32.checksum(of: UnsafeRawBufferPointer(value), continuing: dictionary?.checksum ?? 0)
    guard checksum == header.checksum else { throw ChecksumError(byteCount: value.count) }
  }
}
#endif
