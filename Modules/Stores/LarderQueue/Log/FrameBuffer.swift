import Larder

/// The frames of a group of calls, before they are written.
struct FrameBuffer: Sendable {
  private(set) var bytes: [UInt8] = []
  /// How many frames there are.
  private(set) var count = 0

  private var segment: UInt32 = 0
  private var salt: UInt32 = 0
  /// Where in the segment the bytes will stand.
  private var base: Int64 = 0
  private var durable: Int64 = 0
  private var firstNumber: UInt64 = 1
  private var frameStart = 0

  /// More room than this is not kept from group to group.
  private static let keptCapacity = 1 << 20

  init() {}

  /// Begins anew, for a place in a segment.
  ///
  /// - Parameters:
  ///   - segment: The number of the segment.
  ///   - salt: Its salt.
  ///   - base: Where in it the frames will stand.
  ///   - durable: How many of its bytes are known to be durable.
  ///   - firstNumber: The number of the first frame.
  mutating func reset(segment: UInt32, salt: UInt32, base: Int64, durable: Int64, firstNumber: UInt64) {
    bytes.removeAll(keepingCapacity: bytes.count <= FrameBuffer.keptCapacity)
    count = 0
    frameStart = 0
    self.segment = segment
    self.salt = salt
    self.base = base
    self.durable = durable
    self.firstNumber = firstNumber
  }

  /// The bytes of records in the frame that has been begun.
  var bodyLength: Int { bytes.count - frameStart - QueueFrame.headLength }

  /// The payload of an item whose record is here, and in no file yet; `nil` for any other.
  func payload(at place: QueuePlace) -> ArraySlice<UInt8>? {
    // Behind its checksum.
    let start = Int(Int64(place.offset) - base) + 4
    guard place.segment == segment, start >= 4, start + Int(place.length) <= bytes.count else { return nil }
    return bytes[start..<start + Int(place.length)]
  }

  mutating func beginFrame() {
    frameStart = bytes.count
    QueueFrame.begin(in: &bytes)
  }

  /// Where the payload of an item will stand whose record comes next.
  func place(keyLength: Int, phase: QueueItem.Phase, payloadLength: Int) -> QueuePlace {
    let offset = base + Int64(bytes.count + QueueRecord.payloadOffset(keyLength: keyLength, phase: phase))
    return QueuePlace(segment: segment, offset: UInt32(clamping: offset), length: UInt32(clamping: payloadLength))
  }

  mutating func append(
    _ record: QueueRecord, payload: some Collection<UInt8> = [UInt8](), checksum: UInt32? = nil
  ) {
    record.append(to: &bytes, payload: payload, checksum: checksum)
  }

  mutating func endFrame() {
    QueueFrame.end(
      in: &bytes, at: frameStart, number: firstNumber + UInt64(count), durable: durable, salt: salt)
    count += 1
  }

  /// Leaves out the frame that has been begun.
  mutating func dropFrame() {
    bytes.removeSubrange(frameStart...)
  }
}
