/// The wait queue of a queue's engine, as plain state.
///
/// One thread commits at a time, and all calls that wait then form a group. A call that finds nothing to receive is
/// parked, and returns to the front of the wait queue when there may be items. A call for which there is no room is
/// parked too. After each group, the first of these is retried.
struct WaitQueue<Call: Sendable>: Sendable {
  /// The action that an arriving call takes.
  enum Arrival: Equatable, Sendable {
    /// The engine is idle, and the caller must begin.
    case begins
    /// Another thread is working, and will serve the call.
    case waits
  }

  private var returning: [Call] = []
  private var arrived: [Call] = []
  private var receivers: [Call] = []
  private var producers: [Call] = []
  private var pruningCount = 64

  private(set) var isBusy = false
  private(set) var isClosing = false

  /// Whether calls wait for items to receive.
  var hasReceivers: Bool { !receivers.isEmpty }
  /// Whether calls wait for room.
  ///
  /// Some of them may have been cancelled.
  var hasProducers: Bool { !producers.isEmpty }

  /// Registers an arriving call.
  ///
  /// - Returns: ``Arrival/begins`` if the engine was idle; then the call is not added to the wait queue.
  mutating func arrive(_ call: Call) -> Arrival {
    guard isBusy else {
      isBusy = true
      return .begins
    }
    arrived.append(call)
    return .waits
  }

  /// Adds a call to the wait queue, for the thread that works or must begin.
  ///
  /// - Returns: Whether the engine was idle, so that the caller must begin.
  mutating func enter(_ call: Call) -> Bool {
    arrived.append(call)
    defer { isBusy = true }
    return !isBusy
  }

  /// Returns calls that were taken and not served to the front of the wait queue.
  mutating func putBack(_ calls: some Collection<Call>) {
    returning.insert(contentsOf: calls, at: 0)
  }

  /// Ends the current thread's work.
  ///
  /// - Returns: Whether another thread must continue, because calls wait.
  mutating func finish() -> Bool {
    isBusy = !returning.isEmpty || !arrived.isEmpty
    return isBusy
  }

  /// Removes and returns all calls of the wait queue.
  ///
  /// If there are none, the engine becomes idle.
  mutating func takeGroup() -> [Call] {
    let group = returning + arrived
    returning = []
    arrived = []
    if group.isEmpty { isBusy = false }
    return group
  }

  /// Parks a call that waits for items to receive.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - isOver: A closure that returns whether a call has ended by cancellation.
  /// - Returns: Whether the call was parked; `false` after closing has begun.
  mutating func parkReceiver(_ call: Call, isOver: (Call) -> Bool) -> Bool {
    guard !isClosing else { return false }
    receivers.append(call)
    prune(isOver)
    return true
  }

  /// Parks a call that waits for room; see ``parkReceiver(_:isOver:)``.
  ///
  /// - Parameter isFirst: Whether the call was the first waiter, and stays first.
  mutating func parkProducer(_ call: Call, isFirst: Bool, isOver: (Call) -> Bool) -> Bool {
    guard !isClosing else { return false }
    producers.insert(call, at: isFirst ? 0 : producers.count)
    prune(isOver)
    return true
  }

  /// Removes and returns the first call that waits for room, along with any cancelled calls before it.
  mutating func takeProducer(isOver: (Call) -> Bool) -> Call? {
    guard let index = producers.firstIndex(where: { !isOver($0) }) else {
      producers = []
      return nil
    }
    defer { producers.removeSubrange(...index) }
    return producers[index]
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

  /// Ends all waiting.
  ///
  /// - Returns: The calls that were parked.
  mutating func close() -> [Call] {
    isClosing = true
    defer {
      receivers = []
      producers = []
    }
    return receivers + producers
  }
}
