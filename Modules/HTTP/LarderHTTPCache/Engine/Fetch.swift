#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import Larder

/// The storage of a cache.
typealias CacheStorage = ResponseStorage<AnyDataStore<[UInt8]>>
typealias CacheReader = BodyReader<AnyDataStore<[UInt8]>>
typealias CacheWriter = BodyWriter<AnyDataStore<[UInt8]>>

/// A request that was forwarded to the origin, and its response while that is received.
///
/// The fetch has a task of its own, so no caller depends on another one. Callers first wait for ``outcome``, then read
/// the body. When no caller is left before the end, the task is cancelled.
final class Fetch: Sendable {
  /// The origin's answer.
  enum Outcome: Sendable {
    case response(Received)
    /// The origin gave no response.
    case failure(any Error)
  }

  /// A response whose head was received, and the decision on it.
  struct Received: Sendable {
    /// The head.
    let head: HTTPResponse

    /// The request that was forwarded.
    let exchange: Exchange

    let decision: ResponseDecision
    let requestTime: Date
    let responseTime: Date

    /// The stored responses that the positions of the decision refer to.
    let entries: [StoredEntry]

    /// A reader of the stored response that is the answer or a part of it.
    let reader: CacheReader?

    /// A Boolean value that indicates whether the body is being stored, so other callers may read it.
    let isStoring: Bool

    /// A Boolean value that indicates whether the origin's response has a body for the caller.
    let hasBody: Bool
  }

  /// The next work of the task that stores the body.
  enum Batch: Sendable {
    case bytes([UInt8], isLast: Bool)
    /// The body is not stored any more, because it has failed or the store is too slow.
    case stop
  }

  private struct State {
    /// The number of callers that wait for the head, or have it and do not read the body yet.
    var interest = 1
    var window = BodyWindow(isStoring: false)
    var writer: CacheWriter?
    var failure: (any Error)?
    var task: Task<Void, Never>?
    var isCancelled = false
    /// A Boolean value that indicates whether the fetch is the one that finds out if the origin works again.
    var isProbe: Bool
    /// A Boolean value that indicates whether the fetch continues without callers.
    var isDetached: Bool
    /// Readers and the storing task wait for bytes, and for the end of the body.
    var bytesSignal: SharedResult<Void>?
    /// The fetch waits for room, and the storing task for the last reader that needs the store.
    var roomSignal: SharedResult<Void>?

    /// Returns what a party waits for.
    static func wait(for signal: inout SharedResult<Void>?) -> SharedResult<Void> {
      if let signal { return signal }
      let new = SharedResult<Void>()
      signal = new
      return new
    }

    /// Returns the task to cancel if there is no caller left, and marks the fetch as cancelled.
    mutating func takeTaskWithoutCallers() -> Task<Void, Never>? {
      guard interest == 0, !window.hasReaders, !isDetached, !isCancelled else { return nil }
      isCancelled = true
      return task
    }

    /// Returns whether the fetch may append more bytes.
    mutating func makeRoom(at now: Duration) -> BodyWindow.Room {
      // A caller that has not begun to read needs the whole body. It begins as soon as its task runs.
      if interest > 0, !window.isStoring { return window.byteCount < window.limit ? .free : .full }
      return window.makeRoom(at: now)
    }
  }

  /// The answer of the origin, once there is one.
  let outcome = SharedResult<Outcome>()

  /// The end of all changes of the store that the fetch makes.
  let settlement = SharedResult<Void>()

  private let state: Locked<State>

  /// A Boolean value that indicates whether the fetch refreshes a stored response without a caller.
  let isBackground: Bool

  /// The time when the fetch began.
  let start: Duration

  /// The time from which on an error of the fetch is that of its caller, who has waited for long enough, or `nil`.
  let deadline: Duration?

  /// Creates a fetch with one caller.
  ///
  /// - Parameters:
  ///   - start: The current time.
  ///   - deadline: The time until which the caller waits; `nil` for no limit.
  ///   - isBackground: A Boolean value that indicates whether the fetch continues without callers. Defaults to `false`.
  ///   - isProbe: A Boolean value that indicates whether the fetch finds out if an origin that has failed works again.
  ///     Defaults to `false`.
  init(at start: Duration, until deadline: Duration? = nil, isBackground: Bool = false, isProbe: Bool = false) {
    self.start = start
    // An origin that is silent for longer fails, whatever the caller wanted.
    self.deadline = deadline.flatMap { $0 < start + OriginFailures.shortestOutage ? $0 : nil }
    self.isBackground = isBackground
    state = Locked(State(isProbe: isProbe, isDetached: isBackground))
  }

