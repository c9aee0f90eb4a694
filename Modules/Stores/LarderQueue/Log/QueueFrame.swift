import Larder

/// A frame of the log: records behind a head with their checksum.
///
/// What one call changes is one frame, or several of which all but the last say that more follow; it happens all or not at
/// all.
///
/// | Bytes | What |
/// | --- | --- |
/// | 0 to 3 | checksum: the CRC-32C of everything behind it, combined by exclusive or with the salt of the segment |
/// | 4 to 7 | how many bytes of records follow the head; none in the frame that closing writes. The highest bit: whether the next frame belongs to the same call |
/// | 8 to 11 | the number of the frame in its segment, from 1 on |
/// | 12 to 15 | how many bytes of this segment were known to be durable when the frame was written |
///
/// In version 1 of the format the last two had eight bytes each, frames were numbered through all segments, and every call
/// was one frame.
struct QueueFrame: Sendable, Hashable {
  static let headLength = 16

  /// The most bytes of records in a frame.
  static let maximumBodyLength = 1 << 30

  private static let continuationFlag: UInt32 = 1 << 31

  var checksum: UInt32
  var bodyLength: Int
  /// Whether the next frame belongs to the same call.
  var isContinued = false
  var number: UInt64
  var durable: Int64

  /// Whether closing the queue wrote it: all before it is durable.
  var isClosing: Bool { bodyLength == 0 && !isContinued }

  static func headLength(inVersion version: UInt32) -> Int {
    version == 1 ? 24 : headLength
  }

  /// Reads the head of a frame; `nil` if the bytes cannot be one.
  init?(head: ArraySlice<UInt8>, version: UInt32) {
    var reader = ByteReader(head)
    guard let checksum = reader.read(UInt32.self), let length = reader.read(UInt32.self) else { return nil }
    self.checksum = checksum
    if version == 1 {
      guard length <= QueueFrame.maximumBodyLength, let number = reader.read(UInt64.self),
        let durable = reader.read(Int64.self)
      else { return nil }
      (bodyLength, self.number, self.durable) = (Int(length), number, durable)
    } else {
      let bodyLength = Int(length & ~QueueFrame.continuationFlag)
      guard bodyLength <= QueueFrame.maximumBodyLength, let number = reader.read(UInt32.self),
        let durable = reader.read(UInt32.self)
      else { return nil }
      isContinued = length & QueueFrame.continuationFlag != 0
      (self.bodyLength, self.number, self.durable) = (bodyLength, UInt64(number), Int64(durable))
    }
  }

  /// Whether the checksum is that of a frame.
  ///
  /// - Parameters:
  ///   - bytes: The frame, head included.
  ///   - salt: The salt of the segment.
  func matches(_ bytes: ArraySlice<UInt8>, salt: UInt32) -> Bool {
    CRC32C.checksum(of: bytes.dropFirst(4)) ^ salt == checksum
  }

  /// Leaves room for the head of a frame whose records are then appended.
  static func begin(in bytes: inout [UInt8]) {
    bytes.append(contentsOf: repeatElement(0, count: headLength))
  }

  /// Writes the head of a frame whose records have been appended.
  ///
  /// - Parameters:
  ///   - bytes: What ends with the frame.
  ///   - start: Where in them the frame begins.
  ///   - number: Its number.
  ///   - durable: How many bytes of the segment are known to be durable.
  ///   - salt: The salt of the segment.
  ///   - isContinued: Whether the next frame belongs to the same call; defaults to `false`.
  static func end(
    in bytes: inout [UInt8], at start: Int, number: UInt64, durable: Int64, salt: UInt32, isContinued: Bool = false
  ) {
    let length = UInt32(clamping: bytes.count - start - headLength) | (isContinued ? continuationFlag : 0)
    bytes.replace(at: start + 4, littleEndian: length)
    bytes.replace(at: start + 8, littleEndian: UInt32(clamping: number))
    bytes.replace(at: start + 12, littleEndian: UInt32(clamping: durable))
    bytes.replace(at: start, littleEndian: CRC32C.checksum(of: bytes[(start + 4)...]) ^ salt)
  }
}
