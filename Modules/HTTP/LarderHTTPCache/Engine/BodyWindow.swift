#if HTTPCache
/// The bytes of a body that is being fetched, between the origin, the store and the readers.
///
/// A body has one producer, which appends the bytes of the origin, at most one writer, which stores them, and any number
/// of readers with a position each. The window keeps a bounded part of the body in memory. It drops bytes only when it
/// needs room:
///
/// - While the body is stored, it drops bytes that the store has. A reader that needs them reads them from the store,
///   so a slow reader delays neither the producer nor another reader.
/// - Otherwise, it drops bytes that every reader has read. The producer then waits for the slowest reader. A reader
///   that makes others wait for longer than a limit is cut off, so the others continue without it.
///
/// The memory is bounded whatever the number of readers: before a chunk of the producer is appended, the window has less
/// than ``limit`` bytes and one buffer.
struct BodyWindow: Sendable {
  /// The number that identifies a reader.
  typealias Reader = UInt64

  /// The next step of a reader.
  enum Step: Sendable, Equatable {
    /// These bytes follow.
    ///
    /// The reader's position is now after them.
    case bytes([UInt8])
    /// The bytes of this range follow, and only the store has them.
    ///
    /// The reader must call ``advance(_:to:)`` after it has read them.
    case stored(Range<Int64>)
    /// The next bytes have not arrived yet.
    case wait
    /// The reader has read all its bytes.
    case end
    /// The body ended before its end.
    case failure
    /// The reader was cut off, because others have waited for it for too long.
    case cutOff
  }

  /// The room for more bytes, which decides whether the producer may append them.
  enum Room: Sendable, Equatable {
    /// It may.
    case free
    /// It must wait until the store or a reader has made progress.
    case full
    /// It must wait as well, but only until this time, at which the readers that others wait for are cut off.
    case fullUntil(Duration)
  }

  /// The end of a body.
  enum Ending: Sendable, Equatable {
    /// The body has arrived as a whole.
    case complete
    /// The body was cut short, or its producer has failed.
    case failed
  }

  private struct Buffer: Sendable {
    let start: Int64
    var bytes: [UInt8]
    var end: Int64 { start + Int64(bytes.count) }
  }

  private struct ReaderState: Sendable {
    var position: Int64
    /// The end of the range to read; `nil` for the end of the body.
    let end: Int64?
    /// A Boolean value that indicates whether the reader has found no bytes at its position, and waits for them.
    var isWaiting = false
    /// The time that others have waited for this reader.
    var delay: Duration = .zero
    var isCutOff = false

    /// A Boolean value that indicates whether the reader will need bytes from its position on.
    var isReading: Bool { !isCutOff && position < end ?? .max }
  }

  /// A time when readers wait for others.
  private struct Stall: Sendable {
    let start: Duration
    /// The readers that the others wait for.
    let causes: [Reader]
  }

  /// The number of bytes below which arriving bytes are added to the last buffer, so a body that arrives in tiny chunks
  /// needs little more memory than its bytes.
  static let smallBuffer = 16 << 10

  /// The number of bytes from which the window is full.
  let limit: Int

  /// The number of bytes that are worth a batch for the store before the end of the body.
  let smallestBatch: Int

  /// The largest number of bytes in a batch.
  let largestBatch: Int

  /// The time, altogether, for which a reader may make others wait.
  let longestDelay: Duration

  private var buffers: [Buffer] = []
  /// The index of the first buffer that was not dropped.
  private var firstBuffer = 0
  private var readers: [Reader: ReaderState] = [:]
  private var nextReader: Reader = 0
  private var stall: Stall?

  /// The offset of the first byte in memory.
  private(set) var start: Int64 = 0

  /// The number of bytes that have arrived.
  private(set) var end: Int64 = 0

  /// The number of bytes that the writer has taken, counted from the beginning of the body.
  private(set) var taken: Int64 = 0

  /// The number of bytes that the store has, counted from the beginning of the body.
  private(set) var persisted: Int64 = 0

