#if Compression
/// What stands before the compressed bytes of a value; see ``CompressedCodec``.
struct CompressedValueHeader: Equatable {
  /// The first byte of a value that is stored as it is.
  static let storedMark: UInt8 = 0

  private static let deflatedMark: UInt8 = 1
  private static let deflatedWithDictionaryMark: UInt8 = 2
  private static let checksumSize = MemoryLayout<UInt32>.size

  /// The dictionary that the value was compressed with; `nil` for none.
  var dictionaryID: CompressionDictionary.ID?

  /// How many bytes the value has.
  var size: Int

  /// The checksum of the dictionary and the value.
  var checksum: UInt32

  /// The bytes of the header.
  ///
  /// - Parameter contentSize: How many compressed bytes follow: fewer than the value has.
  func bytes(contentSize: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(1 + 2 + 10 + Self.checksumSize)
    if let dictionaryID {
      bytes.append(Self.deflatedWithDictionaryMark)
      Self.append(dictionaryID.rawValue, to: &bytes)
    } else {
      bytes.append(Self.deflatedMark)
    }
    var saved = UInt64(size - contentSize)
    while saved >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: saved) | 0x80)
      saved >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: saved))
    Self.append(checksum, to: &bytes)
    return bytes
  }

  private static func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
  }

  /// Reads a header.
  ///
  /// - Parameter bytes: A stored value that does not begin with ``storedMark``.
  /// - Returns: The header, and the compressed bytes behind it.
  /// - Throws: ``CompressedFormatError`` where it is none, or speaks of more than the compressed bytes can hold.
  static func read(
    _ bytes: UnsafeRawBufferPointer
  ) throws(CompressedFormatError) -> (CompressedValueHeader, content: UnsafeRawBufferPointer) {
    // By places and not by slices: this is a good part of what reading a short value costs.
    var place = 1
    var dictionaryID: CompressionDictionary.ID?
    switch bytes.first {
    case deflatedMark: break
    case deflatedWithDictionaryMark:
      dictionaryID = CompressionDictionary.ID(rawValue: try readNumber(from: bytes, at: &place))
    default: throw CompressedFormatError("the value does not begin as a compressed one does")
    }
    let saved = try readSaved(from: bytes, at: &place)
    let checksum: UInt32 = try readNumber(from: bytes, at: &place)
    let content = UnsafeRawBufferPointer(rebasing: bytes[place...])
    let (size, overflows) = saved.addingReportingOverflow(content.count)
    // Divided, since the product may not be a number.
    guard !overflows, size / Inflater.maximumExpansion <= content.count else {
      throw CompressedFormatError("the \(content.count) compressed bytes cannot be those of so long a value")
    }
    return (CompressedValueHeader(dictionaryID: dictionaryID, size: size, checksum: checksum), content)
  }

  private static func readSaved(
    from bytes: UnsafeRawBufferPointer, at place: inout Int
  ) throws(CompressedFormatError) -> Int {
    var saved: UInt64 = 0
    var shift = 0
    while place < bytes.count, shift < UInt64.bitWidth {
      let byte = bytes[place]
      let part = UInt64(byte & 0x7F)
      guard (part << shift) >> shift == part else { break }
      saved |= part << shift
      shift += 7
      place += 1
      guard byte & 0x80 == 0 else { continue }
      guard let saved = Int(exactly: saved) else { break }
      return saved
    }
    throw CompressedFormatError("the length of the value is damaged")
  }

  private static func readNumber<Number: FixedWidthInteger & BitwiseCopyable>(
    from bytes: UnsafeRawBufferPointer, at place: inout Int
  ) throws(CompressedFormatError) -> Number {
    let end = place + MemoryLayout<Number>.size
    guard end <= bytes.count else { throw CompressedFormatError("the value is cut short") }
    defer { place = end }
    return Number(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: Number.self))
  }
}
#endif
