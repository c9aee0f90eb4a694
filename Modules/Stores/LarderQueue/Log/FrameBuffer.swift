import Larder

/// The frames of a group of calls, before they are written.
///
/// An item has a frame of its own, so that a bit that is flipped on the disk costs one item. Small records share a frame,
/// those of several calls too: calls of one group are told together that their changes are there.
struct FrameBuffer: Sendable {
  private(set) var bytes: [UInt8] = []
  /// How many frames there are, the open one aside.
  private(set) var count = 0

  private var segment: UInt32 = 0
  private var salt: UInt32 = 0
  /// Where in the segment the bytes will stand.
  private var base: Int64 = 0
  private var durable: Int64 = 0
  private var firstNumber: UInt64 = 1
  /// How far the clock on the wall is ahead of the one that the times of records go by, in microseconds.
  private var clockOffset: Int64 = 0

  /// A frame whose head is not written yet.
  private struct OpenFrame: Sendable {
    var start: Int
    /// Whether it is that of an item, which nothing else joins.
    var isItem: Bool
  }

  private struct CallStart: Sendable {
    var size = 0
    var count = 0
    var openFrame: OpenFrame?
  }

  private var openFrame: OpenFrame?
  /// The state to which dropping a call returns.
  private var callStart = CallStart()

  /// More room than this is not kept from group to group.
  private static let keptCapacity = 1 << 20

  /// A frame of small records takes no more once it has so many bytes of them: damage costs what is in a frame.
  private static let fullBody = 512

  init() {}

  /// Begins anew, for a place in a segment.
  ///
  /// - Parameters:
  ///   - segment: The number of the segment.
  ///   - salt: Its salt.
  ///   - base: Where in it the frames will stand.
  ///   - durable: How many of its bytes are known to be durable.
  ///   - firstNumber: The number of the first frame.
  ///   - clockOffset: The difference that is added to times as they are written, in microseconds; defaults to 0.
  mutating func reset(
    segment: UInt32, salt: UInt32, base: Int64, durable: Int64, firstNumber: UInt64, clockOffset: Int64 = 0
  ) {
    bytes.removeAll(keepingCapacity: bytes.count <= FrameBuffer.keptCapacity)
    count = 0
    openFrame = nil
    callStart = CallStart()
    self.segment = segment
    self.salt = salt
    self.base = base
    self.durable = durable
    self.firstNumber = firstNumber
    self.clockOffset = clockOffset
  }

  /// How many bytes the call that goes on has added.
  var callLength: Int { bytes.count - callStart.size }

  /// The payload of an item whose record is here, and in no file yet; `nil` for any other.
  func payload(at place: QueuePlace) -> ArraySlice<UInt8>? {
    // Behind its checksum.
    let start = Int(Int64(place.offset) - base) + 4
    guard place.segment == segment, start >= 4, start + Int(place.length) <= bytes.count else { return nil }
    return bytes[start..<start + Int(place.length)]
  }

  /// Begins a call; it may go on with the last frame of the one before.
  mutating func beginCall() {
    callStart = CallStart(size: bytes.count, count: count, openFrame: openFrame)
  }

  /// Leaves out what the call has added.
  mutating func dropCall() {
    bytes.removeSubrange(callStart.size...)
    count = callStart.count
    openFrame = callStart.openFrame
  }

  /// Where the payload of an item will stand whose record comes next.
  func place(payloadLength: Int) -> QueuePlace {
    let offset = base + Int64(bytes.count + QueueFrame.headLength + QueueRecord.payloadOffset)
    return QueuePlace(segment: segment, offset: UInt32(clamping: offset), length: UInt32(clamping: payloadLength))
  }

  /// Appends a record.
  ///
  /// - Parameters:
  ///   - record: The record.
  ///   - payload: The payload, where the record is an item.
  ///   - checksum: The checksum of the payload, where it is known, and stays as it is.
  mutating func append(
    _ record: QueueRecord, payload: some Collection<UInt8> = [UInt8](), checksum: UInt32? = nil
  ) {
    let isItem = if case .put = record { true } else { false }
    if let open = openFrame,
      isItem || open.isItem || bytes.count - open.start - QueueFrame.headLength >= FrameBuffer.fullBody
    {
      endFrame(isContinued: callLength > 0)
    }
    if openFrame == nil {
      openFrame = OpenFrame(start: bytes.count, isItem: isItem)
      QueueFrame.begin(in: &bytes)
    }
    record.append(to: &bytes, payload: payload, checksum: checksum, clockOffset: clockOffset)
  }

  /// Appends the frame that closing writes.
  mutating func appendClosingFrame() {
    endFrame(isContinued: false)
    openFrame = OpenFrame(start: bytes.count, isItem: true)
    QueueFrame.begin(in: &bytes)
    endFrame(isContinued: false)
  }

  /// Ends the group.
  mutating func finish() {
    endFrame(isContinued: false)
  }

  private mutating func endFrame(isContinued: Bool) {
    guard let start = openFrame?.start else { return }
    QueueFrame.end(
      in: &bytes, at: start, number: firstNumber + UInt64(count), durable: durable, salt: salt,
      isContinued: isContinued)
    count += 1
    openFrame = nil
  }
}
