#if Compression
import Larder
import LarderFiles

/// The header of a compressed value; see ``CompressedCodec``.
struct CompressedValueHeader: Equatable {
  /// The first byte of a value that is stored unchanged.
  static let storedMark: UInt8 = 0

  private static let deflatedMark: UInt8 = 1
  private static let deflatedWithDictionaryMark: UInt8 = 2
  private static let checksumSize = MemoryLayout<UInt32>.size

  /// The dictionary that the value was compressed with, or `nil`.
  var dictionaryID: CompressionDictionary.ID?

  /// The size of the value, in bytes.
  var size: Int

  /// The checksum of the dictionary followed by the value.
  var checksum: UInt32

  /// Returns the bytes of the header.
  ///
  /// - Parameter contentSize: The number of compressed bytes that follow. It must be less than the size of the value.
  func bytes(contentSize: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(1 + 2 + 10 + Self.checksumSize)
    if let dictionaryID {
      bytes.append(Self.deflatedWithDictionaryMark)
      bytes.append(littleEndian: dictionaryID.rawValue)
    } else {
      bytes.append(Self.deflatedMark)
    }
    bytes.append(variable: UInt64(size - contentSize))
    bytes.append(littleEndian: checksum)
    return bytes
  }

  /// Reads a header.
  ///
  /// - Parameter bytes: A stored value that does not begin with ``storedMark``.
  /// - Returns: The header, and the compressed bytes that follow it.
  /// - Throws: `ValueFormatError` if the bytes are not a header, or state a size that the compressed bytes
  ///   cannot have.
  static func read(
    _ bytes: UnsafeRawBufferPointer
  ) throws(ValueFormatError) -> (CompressedValueHeader, content: UnsafeRawBufferPointer) {
    // Offsets instead of slices: reading the header is a considerable part of the cost of reading a short value.
    var place = 1
    var dictionaryID: CompressionDictionary.ID?
    switch bytes.first {
    case deflatedMark: break
    case deflatedWithDictionaryMark:
      dictionaryID = CompressionDictionary.ID(rawValue: try readNumber(from: bytes, at: &place))
    default: throw ValueFormatError("the value does not begin with the mark of a compressed value")
    }
    let saved = try readSaved(from: bytes, at: &place)
    let checksum: UInt32 = try readNumber(from: bytes, at: &place)
    let content = UnsafeRawBufferPointer(rebasing: bytes[place...])
    let (size, overflows) = saved.addingReportingOverflow(content.count)
    // A division, since the product may overflow.
    guard !overflows, size / ZlibInflater.maximumExpansion <= content.count else {
      throw ValueFormatError("\(content.count) compressed bytes are too few for the length that the value states")
    }
    return (CompressedValueHeader(dictionaryID: dictionaryID, size: size, checksum: checksum), content)
  }

  private static func readSaved(
    from bytes: UnsafeRawBufferPointer, at place: inout Int
  ) throws(ValueFormatError) -> Int {
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
    throw ValueFormatError("the length of the value is damaged")
  }

  private static func readNumber<Number: FixedWidthInteger & BitwiseCopyable>(
    from bytes: UnsafeRawBufferPointer, at place: inout Int
  ) throws(ValueFormatError) -> Number {
    let end = place + MemoryLayout<Number>.size
    guard end <= bytes.count else { throw ValueFormatError("the value is truncated") }
    defer { place = end }
    return Number(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: Number.self))
  }
}
#endif
