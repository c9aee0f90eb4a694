import Larder
import LarderFiles

/// A scanner that finds the frames of a segment and the damage between them.
///
/// It holds plain state and reads through a closure.
struct SegmentScanner {
  /// A frame or damage.
  enum Found: Sendable {
    /// A valid frame, with its bytes after the header.
    case frame(QueueFrame, offset: Int64, body: ArraySlice<UInt8>)
    /// Bytes that are no valid frame, up to the next valid frame or the end.
    case damage(Range<Int64>)
  }

  private static let windowLength: Int64 = 1 << 20

  private let salt: UInt32
  private let end: Int64
  private let read: (Range<Int64>) throws(FileError) -> [UInt8]

  private var offset: Int64
  private var lastNumber: UInt64 = 0

  private var window: [UInt8] = []
  private var windowStart: Int64 = 0

  /// The number of bytes that may still be checked in search of a frame after damage.
  ///
  /// The limit protects against crafted bytes, each of which looks like the beginning of a long frame.
  private var searchBudget: Int64

  /// Creates a scanner.
  ///
  /// - Parameters:
  ///   - range: The range of the frames in the file.
  ///   - salt: The salt of the segment.
  ///   - read: A closure that returns the bytes of a range, or fewer at the end of the file.
  init(
    _ range: Range<Int64>, salt: UInt32,
    read: @escaping (Range<Int64>) throws(FileError) -> [UInt8]
  ) {
    self.salt = salt
    self.read = read
    offset = range.lowerBound
    end = range.upperBound
    searchBudget = 16 * Int64(range.count) + SegmentScanner.windowLength
  }

  /// Returns the next frame or damage; `nil` at the end.
  mutating func next() throws(FileError) -> Found? {
    guard offset < end else { return nil }
    if let (frame, bytes) = try frame(at: offset, within: 0) {
      defer { offset += Int64(bytes.count) }
      lastNumber = frame.number
      return .frame(frame, offset: offset, body: bytes.dropFirst(QueueFrame.headLength))
    }
    let start = offset
    offset += 1
    while offset < end, searchBudget > 0 {
      if let (frame, _) = try frame(at: offset, within: offset - start) {
        lastNumber = frame.number - 1
        return .damage(start..<offset)
      }
      offset += 1
    }
    offset = end
    return .damage(start..<end)
  }

  /// Returns the valid frame that begins at an offset, or `nil` if there isn't one.
  ///
  /// - Parameters:
  ///   - offset: The offset of the frame.
  ///   - distance: The number of damaged bytes before it.
  private mutating func frame(
    at offset: Int64, within distance: Int64
  ) throws(FileError) -> (QueueFrame, ArraySlice<UInt8>)? {
    let headLength = QueueFrame.headLength
    guard let head = try bytes(at: offset, count: headLength), let frame = QueueFrame(head: head) else { return nil }
    // Frames are numbered consecutively, and none is shorter than its header.
    let step = frame.number &- lastNumber
    guard frame.number > lastNumber, step <= 1 + UInt64(distance) / UInt64(headLength),
      frame.durable <= offset,
      let bytes = try bytes(at: offset, count: headLength + frame.bodyLength)
    else { return nil }
    if distance > 0 { searchBudget -= Int64(bytes.count) }
    return frame.matches(bytes, salt: salt) ? (frame, bytes) : nil
  }

  private mutating func bytes(at offset: Int64, count: Int) throws(FileError) -> ArraySlice<UInt8>? {
    guard Int64(count) <= end - offset else { return nil }
    var start = Int(offset - windowStart)
    if start < 0 || start + count > window.count {
      window = try read(offset..<min(end, offset + max(Int64(count), SegmentScanner.windowLength)))
      windowStart = offset
      start = 0
      guard count <= window.count else { return nil }
    }
    return window[start..<start + count]
  }
}

/// The header of a segment file, which the article `QueueFormat` describes byte by byte.
struct SegmentHeader: Sendable, Hashable {
  /// The reason why bytes are not a header.
  enum Problem: Error, Hashable {
    case foreign
    case otherVersion(UInt32)
    case damaged
  }

  static let version: UInt32 = 2
  private static let magic = Array("larderQ\n".utf8)
  /// The length of the magic bytes, the version and the length field.
  private static let startLength = 16
  static let maximumLength = 1024
  /// The limit of a segment's size.
  ///
  /// Offsets in a segment are stored in four bytes.
  static let longestSegment: Int64 = 1 << 32

  /// The number of the segment.
  ///
  /// It is also in its name.
  var number: UInt32
  /// A random number drawn once for each queue.
  var identity: UInt64
  /// A random number drawn for each segment, so bytes of another segment are never taken for frames of this one.
  var salt: UInt32
  /// The lowest sequence number of any item that is enqueued later.
  var nextSequence: UInt64
  /// The number of bytes after the header that were written and synchronized before the file got its name.
  var initialLength: Int64
  var codecName: String

  /// The encoded header.
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

  /// Reads a header.
  ///
  /// - Parameter start: The first ``maximumLength`` bytes of the file, or all of them if it is shorter.
  /// - Returns: The header and its length.
  static func read(_ start: [UInt8]) throws(Problem) -> (header: SegmentHeader, length: Int) {
    guard start.starts(with: magic) else { throw .foreign }
    var beginning = ByteReader(start.dropFirst(magic.count))
    guard let version = beginning.read(UInt32.self), let size = beginning.read(UInt32.self) else { throw .damaged }
    guard version == SegmentHeader.version else { throw .otherVersion(version) }
    let length = Int(size)
    guard length >= startLength + 4, length <= min(maximumLength, start.count) else { throw .damaged }
    var checksum = ByteReader(start[(length - 4)..<length])
    guard checksum.read(UInt32.self) == CRC32C.checksum(of: start[..<(length - 4)]) else { throw .damaged }
    var reader = ByteReader(start[SegmentHeader.startLength..<(length - 4)])
    guard let header = read(&reader), header.isSensible else { throw .damaged }
    return (header, length)
  }

  private static func read(_ reader: inout ByteReader) -> SegmentHeader? {
    guard let number = reader.read(UInt32.self), let identity = reader.read(UInt64.self),
      let salt = reader.read(UInt32.self), let nextSequence = reader.read(UInt64.self),
      let initialLength = reader.read(Int64.self), let codecName = readName(&reader)
    else { return nil }
    return SegmentHeader(
      number: number, identity: identity, salt: salt, nextSequence: nextSequence, initialLength: initialLength,
      codecName: codecName)
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
