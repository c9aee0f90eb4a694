import Larder

/// The header of each file of the log; `Docs/QueueStore.md` describes it byte by byte.
struct SegmentHeader: Sendable, Hashable {
  /// The reason why bytes are no header.
  enum Problem: Error, Hashable {
    case foreign
    case newerVersion(UInt32)
    case damaged
  }

  /// Fields that only the header of version 1 has; later versions have them in the first frame or do not need them.
  struct Version1: Sendable, Hashable {
    /// The oldest segment that is still needed; those before are left over.
    var firstSegment: UInt32
    /// The number of the first frame.
    var firstFrame: UInt64
    /// How many bytes of the segment before count; what stands behind them never happened.
    var previousEnd: Int64
  }

  static let version: UInt32 = 2
  private static let magic = Array("larderQ\n".utf8)
  /// Magic, version, length.
  private static let startLength = 16
  static let maximumLength = 1024
  /// Places in a segment are written in four bytes.
  private static let longestSegment: Int64 = 1 << 32

  /// The number of the segment; that in its name.
  var number: UInt32
  /// Drawn at random once for each queue.
  var identity: UInt64
  /// Drawn at random for each segment, so that bytes of another one are never taken for frames of this.
  var salt: UInt32
  /// No item that comes later has a lower sequence number.
  var nextSequence: UInt64
  /// How many bytes behind the header were written, and made durable, before the file got its name.
  var initialLength: Int64
  var codecName: String
  /// The further fields of an old header; `nil` in one of the present version.
  var version1: Version1?

  var version: UInt32 { version1 == nil ? SegmentHeader.version : 1 }

  /// The number of its first frame.
  var firstFrame: UInt64 { version1?.firstFrame ?? 1 }

  /// The header as bytes, in the present version.
  var bytes: [UInt8] {
    var bytes = SegmentHeader.magic
    bytes.append(littleEndian: SegmentHeader.version)
    bytes.append(littleEndian: UInt32(0))
    bytes.append(littleEndian: number)
    bytes.append(littleEndian: identity)
    bytes.append(littleEndian: salt)
    bytes.append(littleEndian: nextSequence)
    bytes.append(littleEndian: initialLength)
    let name = Array(codecName.utf8.prefix(SegmentHeader.maximumLength / 2))
    bytes.append(littleEndian: UInt16(name.count))
    bytes.append(contentsOf: name)
    bytes.replace(at: 12, littleEndian: UInt32(bytes.count + 4))
    bytes.append(littleEndian: CRC32C.checksum(of: bytes))
    return bytes
  }

  /// How many bytes the header has, as its beginning says, and its version.
  ///
  /// - Parameter start: The beginning of the file; the whole header, or as much as there is.
  private static func measure(_ start: ArraySlice<UInt8>) throws(Problem) -> (length: Int, version: UInt32) {
    guard start.starts(with: magic) else { throw .foreign }
    var reader = ByteReader(start.dropFirst(magic.count))
    guard let version = reader.read(UInt32.self), let length = reader.read(UInt32.self) else { throw .damaged }
    guard version <= SegmentHeader.version else { throw .newerVersion(version) }
    guard version > 0, length >= startLength + 4, length <= maximumLength else { throw .damaged }
    return (Int(length), version)
  }

  /// Reads a header.
  ///
  /// - Parameter start: The beginning of the file, ``maximumLength`` bytes of it or all.
  /// - Returns: The header and its length.
  static func read(_ start: [UInt8]) throws(Problem) -> (header: SegmentHeader, length: Int) {
    let (length, version) = try measure(start[...])
    guard start.count >= length else { throw .damaged }
    var checksum = ByteReader(start[(length - 4)..<length])
    guard checksum.read(UInt32.self) == CRC32C.checksum(of: start[..<(length - 4)]) else { throw .damaged }
    var reader = ByteReader(start[SegmentHeader.startLength..<(length - 4)])
    guard let header = version == 1 ? readVersion1(&reader) : readPresent(&reader), header.isSensible else {
      throw .damaged
    }
    return (header, length)
  }

  private static func readPresent(_ reader: inout ByteReader) -> SegmentHeader? {
    guard let number = reader.read(UInt32.self), let identity = reader.read(UInt64.self),
      let salt = reader.read(UInt32.self), let nextSequence = reader.read(UInt64.self),
      let initialLength = reader.read(Int64.self), let codecName = readName(&reader)
    else { return nil }
    return SegmentHeader(
      number: number, identity: identity, salt: salt, nextSequence: nextSequence, initialLength: initialLength,
      codecName: codecName)
  }

  private static func readVersion1(_ reader: inout ByteReader) -> SegmentHeader? {
    guard let number = reader.read(UInt32.self), let firstSegment = reader.read(UInt32.self),
      let identity = reader.read(UInt64.self), let salt = reader.read(UInt32.self),
      let firstFrame = reader.read(UInt64.self), let nextSequence = reader.read(UInt64.self),
      let previousEnd = reader.read(Int64.self), let initialLength = reader.read(Int64.self),
      let codecName = readName(&reader), firstSegment <= number, firstFrame > 0, firstFrame < .max >> 1,
      (0..<longestSegment).contains(previousEnd)
    else { return nil }
    return SegmentHeader(
      number: number, identity: identity, salt: salt, nextSequence: nextSequence, initialLength: initialLength,
      codecName: codecName,
      version1: Version1(firstSegment: firstSegment, firstFrame: firstFrame, previousEnd: previousEnd))
  }

  private static func readName(_ reader: inout ByteReader) -> String? {
    guard let length = reader.read(UInt16.self), let name = reader.read(count: Int(length)) else { return nil }
    return String(validating: name, as: UTF8.self)
  }

  private var isSensible: Bool {
    number > 0 && number < .max >> 1 && nextSequence <= QueueRecord.greatestSequence + 1
      && (0..<SegmentHeader.longestSegment).contains(initialLength)
  }
}
