import Larder

/// A first-in, first-out queue of waiters, any of which may leave.
///
/// Each waiter has a number that is higher than those of all earlier ones. Entering, leaving and being served take
/// amortized O(1) time; finding a waiter by its number takes O(log n). The storage is never much more than twice as
/// long as the number of waiters.
struct WaitQueue<Element: Sendable>: Sendable {
  private struct Waiter: Sendable {
    let number: UInt64
    // `nil` if the waiter has left.
    var element: Element?
  }

  private var waiters: [Waiter] = []
  // The waiters before this index were served.
  private var head = 0
  private var nextNumber: UInt64 = 0

  /// The number of waiters.
  private(set) var count = 0

  /// A Boolean value that indicates whether the queue has no waiters.
  var isEmpty: Bool { count == 0 }

  /// The next waiter.
  var first: Element? {
    // The waiter at the head is never one that has left.
    head < waiters.count ? waiters[head].element : nil
  }

  /// The waiters with their numbers, the first one first.
  var numbered: [(number: UInt64, element: Element)] {
    waiters[head...].compactMap { waiter in waiter.element.map { (waiter.number, $0) } }
  }

  /// Adds a waiter at the end.
  ///
  /// - Returns: The number of the waiter.
  mutating func append(_ element: Element) -> UInt64 {
    defer { nextNumber += 1 }
    if head > 32, head > waiters.count / 2 {
      waiters.removeSubrange(..<head)
      head = 0
    }
    waiters.append(Waiter(number: nextNumber, element: element))
    count += 1
    return nextNumber
  }

  /// Removes the first waiter.
  @discardableResult
  mutating func removeFirst() -> Element? {
    guard let element = first else { return nil }
    leave(head)
    return element
  }

  /// Removes the waiter with a number.
  ///
  /// - Returns: The waiter, or `nil` if no waiter has that number.
  mutating func remove(_ number: UInt64) -> Element? {
    guard let index = index(of: number), let element = waiters[index].element else { return nil }
    leave(index)
    if waiters.count - head > 2 * count + 16 {
      waiters.removeAll { $0.element == nil }
      head = 0
    }
    return element
  }

  private mutating func leave(_ index: Int) {
    waiters[index].element = nil
    count -= 1
    while head < waiters.count, waiters[head].element == nil { head += 1 }
    if head == waiters.count {
      waiters.removeAll(keepingCapacity: waiters.count < 4096)
      head = 0
    }
  }

  private func index(of number: UInt64) -> Int? {
    // In most cases the number is that of the last waiter.
    if let last = waiters.last, last.number == number { return waiters.count - 1 }
    var (low, high) = (head, waiters.count)
    while low < high {
      let middle = low + (high - low) / 2
      if waiters[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < waiters.count && waiters[low].number == number ? low : nil
  }
}

/// The outcome of waiting in a queue.
enum TurnOutcome: Sendable {
  /// The caller's turn has begun. No other turn begins until the caller ends it.
  case turn
  /// The awaited work is over, with an error if it failed.
  case finished((any Error)?)
}

/// A call that waits in the queue of a ``BatchingStore`` or a ``WriteBehindStore``.
///
/// A caller enters the queue before it begins to wait, so the call may end first. Its outcome is then kept.
final class PendingCall: Sendable {
  private enum State {
    case running
    // A checked continuation would cost as much again. This one is resumed exactly once, when the call ends.
    case waiting(UnsafeContinuation<TurnOutcome, Never>)
    case over(TurnOutcome)
  }

  private let state = Locked(State.running)

  /// Waits until the call is over.
  func wait() async -> TurnOutcome {
    await withUnsafeContinuation { continuation in
      let outcome: TurnOutcome? = state.withLock { state in
        if case .over(let outcome) = state { return outcome }
        state = .waiting(continuation)
        return nil
      }
      if let outcome { continuation.resume(returning: outcome) }
    }
  }

  /// Ends the call.
  ///
  /// It must be called only once.
  func end(_ outcome: TurnOutcome) {
    let continuation: UnsafeContinuation<TurnOutcome, Never>? = state.withLock { state in
      defer { state = .over(outcome) }
      if case .waiting(let continuation) = state { return continuation }
      return nil
    }
    continuation?.resume(returning: outcome)
  }
}
