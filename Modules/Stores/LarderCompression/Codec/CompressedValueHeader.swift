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
    var rest = bytes[...]
    var dictionaryID: CompressionDictionary.ID?
    switch rest.popFirst() {
    case deflatedMark: break
    case deflatedWithDictionaryMark:
      dictionaryID = CompressionDictionary.ID(rawValue: try readNumber(from: &rest))
    default: throw CompressedFormatError("the value does not begin as a compressed one does")
    }
    let saved = try readSaved(from: &rest)
    let checksum: UInt32 = try readNumber(from: &rest)
    let content = UnsafeRawBufferPointer(rebasing: rest)
    let (size, overflows) = saved.addingReportingOverflow(content.count)
    // Divided, since the product may not be a number.
    guard !overflows, size / Inflater.maximumExpansion <= content.count else {
      throw CompressedFormatError("the \(content.count) compressed bytes cannot be those of so long a value")
    }
    return (CompressedValueHeader(dictionaryID: dictionaryID, size: size, checksum: checksum), content)
  }

  private static func readSaved(from rest: inout Slice<UnsafeRawBufferPointer>) throws(CompressedFormatError) -> Int {
    var saved: UInt64 = 0
    var shift = 0
    while let byte = rest.popFirst() {
      let part = UInt64(byte & 0x7F)
      guard shift < UInt64.bitWidth, (part << shift) >> shift == part else { break }
      saved |= part << shift
      shift += 7
      guard byte & 0x80 == 0 else { continue }
      guard let saved = Int(exactly: saved) else { break }
      return saved
    }
    throw CompressedFormatError("the length of the value is damaged")
  }

  private static func readNumber<Number: FixedWidthInteger>(
    from rest: inout Slice<UnsafeRawBufferPointer>
  ) throws(CompressedFormatError) -> Number {
    var number: Number = 0
    for index in 0..<MemoryLayout<Number>.size {
      guard let byte = rest.popFirst() else { throw CompressedFormatError("the value is cut short") }
      number |= Number(byte) << (8 * index)
    }
    return number
  }
}
#endif
