import Larder

/// A frame of the log: records after a header with their checksum.
///
/// The changes of one call are in one frame, or in several frames of which all but the last are marked as continued.
/// They take effect together or not at all.
///
/// | Bytes | Content |
/// | --- | --- |
/// | 0 to 3 | checksum: the CRC-32C of all following bytes, combined by exclusive or with the salt of the segment |
/// | 4 to 7 | length of the records in bytes, 0 when closing; highest bit: the next frame belongs to the same call |
/// | 8 to 11 | number of the frame in its segment, from 1 |
/// | 12 to 15 | number of bytes of this segment that were known to be durable when the frame was written |
struct QueueFrame: Sendable, Hashable {
  static let headLength = 16

  /// The maximum size of the records in a frame, in bytes.
  static let maximumBodyLength = 1 << 30

  private static let continuationFlag: UInt32 = 1 << 31

  var checksum: UInt32
  var bodyLength: Int
  /// A Boolean value that indicates whether the next frame belongs to the same call.
  var isContinued = false
  var number: UInt64
  var durable: Int64

  /// A Boolean value that indicates whether closing the queue wrote the frame, so everything before it is durable.
  var isClosing: Bool { bodyLength == 0 && !isContinued }

  /// Creates a frame from its header; `nil` if the bytes cannot be a header.
  init?(head: ArraySlice<UInt8>) {
    var reader = ByteReader(head)
    guard let checksum = reader.read(UInt32.self), let length = reader.read(UInt32.self),
      let number = reader.read(UInt32.self), let durable = reader.read(UInt32.self)
    else { return nil }
    bodyLength = Int(length & ~QueueFrame.continuationFlag)
    guard bodyLength <= QueueFrame.maximumBodyLength else { return nil }
    isContinued = length & QueueFrame.continuationFlag != 0
    (self.checksum, self.number, self.durable) = (checksum, UInt64(number), Int64(durable))
  }

  /// Returns whether the checksum matches the bytes of a frame.
  ///
  /// - Parameters:
  ///   - bytes: The frame, including its header.
  ///   - salt: The salt of the segment.
  func matches(_ bytes: ArraySlice<UInt8>, salt: UInt32) -> Bool {
    CRC32C.checksum(of: bytes.dropFirst(4)) ^ salt == checksum
  }

  /// Reserves space for the header of a frame, before its records are appended.
  static func begin(in bytes: inout [UInt8]) {
    bytes.append(contentsOf: repeatElement(0, count: headLength))
  }

  /// Writes the header of a frame, after its records were appended.
  ///
  /// - Parameters:
  ///   - bytes: The buffer. It ends with the frame.
  ///   - start: The offset of the frame in the buffer.
  ///   - number: The number of the frame.
  ///   - durable: The number of bytes of the segment that are known to be durable.
  ///   - salt: The salt of the segment.
  ///   - isContinued: A Boolean value that indicates whether the next frame belongs to the same call. Defaults to
  ///     `false`.
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

/// The frames of a group of calls, before they are written.
///
/// Each item has a frame of its own, so a flipped bit on the disk costs one item. Small records share a frame, even
/// those of several calls, because all calls of a group succeed together.
struct FrameBuffer: Sendable {
  private(set) var bytes: [UInt8] = []
  /// The number of frames, not counting the open one.
  private(set) var count = 0

  private var segment: UInt32 = 0
  private var salt: UInt32 = 0
  /// The offset in the segment at which the bytes will be written.
  private var base: Int64 = 0
  private var durable: Int64 = 0
  private var firstNumber: UInt64 = 1
  /// The difference between the wall clock and the clock of the records' times, in microseconds.
  private var clockOffset: Int64 = 0

  /// A frame whose header is not written yet, and whether it is that of an item, which no other record joins.
  private typealias OpenFrame = (start: Int, isItem: Bool)

  private struct CallStart: Sendable {
    var size = 0
    var count = 0
    var openFrame: OpenFrame?
  }

  private var openFrame: OpenFrame?
  /// The state that dropping the current call restores.
  private var callStart = CallStart()

  /// The maximum capacity that is kept from group to group, in bytes.
  private static let keptCapacity = 1 << 20

  /// The size at which a frame of small records takes no more of them, in bytes.
  ///
  /// It limits the cost of damage.
  private static let fullBody = 512

  /// Removes all frames, and sets the location of the next ones.
  ///
  /// - Parameters:
  ///   - segment: The number of the segment.
  ///   - salt: The salt of the segment.
  ///   - base: The offset in the segment at which the frames will be written.
  ///   - durable: The number of bytes of the segment that are known to be durable.
  ///   - firstNumber: The number of the first frame.
  ///   - clockOffset: The difference added to times when they are written, in microseconds. Defaults to 0.
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

  /// The number of bytes that the current call has added.
  var callLength: Int { bytes.count - callStart.size }

  /// Returns the payload of an item whose record is in this buffer and in no file yet; `nil` for any other item.
  func payload(at place: QueuePlace) -> ArraySlice<UInt8>? {
    // The payload follows its checksum.
    let start = Int(Int64(place.offset) - base) + 4
    guard place.segment == segment, start >= 4, start + Int(place.length) <= bytes.count else { return nil }
    return bytes[start..<start + Int(place.length)]
  }

  /// Begins a call that may continue the last frame of the call before.
  mutating func beginCall() {
    callStart = CallStart(size: bytes.count, count: count, openFrame: openFrame)
  }

  /// Removes the records of the current call.
  mutating func dropCall() {
    bytes.removeSubrange(callStart.size...)
    count = callStart.count
    openFrame = callStart.openFrame
  }

  /// Appends the record of an item, in a frame of its own.
  ///
  /// - Parameters:
  ///   - state: The state of the item.
  ///   - payload: The payload.
  ///   - checksum: The checksum of the payload, if it is known and must be preserved. Defaults to `nil`.
  /// - Returns: The location of the payload.
  mutating func append(
    _ state: ItemState, payload: some Collection<UInt8>, checksum: UInt32? = nil
  ) -> QueuePlace {
    beginFrame(isItem: true)
    let offset = base + Int64(bytes.count + QueueRecord.payloadOffset)
    QueueRecord.put(state).append(to: &bytes, payload: payload, checksum: checksum, clockOffset: clockOffset)
    return QueuePlace(
      segment: segment, offset: UInt32(clamping: offset), length: UInt32(clamping: payload.count))
  }

  /// Appends any other record.
  mutating func append(_ record: QueueRecord) {
    beginFrame(isItem: false)
    record.append(to: &bytes, clockOffset: clockOffset)
  }

  /// Begins a frame, unless the next record joins the open one.
  private mutating func beginFrame(isItem: Bool) {
    if let open = openFrame,
      isItem || open.isItem || bytes.count - open.start - QueueFrame.headLength >= FrameBuffer.fullBody
    {
      endFrame(isContinued: callLength > 0)
    }
    guard openFrame == nil else { return }
    openFrame = (bytes.count, isItem)
    QueueFrame.begin(in: &bytes)
  }

  /// Appends the frame that marks the log as closed.
  mutating func appendClosingFrame() {
    endFrame(isContinued: false)
    beginFrame(isItem: true)
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
