import Larder

/// The slots of a worker, and the queues that wait for one.
///
/// This is plain state without any I/O. Free slots go to the waiting queues in proportion to their weights, by the smooth
/// weighted round robin of nginx: each queue that waits earns its weight, the richest one gets the slot and pays what all
/// have earned.
///
/// A closure that ignores its cancellation is hung. It keeps its slot, and does not count as running in any other way.
struct SlotState: Sendable {
  /// The number of closures that may run at the same time.
  let limit: Int

  /// The weights of the queues.
  let weights: [Int]

  /// The number of slots that are taken, including those of hung closures.
  private(set) var taken = 0

  /// The number of slots with hung closures.
  private(set) var hung = 0

  /// The number of closures of each queue that run and are not hung.
  private(set) var running: [Int]

  /// The waiting queues.
  private(set) var waiting: Set<Int> = []

  private var credits: [Int]

  init(limit: Int, weights: [Int]) {
    self.limit = limit
    self.weights = weights
    running = weights.map { _ in 0 }
    credits = running
  }

  /// A Boolean value that indicates whether every slot has a hung closure, so nothing can start.
  var isStalled: Bool { hung >= limit }

  /// Returns whether no closure of a queue runs that is not hung.
  ///
  /// - Parameter queue: The position of the queue, or `nil` for all queues.
  func isIdle(_ queue: Int?) -> Bool {
    queue.map { running[$0] == 0 } ?? running.allSatisfy { $0 == 0 }
  }

  // MARK: Slots

  /// Adds a queue to those that wait for a slot.
  ///
  /// - Parameter queue: The position of the queue. It is not waiting yet.
  mutating func wait(_ queue: Int) {
    waiting.insert(queue)
  }

  /// Gives free slots to waiting queues.
  ///
  /// - Returns: The positions of the queues that got one.
  mutating func assign() -> [Int] {
    var assigned: [Int] = []
    while taken < limit, let queue = choose() {
      waiting.remove(queue)
      taken += 1
      assigned.append(queue)
    }
    return assigned
  }

  private mutating func choose() -> Int? {
    guard !waiting.isEmpty else { return nil }
    var total = 0
    for queue in waiting {
      credits[queue] += weights[queue]
      total += weights[queue]
    }
    // The lower position wins a draw, so that the order does not depend on that of a set.
    let chosen = waiting.max { (credits[$0], -$0) < (credits[$1], -$1) }
    if let chosen { credits[chosen] -= total }
    return chosen
  }

  /// Takes free slots that no queue waits for.
  ///
  /// - Parameter maximum: The maximum number of slots.
  /// - Returns: The number of slots that were taken.
  mutating func takeFree(_ maximum: Int) -> Int {
    guard waiting.isEmpty else { return 0 }
    let count = min(maximum, limit - taken)
    taken += count
    return count
  }

  /// Frees slots in which nothing runs.
  mutating func free(_ count: Int) {
    taken -= count
  }

  // MARK: Closures

  /// Notes that a closure starts in a slot that was taken.
  mutating func start(_ queue: Int) {
    running[queue] += 1
  }

  /// Notes that a closure has ended, and frees its slot.
  mutating func end(_ queue: Int) {
    running[queue] -= 1
    taken -= 1
  }

  /// Notes that a closure is hung.
  mutating func hang(_ queue: Int) {
    running[queue] -= 1
    hung += 1
  }

  /// Notes that a hung closure has ended, and frees its slot.
  mutating func endHung() {
    hung -= 1
    taken -= 1
  }
}

/// The slots of a worker, for which tasks can wait.
final class WorkerSlots: Sendable {
  private struct Waiters {
    var state: SlotState
    var slots: [Int: CheckedContinuation<Bool, Never>] = [:]
    /// The tasks that wait until a queue or all queues are idle, each with a number of its own.
    var idle: [Int?: (number: Int, continuation: CheckedContinuation<Void, Never>)] = [:]
    var nextNumber = 0
    var isClosed = false
  }

  private let waiters: Locked<Waiters>

