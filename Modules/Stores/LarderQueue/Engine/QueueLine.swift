/// The waiting calls of a queue's engine: plain state.
///
/// One at a time commits: all calls that wait then are a group. Those of them that have nothing to receive are parked, and
/// come back into the line, before everyone else, when there may be. Those for which there is no room are parked too; the
/// first of them is tried again after each group.
struct QueueLine<Call: Sendable>: Sendable {
  /// The state of the engine when a call comes.
  enum Arrival: Equatable, Sendable {
    /// The engine is idle: the caller begins.
    case begins
    /// Somebody is busy, and will come to it.
    case waits
  }

  private var returning: [Call] = []
  private var coming: [Call] = []
  private var receivers: [Call] = []
  private var producers: [Call] = []
  private var pruningCount = 64

  private(set) var isBusy = false
  private(set) var isClosing = false

  /// Whether calls wait for items to receive.
  var hasReceivers: Bool { !receivers.isEmpty }
  /// Whether calls wait for room; some of them may have given up.
  var hasProducers: Bool { !producers.isEmpty }

  /// A call comes.
  ///
  /// - Returns: Where it begins, the call is not in the line.
  mutating func arrive(_ call: Call) -> Arrival {
    guard isBusy else {
      isBusy = true
      return .begins
    }
    coming.append(call)
    return .waits
  }

  /// Adds a call to the line, for the thread that is busy or has to begin.
  ///
  /// - Returns: Whether the engine was idle, so that the caller must begin.
  mutating func enter(_ call: Call) -> Bool {
    coming.append(call)
    defer { isBusy = true }
    return !isBusy
  }

  /// Puts calls back that were taken and not served.
  mutating func giveBack(_ calls: some Collection<Call>) {
    returning.insert(contentsOf: calls, at: 0)
  }

  /// Ends the busy thread's turn.
  ///
  /// - Returns: Whether somebody must go on, since calls are in the line.
  mutating func finish() -> Bool {
    isBusy = !returning.isEmpty || !coming.isEmpty
    return isBusy
  }

  /// Takes all calls in the line; if there are none, the engine is idle from now on.
  mutating func takeGroup() -> [Call] {
    let group = returning + coming
    returning = []
    coming = []
    if group.isEmpty { isBusy = false }
    return group
  }

  /// Lets a call wait for items to receive.
  ///
  /// - Parameters:
  ///   - call: The call.
  ///   - isOver: Whether a call has ended meanwhile, by cancellation.
  /// - Returns: Whether it waits; not once closing has begun.
  mutating func parkReceiver(_ call: Call, isOver: (Call) -> Bool) -> Bool {
    guard !isClosing else { return false }
    receivers.append(call)
    prune(isOver)
    return true
  }

  /// Lets a call wait for room; see ``parkReceiver(_:isOver:)``.
  ///
  /// - Parameter isFirst: Whether it was the first waiter, and stays it.
  mutating func parkProducer(_ call: Call, isFirst: Bool, isOver: (Call) -> Bool) -> Bool {
    guard !isClosing else { return false }
    producers.insert(call, at: isFirst ? 0 : producers.count)
    prune(isOver)
    return true
  }

  /// Takes the first call that waits for room; those that have given up go.
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

  /// Lets calls come back that wait for items.
  ///
  /// - Parameter count: The most that may.
  mutating func returnReceivers(_ count: Int) {
    let count = min(count, receivers.count)
    returning.append(contentsOf: receivers.prefix(count))
    receivers.removeFirst(count)
  }

  /// Ends all waiting.
  ///
  /// - Returns: The calls that waited.
  mutating func close() -> [Call] {
    isClosing = true
    defer {
      receivers = []
      producers = []
    }
    return receivers + producers
  }
}
