import LarderFiles

/// Goes through the frames of a segment, and over what is damaged between them: plain state, which is given the bytes.
struct SegmentScanner {
  /// A frame or damage.
  enum Found: Sendable {
    /// A good frame, and its bytes without the head.
    case frame(QueueFrame, offset: Int64, body: ArraySlice<UInt8>)
    /// Bytes that are no frame, up to the next good one or the end.
    case damage(Range<Int64>)
  }

  private static let windowLength: Int64 = 1 << 20

  private let salt: UInt32
  private let version: UInt32
  private let headLength: Int
  private let end: Int64
  private let read: (Range<Int64>) throws(FileError) -> [UInt8]

  private var offset: Int64
  private var lastNumber: UInt64

  private var window: [UInt8] = []
  private var windowStart: Int64 = 0

  /// How many bytes may still be checked in search of a frame behind damage.
  ///
  /// Bytes can be made up so that each looks like the beginning of a long frame.
  private var searchBudget: Int64

  /// Makes a scanner.
  ///
  /// - Parameters:
  ///   - range: Where the frames begin and end.
  ///   - firstNumber: The number of the first.
  ///   - salt: The salt of the segment.
  ///   - version: The version of its format; defaults to the present one.
  ///   - read: Gives bytes of the file: all that are asked for, or as many as there are.
  init(
    _ range: Range<Int64>, firstNumber: UInt64, salt: UInt32, version: UInt32 = SegmentHeader.version,
    read: @escaping (Range<Int64>) throws(FileError) -> [UInt8]
  ) {
    self.salt = salt
    self.version = version
    headLength = QueueFrame.headLength(inVersion: version)
    self.read = read
    offset = range.lowerBound
    end = range.upperBound
    lastNumber = firstNumber - 1
    searchBudget = 16 * Int64(range.count) + SegmentScanner.windowLength
  }

  /// Finds what comes next; `nil` at the end.
  mutating func next() throws(FileError) -> Found? {
    guard offset < end else { return nil }
    if let (frame, bytes) = try frame(at: offset, within: 0) {
      defer { offset += Int64(bytes.count) }
      lastNumber = frame.number
      return .frame(frame, offset: offset, body: bytes.dropFirst(headLength))
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

  /// The good frame that begins somewhere.
  ///
  /// - Parameters:
  ///   - offset: Where.
  ///   - distance: How many bytes are left out before it.
  private mutating func frame(
    at offset: Int64, within distance: Int64
  ) throws(FileError) -> (QueueFrame, ArraySlice<UInt8>)? {
    guard let head = try bytes(at: offset, count: headLength), let frame = QueueFrame(head: head, version: version)
    else { return nil }
    // Frames are numbered one after the other, and none is shorter than its head.
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
