import Larder

/// A frame of the log: the records of one call, which happen all or not at all, behind a head with their checksum.
///
/// | Bytes | What |
/// | --- | --- |
/// | 0 to 3 | checksum: the CRC-32C of everything behind it, combined by exclusive or with the salt of the segment |
/// | 4 to 7 | how many bytes of records follow the head; none in the frame that closing writes |
/// | 8 to 15 | the number of the frame, one more than that of the frame before |
/// | 16 to 23 | how many bytes of this segment were known to be durable when the frame was written |
struct QueueFrame: Sendable, Hashable {
  static let headLength = 24

  /// The most bytes of records in a frame.
  static let maximumBodyLength = 1 << 30

  var checksum: UInt32
  var bodyLength: Int
  var number: UInt64
  var durable: Int64

  /// Whether closing the queue wrote it: all before it is durable.
  var isClosing: Bool { bodyLength == 0 }

  /// Reads the head of a frame; `nil` where the bytes cannot be one.
  init?(head: ArraySlice<UInt8>) {
    var reader = ByteReader(head)
    guard let checksum = reader.read(UInt32.self), let length = reader.read(UInt32.self),
      let number = reader.read(UInt64.self), let durable = reader.read(Int64.self),
      length <= QueueFrame.maximumBodyLength
    else { return nil }
    self.checksum = checksum
    bodyLength = Int(length)
    self.number = number
    self.durable = durable
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
  static func end(in bytes: inout [UInt8], at start: Int, number: UInt64, durable: Int64, salt: UInt32) {
    bytes.replace(at: start + 4, littleEndian: UInt32(bytes.count - start - headLength))
    bytes.replace(at: start + 8, littleEndian: number)
    bytes.replace(at: start + 16, littleEndian: durable)
    bytes.replace(at: start, littleEndian: CRC32C.checksum(of: bytes[(start + 4)...]) ^ salt)
  }
}