  /// A Boolean value that indicates whether the body is being stored.
  private(set) var isStoring: Bool

  /// The end of the body, or `nil` if more bytes may arrive.
  private(set) var ending: Ending?

  /// Creates an empty window.
  ///
  /// - Parameters:
  ///   - isStoring: A Boolean value that indicates whether a writer stores the body.
  ///   - limit: The number of bytes from which the window is full.
  ///   - smallestBatch: The number of bytes that are worth a batch for the store before the end of the body.
  ///   - largestBatch: The largest number of bytes in a batch.
  ///   - longestDelay: The time, altogether, for which a reader may make others wait. Defaults to one second.
  init(
    isStoring: Bool, limit: Int = 2 << 20, smallestBatch: Int = 256 << 10, largestBatch: Int = 1 << 20,
    longestDelay: Duration = .seconds(1)
  ) {
    self.isStoring = isStoring
    self.limit = limit
    self.smallestBatch = smallestBatch
    self.largestBatch = largestBatch
    self.longestDelay = longestDelay
  }

  /// The number of readers that were cut off.
  private(set) var cutOffCount = 0

  /// The number of bytes in memory.
  var byteCount: Int { Int(end - start) }

  // MARK: The producer

  /// Returns whether the producer may append more bytes, after dropping bytes if the window is full.
  ///
  /// While the body is stored, the window is full if too many bytes are not in the store yet. Otherwise, it is full if too
  /// many are in memory. Call the method again whenever a reader or the store has made progress, and when the time of
  /// ``Room/fullUntil(_:)`` has come.
  ///
  /// - Parameter now: The current time. It never decreases.
  mutating func makeRoom(at now: Duration) -> Room {
    endStall(at: now)
    if dropBytes() { return .free }
    guard !isStoring, readers.values.contains(where: { $0.isWaiting && $0.position == end }) else { return .full }
    let causes = readers.filter { $0.value.isReading && $0.value.position < firstDroppable }
    let most = causes.values.lazy.map(\.delay).max() ?? .zero
    guard most >= longestDelay else {
      stall = Stall(start: now, causes: Array(causes.keys))
      return .fullUntil(now + longestDelay - most)
    }
    for (reader, state) in causes where state.delay >= longestDelay {
      readers[reader]?.isCutOff = true
      cutOffCount += 1
    }
    return makeRoom(at: now)
  }

  /// Counts the time since readers have begun to wait for others.
  private mutating func endStall(at now: Duration) {
    guard let stall else { return }
    for reader in stall.causes { readers[reader]?.delay += now - stall.start }
    self.stall = nil
  }

  /// Drops the bytes that the store has, or that every reader has read, until the window is no longer full.
  ///
  /// - Returns: A Boolean value that indicates whether there is room.
  private mutating func dropBytes() -> Bool {
    guard byteCount >= limit else { return true }
    let droppable = isStoring ? persisted : slowestPosition
    while byteCount >= limit, firstBuffer < buffers.count, firstDroppable <= droppable {
      start = firstDroppable
      buffers[firstBuffer].bytes = []
      firstBuffer += 1
    }
    if firstBuffer > 64, firstBuffer * 2 > buffers.count {
      buffers.removeFirst(firstBuffer)
      firstBuffer = 0
    }
    return byteCount < limit || (isStoring && end - persisted < limit)
  }

  /// The position that every reader must have reached before the first buffer can be dropped.
  private var firstDroppable: Int64 { firstBuffer < buffers.count ? buffers[firstBuffer].end : end }

  private var slowestPosition: Int64 {
    readers.values.lazy.filter(\.isReading).map(\.position).min() ?? end
  }

  /// Appends bytes that have arrived.
  mutating func append(_ bytes: [UInt8]) {
    guard !bytes.isEmpty, ending == nil else { return }
    if let last = buffers.indices.last, last >= firstBuffer,
      buffers[last].bytes.count + bytes.count <= BodyWindow.smallBuffer
    {
      buffers[last].bytes += bytes
    } else {
      buffers.append(Buffer(start: end, bytes: bytes))
    }
    end += Int64(bytes.count)
  }

