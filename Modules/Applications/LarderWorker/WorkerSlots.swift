import Larder

/// The slots of a worker, and the queues that wait for one.
///
/// This is plain state without any I/O. Free slots go to the waiting queues in proportion to their weights, by the smooth
/// weighted round robin of nginx: each queue that waits earns its weight, the richest one gets the slot and pays what all
/// have earned.
struct SlotState: Sendable {
  /// The number of items that may run at the same time.
  let limit: Int

  /// The weights of the queues.
  let weights: [Int]

  /// The number of slots that are taken.
  private(set) var running = 0

  /// The waiting queues, each with whether its item must run alone.
  private(set) var waiting: [Int: Bool] = [:]

  /// The queue whose item must run alone and waits until no other item runs.
  private(set) var reserved: Int?

  private var isExclusive = false
  private var credits: [Int]

  init(limit: Int, weights: [Int]) {
    self.limit = limit
    self.weights = weights
    credits = weights.map { _ in 0 }
  }

  /// Adds a queue to those that wait for a slot.
  ///
  /// - Parameters:
  ///   - queue: The position of the queue, which is not waiting yet.
  ///   - alone: Whether its item must run while no other one does.
  mutating func wait(_ queue: Int, alone: Bool) {
    waiting[queue] = alone
  }

  /// Removes a queue from those that wait.
  ///
  /// - Returns: Whether it was waiting.
  mutating func stopWaiting(_ queue: Int) -> Bool {
    if reserved == queue { reserved = nil }
    return waiting.removeValue(forKey: queue) != nil
  }

  /// Gives free slots to waiting queues.
  ///
  /// - Returns: The positions of the queues that got one.
  mutating func assign() -> [Int] {
    var assigned: [Int] = []
    while !isExclusive, running < limit, let queue = reserved ?? choose() {
      let alone = waiting[queue] == true
      guard !alone || running == 0 else {
        // Otherwise it would wait forever while other queues have items.
        reserved = queue
        break
      }
      reserved = nil
      waiting[queue] = nil
      running += 1
      isExclusive = alone
      assigned.append(queue)
    }
    return assigned
  }

  private mutating func choose() -> Int? {
    guard !waiting.isEmpty else { return nil }
    var total = 0
    for queue in waiting.keys {
      credits[queue] += weights[queue]
      total += weights[queue]
    }
    // The lower position wins a draw, so that the order does not depend on that of a dictionary.
    let chosen = waiting.keys.max { (credits[$0], -$0) < (credits[$1], -$1) }
    if let chosen { credits[chosen] -= total }
    return chosen
  }

  /// Takes free slots that no queue waits for.
  ///
  /// - Parameter maximum: The maximum number of slots.
  /// - Returns: The number of slots that were taken.
  mutating func takeFree(_ maximum: Int) -> Int {
    guard waiting.isEmpty, !isExclusive else { return 0 }
    let count = min(maximum, limit - running)
    running += count
    return count
  }

  /// Frees slots.
  mutating func free(_ count: Int) {
    running -= count
    isExclusive = false
  }
}

/// The slots of a worker, for which tasks can wait.
final class WorkerSlots: Sendable {
  private struct Waiters {
    var state: SlotState
    var continuations: [Int: CheckedContinuation<Bool, Never>] = [:]
    var isClosed = false
  }

  private let waiters: Locked<Waiters>

  init(limit: Int, weights: [Int]) {
    waiters = Locked(Waiters(state: SlotState(limit: limit, weights: weights)))
  }

  /// Waits for a slot.
  ///
  /// - Parameters:
  ///   - queue: The position of the queue, which must not be waiting already.
  ///   - alone: Whether the item must run while no other one does.
  /// - Returns: Whether the caller has a slot. It has none if the worker is shutting down.
  func take(for queue: Int, alone: Bool) async -> Bool {
    await withCheckedContinuation { continuation in
      let isClosed = waiters.withLock { waiters in
        guard !waiters.isClosed else { return true }
        waiters.state.wait(queue, alone: alone)
        waiters.continuations[queue] = continuation
        return false
      }
      if isClosed { continuation.resume(returning: false) }
      assign()
    }
  }

  /// Takes free slots that no queue waits for; see ``SlotState/takeFree(_:)``.
  func takeFree(_ maximum: Int) -> Int {
    waiters.withLock { $0.isClosed ? 0 : $0.state.takeFree(maximum) }
  }

  /// Frees slots, and gives them to waiting queues.
  func free(_ count: Int) {
    waiters.withLock { $0.state.free(count) }
    assign()
  }

  /// Ends all waiting, and gives no slots from now on.
  func close() {
    let waiting = waiters.withLock { waiters in
      waiters.isClosed = true
      defer { waiters.continuations = [:] }
      return Array(waiters.continuations.values)
    }
    for continuation in waiting { continuation.resume(returning: false) }
  }

  private func assign() {
    let assigned = waiters.withLock { waiters in
      guard !waiters.isClosed else { return [] as [CheckedContinuation<Bool, Never>] }
      return waiters.state.assign().compactMap { waiters.continuations.removeValue(forKey: $0) }
    }
    for continuation in assigned { continuation.resume(returning: true) }
  }
}
