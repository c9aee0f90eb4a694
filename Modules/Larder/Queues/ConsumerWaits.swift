/// The wait queue of the consumers of a ``DurableQueue``, for its authors.
///
/// A signal wakes one consumer, the one that has waited longest. A consumer enters before it looks for an item, so it
/// misses no signal:
///
/// ```swift
/// func nextItem() async throws -> Event {
///   while true {
///     let number = waits.enter()
///     if let item = try await firstItem() {
///       waits.leave(number)
///       // There may be more items than signals.
///       waits.signal()
///       return item
///     }
///     try await waits.wait(number, atMost: .seconds(1), clock: clock)
///   }
/// }
/// ```
///
/// If looking throws, leave before you rethrow, so no signal is lost.
public final class ConsumerWaits: Sendable {
  private struct Waiter: Sendable {
    let number: UInt64
    /// Present while the consumer is suspended.
    var continuation: CheckedContinuation<Bool, Never>?
  }

  private struct State: Sendable {
    var waiters: [Waiter] = []
    /// The consumers that were signaled before they were suspended.
    var signalled: Set<UInt64> = []
    var nextNumber: UInt64 = 0
    var isClosed = false
  }

  private let state = Locked(State())

  /// Creates an empty wait queue.
  public init() {}

  /// Adds a consumer that will look for an item.
  ///
  /// - Returns: The number of the consumer. End its stay with ``leave(_:)`` or a method that waits.
  public func enter() -> UInt64 {
    state.withLock { state in
      let number = state.nextNumber
      state.nextNumber += 1
      if state.isClosed { state.signalled.insert(number) } else { state.waiters.append(Waiter(number: number)) }
      return number
    }
  }

  /// Removes a consumer that did not have to wait, and passes on a signal that it received.
  ///
  /// - Parameter number: The number of the consumer.
  public func leave(_ number: UInt64) {
    let wasSignalled = state.withLock { state in
      state.waiters.removeAll { $0.number == number }
      return state.signalled.remove(number) != nil
    }
    if wasSignalled { signal() }
  }

  /// Suspends a consumer until it is signaled, or for a time at most.
  ///
  /// - Parameters:
  ///   - number: The number of the consumer. It has left afterward.
  ///   - duration: The maximum duration; `nil` for no limit.
  ///   - clock: The clock that measures it.
  /// - Throws: `CancellationError` if the task is cancelled.
  public func wait(_ number: UInt64, atMost duration: Duration?, clock: any Clock<Duration>) async throws {
    var timer: (@Sendable () async throws -> Void)?
    if let duration { timer = { try await clock.sleep(for: duration) } }
    _ = try await wait(number, timer: timer)
  }

  /// Suspends a consumer until it is signaled, or until a timer ends.
  ///
  /// - Parameters:
  ///   - number: The number of the consumer. It has left afterward.
  ///   - timer: A closure that returns when the consumer must look by itself, and is cancelled when it need not; `nil` for
  ///     no timer.
  /// - Returns: A Boolean value that indicates whether the consumer was signaled.
  /// - Throws: `CancellationError` if the task is cancelled.
  public func wait(_ number: UInt64, timer: (@Sendable () async throws -> Void)?) async throws -> Bool {
    var task: Task<Void, Never>?
    if let timer {
      task = Task {
        do {
          try await timer()
        } catch {
          // The consumer was woken by something else.
          return
        }
        wake(number)
      }
    }
    defer { task?.cancel() }
    let wasSignalled = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let result = state.withLock { state -> Bool? in
          if state.signalled.remove(number) != nil { return true }
          guard let index = state.waiters.firstIndex(where: { $0.number == number }) else { return false }
          if Task.isCancelled {
            state.waiters.remove(at: index)
            return false
          }
          state.waiters[index].continuation = continuation
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      wake(number)
    }
    if Task.isCancelled {
      // A signal may have been for this consumer.
      signal()
      throw CancellationError()
    }
    return wasSignalled
  }

  /// Wakes a consumer because its time is over.
  private func wake(_ number: UInt64) {
    let waiter = state.withLock { state -> Waiter? in
      guard let index = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
      // If it is not suspended yet, it will find that it has left.
      return state.waiters.remove(at: index)
    }
    waiter?.continuation?.resume(returning: false)
  }

  /// Wakes the consumer that has waited longest.
  public func signal() {
    let waiter = state.withLock { state -> Waiter? in
      guard !state.waiters.isEmpty else { return nil }
      let waiter = state.waiters.removeFirst()
      if waiter.continuation == nil { state.signalled.insert(waiter.number) }
      return waiter
    }
    waiter?.continuation?.resume(returning: true)
  }

  /// Wakes all consumers, now and from now on.
  public func close() {
    let waiters = state.withLock { state in
      state.isClosed = true
      for waiter in state.waiters where waiter.continuation == nil { state.signalled.insert(waiter.number) }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.continuation?.resume(returning: true) }
  }
}
