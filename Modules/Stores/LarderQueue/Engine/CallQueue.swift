/// The calls that wait in a queue's engine, as plain state.
///
/// One thread commits at a time, and all calls that wait then form a group. A call that finds nothing to receive is
/// parked as a receiver, and a call for which there is no room as a producer. Both return to the front of the wait queue
/// when there may be items or room.
struct CallQueue<Call: Sendable>: Sendable {
  private var returning: [Call] = []
  private var arrived: [Call] = []
  private var receivers: [Call] = []
  private var producers: [Call] = []
  private var pruningCount = 64
  /// The number of times that the producers returned.
  private(set) var producerReturns = 0

  /// A Boolean value that indicates whether a thread works, or is about to.
  private(set) var isBusy = false
  private(set) var isClosing = false

  /// A Boolean value that indicates whether calls wait for items to receive.
  var hasReceivers: Bool { !receivers.isEmpty }
  /// A Boolean value that indicates whether calls wait for room.
  ///
  /// Some of them may have been cancelled.
  var hasProducers: Bool { !producers.isEmpty }

  /// Marks the engine as busy.
  ///
  /// - Returns: A Boolean value that indicates whether it was idle, so the caller must work.
  mutating func begin() -> Bool {
    defer { isBusy = true }
    return !isBusy
  }

  /// Adds a call at the end.
  mutating func append(_ call: Call) {
    arrived.append(call)
  }

  /// Returns calls that were taken and not served to the front.
  mutating func putBack(_ calls: some Collection<Call>) {
    returning.insert(contentsOf: calls, at: 0)
  }

  /// Removes and returns all calls that do not wait for items or room.
  mutating func takeGroup() -> [Call] {
    defer { (returning, arrived) = ([], []) }
    return returning + arrived
  }

  /// Ends the current thread's work.
  ///
  /// - Parameter hasWork: A Boolean value that indicates whether there is more to do than serving calls.
  /// - Returns: A Boolean value that indicates whether a thread must continue. Otherwise, the engine becomes idle.
  mutating func finish(hasWork: Bool) -> Bool {
    isBusy = hasWork || !returning.isEmpty || !arrived.isEmpty
    return isBusy
  }

  /// Parks a call that waits for items to receive, or for room.
  ///
  /// A call that waits for room returns immediately if the others have returned since it was refused: it may have been refused only
  /// because it was behind one that has given up.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - returns: The ``producerReturns`` before the call was refused room, or `nil` if it waits for items.
  ///   - isOver: A closure that returns whether a call has ended by cancellation.
  /// - Returns: A Boolean value that indicates whether the call waits; `false` after closing has begun.
  mutating func park(_ call: Call, asProducerSince returns: Int?, isOver: (Call) -> Bool) -> Bool {
    guard !isClosing else { return false }
    switch returns {
    case nil: receivers.append(call)
    case producerReturns: producers.append(call)
    default: putBack([call])
    }
    prune(isOver)
    return true
  }

  private mutating func prune(_ isOver: (Call) -> Bool) {
    guard receivers.count + producers.count > pruningCount else { return }
    receivers.removeAll(where: isOver)
    producers.removeAll(where: isOver)
    pruningCount = 2 * (receivers.count + producers.count) + 64
  }

  /// Returns calls that wait for items to the wait queue.
  ///
  /// - Parameter count: The maximum number of calls.
  mutating func returnReceivers(_ count: Int) {
    let count = min(count, receivers.count)
    returning.append(contentsOf: receivers.prefix(count))
    receivers.removeFirst(count)
  }

  /// Returns all calls that wait for room to the front, in order.
  mutating func returnProducers() {
    putBack(producers)
    producers = []
    producerReturns += 1
  }

  /// Ends all waiting.
  ///
  /// - Returns: The calls that were parked.
  mutating func close() -> [Call] {
    isClosing = true
    defer { (receivers, producers) = ([], []) }
    return receivers + producers
  }
}
