import Larder

/// What stands at the beginning of each file of the log; `Docs/QueueStore.md` describes it byte by byte.
struct SegmentHeader: Sendable, Hashable {
  /// What is wrong with bytes that should be a header.
  enum Problem: Error, Hashable {
    case foreign
    case newerVersion(UInt32)
    case damaged
  }

  static let version: UInt32 = 1
  private static let magic = Array("larderQ\n".utf8)
  /// Magic, version, length.
  private static let startLength = 16
  static let maximumLength = 1024

  /// The number of the segment; that in its name.
  var number: UInt32
  /// The oldest segment that is still needed; those before are left over.
  var firstSegment: UInt32
  /// Drawn at random once for each queue.
  var identity: UInt64
  /// Drawn at random for each segment, so that bytes of another one are never taken for frames of this.
  var salt: UInt32
  /// The number of the first frame.
  var firstFrame: UInt64
  /// No item that comes later has a lower sequence number.
  var nextSequence: UInt64
  /// How many bytes of the segment before count; what stands behind them never happened.
  var previousEnd: Int64
  /// How many bytes behind the header were written, and made durable, before the file got its name.
  var initialLength: Int64
  var codecName: String

  /// The header as bytes.
  var bytes: [UInt8] {
    var bytes = SegmentHeader.magic
    bytes.append(littleEndian: SegmentHeader.version)
    bytes.append(littleEndian: UInt32(0))
    bytes.append(littleEndian: number)
    bytes.append(littleEndian: firstSegment)
    bytes.append(littleEndian: identity)
    bytes.append(littleEndian: salt)
    bytes.append(littleEndian: firstFrame)
    bytes.append(littleEndian: nextSequence)
    bytes.append(littleEndian: previousEnd)
    bytes.append(littleEndian: initialLength)
    let name = Array(codecName.utf8.prefix(SegmentHeader.maximumLength / 2))
    bytes.append(littleEndian: UInt16(name.count))
    bytes.append(contentsOf: name)
    bytes.replace(at: 12, littleEndian: UInt32(bytes.count + 4))
    bytes.append(littleEndian: CRC32C.checksum(of: bytes))
    return bytes
  }

  /// How many bytes the header has, as its beginning says.
  ///
  /// - Parameter start: The beginning of the file; the whole header, or as much as there is.
  private static func length(_ start: ArraySlice<UInt8>) throws(Problem) -> Int {
    guard start.starts(with: magic) else { throw .foreign }
    var reader = ByteReader(start.dropFirst(magic.count))
    guard let version = reader.read(UInt32.self), let length = reader.read(UInt32.self) else { throw .damaged }
    guard version <= SegmentHeader.version else { throw .newerVersion(version) }
    guard version > 0, length >= startLength + 4, length <= maximumLength else { throw .damaged }
    return Int(length)
  }

  /// Reads a header.
  ///
  /// - Parameter start: The beginning of the file, ``maximumLength`` bytes of it or all.
  init(_ start: [UInt8]) throws(Problem) {
    let length = try SegmentHeader.length(start[...])
    guard start.count >= length else { throw .damaged }
    var checksum = ByteReader(start[(length - 4)..<length])
    guard checksum.read(UInt32.self) == CRC32C.checksum(of: start[..<(length - 4)]) else { throw .damaged }
    var reader = ByteReader(start[SegmentHeader.startLength..<(length - 4)])
    guard let number = reader.read(UInt32.self), let firstSegment = reader.read(UInt32.self),
      let identity = reader.read(UInt64.self), let salt = reader.read(UInt32.self),
      let firstFrame = reader.read(UInt64.self), let nextSequence = reader.read(UInt64.self),
      let previousEnd = reader.read(Int64.self), let initialLength = reader.read(Int64.self),
      let nameLength = reader.read(UInt16.self), let name = reader.read(count: Int(nameLength)),
      number > 0, number < .max >> 1, firstSegment <= number, firstFrame > 0, firstFrame < .max >> 1,
      nextSequence < .max >> 1, (0..<(.max >> 1)).contains(previousEnd), (0..<(.max >> 1)).contains(initialLength),
      let codecName = String(validating: name, as: UTF8.self)
    else { throw .damaged }
    self.init(
      number: number, firstSegment: firstSegment, identity: identity, salt: salt, firstFrame: firstFrame,
      nextSequence: nextSequence, previousEnd: previousEnd, initialLength: initialLength, codecName: codecName)
  }

  init(
    number: UInt32, firstSegment: UInt32, identity: UInt64, salt: UInt32, firstFrame: UInt64, nextSequence: UInt64,
    previousEnd: Int64, initialLength: Int64, codecName: String
  ) {
    self.number = number
    self.firstSegment = firstSegment
    self.identity = identity
    self.salt = salt
    self.firstFrame = firstFrame
    self.nextSequence = nextSequence
    self.previousEnd = previousEnd
    self.initialLength = initialLength
    self.codecName = codecName
  }
}