  /// A Boolean value that indicates whether the fetch finds out if an origin that has failed works again.
  var isProbe: Bool { state.withLock { $0.isProbe } }

  /// Continues the fetch without callers, to find out if the origin works again.
  func becomeProbe() {
    state.withLock { state in
      state.isProbe = true
      state.isDetached = true
    }
  }

  /// The reason why there may be more room in the window.
  private enum RoomChange {
    case none
    /// The store has more bytes, or the body is not stored any more.
    case byStore
    /// A reader has read bytes, or has left.
    ///
    /// This makes room only if the body is not stored, and must not extend the time that the store has.
    case byReader
  }

  /// Changes the state, and resumes those who wait for the change.
  ///
  /// - Parameters:
  ///   - bytes: A Boolean value that indicates whether there are more bytes, or their end.
  ///   - room: The reason why there may be more room.
  private func change<Result>(
    bytes: Bool = false, room: RoomChange = .none, _ body: (inout State) -> sending Result
  ) -> sending Result {
    let (result, signals) = state.withLock { state in
      let result = body(&state)
      var signals: (SharedResult<Void>?, SharedResult<Void>?) = (nil, nil)
      if bytes { swap(&signals.0, &state.bytesSignal) }
      if room == .byStore || (room == .byReader && !state.window.isStoring) { swap(&signals.1, &state.roomSignal) }
      return (result, signals)
    }
    signals.0?.finish()
    signals.1?.finish()
    return result
  }

  // MARK: Callers