  init(limit: Int, weights: [Int]) {
    waiters = Locked(Waiters(state: SlotState(limit: limit, weights: weights)))
  }

  /// The present state.
  var state: SlotState { waiters.withLock { $0.state } }

  /// Waits for a slot.
  ///
  /// - Parameter queue: The position of the queue. It must not be waiting already.
  /// - Returns: A Boolean value that indicates whether the caller has a slot. It has none if the worker is shutting
  ///   down.
  func take(for queue: Int) async -> Bool {
    await withCheckedContinuation { continuation in
      let isClosed = waiters.withLock { waiters in
        guard !waiters.isClosed else { return true }
        waiters.state.wait(queue)
        waiters.slots[queue] = continuation
        return false
      }
      if isClosed { continuation.resume(returning: false) }
      change { _ in }
    }
  }

  /// Takes free slots that no queue waits for; see ``SlotState/takeFree(_:)``.
  func takeFree(_ maximum: Int) -> Int {
    waiters.withLock { $0.isClosed ? 0 : $0.state.takeFree(maximum) }
  }

  /// Changes the state, and resumes the tasks whose wait has ended.
  @discardableResult
  func change<Result: Sendable>(_ body: (inout SlotState) -> Result) -> Result {
    let (result, slots, idle) = waiters.withLock { waiters in
      let result = body(&waiters.state)
      let assigned = waiters.isClosed ? [] : waiters.state.assign()
      let idle = waiters.idle.keys.filter { waiters.state.isIdle($0) }
      return (
        result, assigned.compactMap { waiters.slots.removeValue(forKey: $0) },
        idle.compactMap { waiters.idle.removeValue(forKey: $0)?.continuation }
      )
    }
    for continuation in slots { continuation.resume(returning: true) }
    for continuation in idle { continuation.resume() }
    return result
  }

  /// Waits until no closure runs that is not hung, or until a time has passed.
  ///
  /// The wait for a single queue also ends when the worker shuts down.
  ///
  /// - Parameters:
  ///   - queue: The position of the queue, or `nil` for all queues. Only one task may wait for each.
  ///   - limit: The time, or `nil` for no limit.
  ///   - clock: The clock that measures it.
  func waitUntilIdle(_ queue: Int?, atMost limit: Duration?, by clock: any Clock<Duration>) async {
    var timer: Task<Void, Never>?
    await withCheckedContinuation { continuation in
      let number = waiters.withLock { waiters in
        guard !waiters.state.isIdle(queue), queue == nil || !waiters.isClosed else { return nil as Int? }
        waiters.nextNumber += 1
        waiters.idle[queue] = (waiters.nextNumber, continuation)
        return waiters.nextNumber
      }
      guard let number else { return continuation.resume() }
      guard let limit else { return }
      timer = Task {
        do {
          try await clock.sleep(for: limit)
          stopWaiting(for: queue, number)
        } catch {
          // The wait has ended.
        }
      }
    }
    timer?.cancel()
  }

  /// Ends the wait for all queues.
  func stopWaitingForAll() {
    stopWaiting(for: nil, nil)
  }

  private func stopWaiting(for queue: Int?, _ number: Int?) {
    let continuation = waiters.withLock { waiters in
      // A timer that has just ended may be that of an earlier wait.
      guard let wait = waiters.idle[queue], wait.number == number ?? wait.number else {
        return nil as CheckedContinuation<Void, Never>?
      }
      return waiters.idle.removeValue(forKey: queue)?.continuation
    }
    continuation?.resume()
  }

  /// Ends the waiting for slots and for single queues, and gives no slots from now on.
  func close() {
    let (slots, idle) = waiters.withLock { waiters in
      waiters.isClosed = true
      defer { waiters.slots = [:] }
      let idle = waiters.idle.keys.filter { $0 != nil }.compactMap { waiters.idle.removeValue(forKey: $0) }
      return (Array(waiters.slots.values), idle.map(\.continuation))
    }
    for continuation in slots { continuation.resume(returning: false) }
    for continuation in idle { continuation.resume() }
  }
}