  /// Records the end of the body.
  ///
  /// A later end is ignored.
  mutating func finish(_ ending: Ending) {
    if self.ending == nil { self.ending = ending }
  }

  // MARK: The writer

  /// Returns the next bytes for the store, or `nil` if there is no batch yet.
  ///
  /// A batch is due when there are enough bytes for it, and at the end of the body. A body that ends before the first batch
  /// is due is one batch, which is empty for an empty body.
  ///
  /// - Returns: The bytes, and whether they are the last ones.
  mutating func nextBatch() -> (bytes: [UInt8], isLast: Bool)? {
    guard isStoring, ending != .failed else { return nil }
    guard end - taken >= smallestBatch || ending == .complete else { return nil }
    let stop = min(end, taken + Int64(largestBatch))
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Int(stop - taken))
    var index = indexOfBuffer(at: taken)
    while index < buffers.count, buffers[index].start < stop {
      let buffer = buffers[index]
      let part = (taken..<stop).clamped(to: buffer.start..<buffer.end)
      bytes += buffer.bytes[Int(part.lowerBound - buffer.start)..<Int(part.upperBound - buffer.start)]
      index += 1
    }
    taken = stop
    return (bytes, ending == .complete && stop == end)
  }

  /// Returns the index of the buffer that contains an offset in memory.
  private func indexOfBuffer(at offset: Int64) -> Int {
    var (low, high) = (firstBuffer, buffers.count)
    while low < high {
      let middle = (low + high) / 2
      if buffers[middle].end <= offset { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Records how many bytes the store has, counted from the beginning of the body.
  mutating func notePersisted(_ count: Int64) {
    persisted = count
  }

  /// Records that the body is no longer being stored.
  ///
  /// The bytes that the store has must stay readable for the readers that need them.
  mutating func stopStoring() {
    isStoring = false
  }

  // MARK: Readers

  /// A Boolean value that indicates whether there is a reader.
  var hasReaders: Bool { !readers.isEmpty }

  /// Adds a reader.
  ///
  /// - Parameter range: The bytes to read; `nil` for the whole body.
  mutating func addReader(_ range: Range<Int64>? = nil) -> Reader {
    nextReader += 1
    readers[nextReader] = ReaderState(position: range?.lowerBound ?? 0, end: range?.upperBound)
    return nextReader
  }

  /// Returns the next step of a reader.
  mutating func step(_ reader: Reader) -> Step {
    guard let state = readers[reader] else { return .end }
    readers[reader]?.isWaiting = false
    let (position, limit) = (state.position, state.end ?? .max)
    if position >= limit { return .end }
    if state.isCutOff { return .cutOff }
    if position < start { return .stored(position..<min(start, limit, position + Int64(smallestBatch))) }
    guard position < end else {
      switch ending {
      case nil:
        readers[reader]?.isWaiting = true
        return .wait
      case .complete where state.end == nil: return .end
      case .complete, .failed: return .failure
      }
    }
    let buffer = buffers[indexOfBuffer(at: position)]
    let stop = min(buffer.end, limit)
    readers[reader]?.position = stop
    // A large buffer is shared with the reader. A small one is copied, because more bytes may be added to it.
    if position == buffer.start, stop == buffer.end, buffer.bytes.count > BodyWindow.smallBuffer {
      return .bytes(buffer.bytes)
    }
    return .bytes(Array(buffer.bytes[Int(position - buffer.start)..<Int(stop - buffer.start)]))
  }

  /// Records that a reader has read bytes from the store.
  mutating func advance(_ reader: Reader, to position: Int64) {
    readers[reader]?.position = position
  }

  /// Records that a reader does not wait for bytes any more, although none have arrived.
  mutating func stopWaiting(_ reader: Reader) {
    readers[reader]?.isWaiting = false
  }

  /// Removes a reader.
  mutating func removeReader(_ reader: Reader) {
    readers[reader] = nil
  }
}
#endif