  /// Starts the task of the fetch.
  func start(_ body: @escaping @concurrent @Sendable () async -> Void) {
    let task = Task { await body() }
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  /// Adds a caller that waits for the outcome.
  ///
  /// - Returns: A Boolean value that indicates whether the fetch continues. If not, it was cancelled because it had no
  ///   caller.
  func join() -> Bool {
    state.withLock { state in
      guard !state.isCancelled else { return false }
      state.interest += 1
      return true
    }
  }

  /// A Boolean value that indicates whether the fetch has one caller, and no reader.
  var hasOneCaller: Bool { state.withLock { $0.interest == 1 && !$0.window.hasReaders } }

  /// Removes a caller that has its answer, is a reader now, or does not wait any longer.
  func leave() {
    let task = change(room: .byReader) { state in
      state.interest -= 1
      return state.takeTaskWithoutCallers()
    }
    task?.cancel()
  }

  /// Adds a reader of the body.
  ///
  /// The caller must have joined the fetch, and leave it afterward.
  ///
  /// - Parameter range: The bytes to read, counted from the beginning of the body. Defaults to `nil`, for all.
  /// - Returns: The reader, or `nil` if the beginning of the body is not there any more.
  func addReader(_ range: Range<Int64>? = nil) -> BodyWindow.Reader? {
    state.withLock { state in
      // The window may have dropped bytes that the store has before the body was not stored any more.
      guard state.window.isStoring || state.window.start <= state.window.persisted else { return nil }
      return state.window.addReader(range)
    }
  }

  /// Removes a reader.
  func removeReader(_ reader: BodyWindow.Reader) {
    let task = change(room: .byReader) { state in
      state.window.removeReader(reader)
      return state.takeTaskWithoutCallers()
    }
    task?.cancel()
  }

  /// Continues the fetch without callers, because all that remains is to store what it has received.
  func detach() {
    state.withLock { $0.isDetached = true }
  }

  /// Undoes ``detach()``: the fetch is cancelled if it has no caller, or as soon as it has none.
  func attach() {
    let task = state.withLock { state in
      state.isDetached = false
      return state.takeTaskWithoutCallers()
    }
    task?.cancel()
  }

  /// Returns the next bytes for a reader, or `nil` at the end.
  ///
  /// - Parameters:
  ///   - reader: The reader.
  ///   - calls: The calls of the store, in which a slow reader finds bytes that are no longer in memory.
  func next(_ reader: BodyWindow.Reader, _ calls: StoreCalls) async throws -> [UInt8]? {
    while true {
      let (step, signal, writer, failure) = change(room: .byReader) { state in
        let step = state.window.step(reader)
        let signal = step == .wait ? State.wait(for: &state.bytesSignal) : nil
        return (step, signal, state.writer, state.failure)
      }
      switch step {
      case .bytes(let bytes): return bytes
      case .stored(let range):
        guard let writer else { throw HTTPCacheError.incompleteBody }
        let bytes = try await storedBytes(range, of: writer, calls)
        change(room: .byReader) { $0.window.advance(reader, to: range.lowerBound + Int64(bytes.count)) }
        return bytes
      case .wait:
        do {
          try await signal?.value()
        } catch {
          change(room: .byReader) { $0.window.stopWaiting(reader) }
          throw error
        }
      case .end: return nil
      case .cutOff: throw HTTPCacheError.readerTooSlow
      case .failure: throw failure ?? HTTPCacheError.incompleteBody
      }
    }
  }

  private func storedBytes(_ range: Range<Int64>, of writer: CacheWriter, _ calls: StoreCalls) async throws -> [UInt8] {
    do {
      return try await calls.reading { Array(try await writer.bytes(from: range.lowerBound, upTo: range.upperBound)) }
    } catch let error as CancellationError {
      throw error
    } catch {
      throw HTTPCacheError.unreadableBody
    }
  }

  // MARK: The task of the fetch

  /// Begins the body.
  ///
  /// - Parameters:
  ///   - writer: The writer that stores it, or `nil` if it is not stored.
  ///   - longestDelay: The time that a reader may make others wait while the body is not stored.
  func beginBody(_ writer: CacheWriter?, longestDelay: Duration) {
    state.withLock { state in
      state.writer = writer
      state.window = BodyWindow(isStoring: writer != nil, longestDelay: longestDelay)
    }
  }

  /// Appends bytes of the body, and waits until there is room for more.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - limit: The time that the store may take to make room. After it, the body is not stored any more.
  /// - Throws: `CancellationError` if no caller is left.
  func append(_ bytes: [UInt8], stallLimit limit: TimeLimit) async throws {
    change(bytes: true) { $0.window.append(bytes) }
    while true {
      try Task.checkCancellation()
      let (room, signal, isStoring, hasCutOff) = change { state in
        let count = state.window.cutOffCount
        let room = state.makeRoom(at: limit.now)
        let signal = room == .free ? nil : State.wait(for: &state.roomSignal)
        return (room, signal, state.window.isStoring, state.window.cutOffCount > count)
      }
      // Readers that were cut off no longer need what the store has.
      if hasCutOff { change(room: .byReader) { _ in } }
      do {
        switch room {
        case .free: return
        case .full: try await signal?.value(within: isStoring ? limit : nil)
        case .fullUntil(let deadline): try await signal?.value(within: limit.until(deadline))
        }
      } catch is SharedResult<Void>.TimedOut {
        if isStoring { stopStoring() }
      }
    }
  }

  /// A Boolean value that indicates whether the body is being stored.
  var isStoring: Bool { state.withLock { $0.window.isStoring } }

  /// The number of bytes that have arrived.
  var receivedCount: Int64 { state.withLock { $0.window.end } }

  /// Ends the body.
  ///
  /// - Parameter failure: The error of the readers if the body was cut short.
  func finishBody(_ failure: (any Error)? = nil) {
    change(bytes: true, room: .byStore) { state in
      state.failure = failure
      state.window.finish(failure == nil ? .complete : .failed)
    }
  }

  // MARK: The task that stores the body

  /// Waits for the next bytes to store.
  func nextBatch() async throws -> Batch {
    while true {
      let (batch, signal) = change { state -> (Batch?, SharedResult<Void>?) in
        if let batch = state.window.nextBatch() { return (.bytes(batch.bytes, isLast: batch.isLast), nil) }
        if !state.window.isStoring || state.window.ending == .failed { return (.stop, nil) }
        return (nil, State.wait(for: &state.bytesSignal))
      }
      if let batch { return batch }
      try await signal?.value()
    }
  }

  /// Records how many bytes the store has.
  func notePersisted(_ count: Int64) {
    change(room: .byStore) { $0.window.notePersisted(count) }
  }

  /// Records that the body is not stored any more.
  func stopStoring() {
    change(bytes: true, room: .byStore) { $0.window.stopStoring() }
  }
}
#endif
