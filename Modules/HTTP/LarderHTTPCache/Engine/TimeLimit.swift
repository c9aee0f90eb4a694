#if HTTPCache
import Larder

/// A time limit for calls, with one sleeping task for all of them.
///
/// A task for each call that sleeps and is cancelled costs several microseconds. Here, a call costs a lock and a
/// dictionary. As all calls have the same limit, their deadlines are in the order of their beginnings.
final class TimeLimit: Sendable {
  private struct Call {
    let deadline: Duration
    /// `nil` after the limit has passed.
    var onExpiry: (@Sendable () -> Void)?
  }

  private struct State {
    /// The number of the next call.
    var next: UInt64 = 0
    /// The number of the first call whose deadline was not examined yet.
    var first: UInt64 = 0
    var calls: [UInt64: Call] = [:]
    var isWatching = false
  }

  /// The time that a call may take.
  let duration: Duration

  private let clock: any Clock<Duration>
  private let time: ElapsedTime
  private let state = Locked(State())

  /// Creates a time limit.
  ///
  /// - Parameters:
  ///   - duration: The time that a call may take.
  ///   - clock: The clock that measures it.
  init(_ duration: Duration, clock: any Clock<Duration>) {
    self.duration = duration
    self.clock = clock
    time = ElapsedTime(by: clock)
  }

  /// Begins a call.
  ///
  /// - Parameter onExpiry: A closure that is called if the call has not ended within the limit.
  /// - Returns: The number of the call, for ``end(_:)``.
  func begin(_ onExpiry: @escaping @Sendable () -> Void) -> UInt64 {
    let deadline = time.duration + duration
    let (number, isFirst) = state.withLock { state in
      defer {
        state.next += 1
        state.isWatching = true
      }
      state.calls[state.next] = Call(deadline: deadline, onExpiry: onExpiry)
      return (state.next, !state.isWatching)
    }
    if isFirst {
      let clock = clock
      // The task holds the limit only while it examines the calls.
      Task { [weak self] in
        while let interval = self?.expireCalls() { try await clock.sleep(for: interval) }
      }
    }
    return number
  }

  /// Ends a call, after which its closure is not called.
  func end(_ number: UInt64) {
    _ = state.withLock { $0.calls.removeValue(forKey: number) }
  }

  /// The number of calls that have begun and not ended.
  var count: Int { state.withLock { $0.calls.count } }

  /// Returns whether the limit of a call that has not ended has passed.
  func isOver(_ number: UInt64) -> Bool {
    state.withLock { $0.calls[number].map { $0.onExpiry == nil } ?? false }
  }

  /// Calls the closures of the calls whose time is over.
  ///
  /// - Returns: The time until the next deadline, or `nil` if no call is left.
  private func expireCalls() -> Duration? {
    let now = time.duration
    let (expired, interval) = state.withLock { state in
      var expired: [@Sendable () -> Void] = []
      while state.first < state.next {
        if let call = state.calls[state.first], let onExpiry = call.onExpiry {
          guard call.deadline <= now else { return (expired, call.deadline - now as Duration?) }
          expired.append(onExpiry)
          state.calls[state.first]?.onExpiry = nil
        }
        state.first += 1
      }
      state.isWatching = false
      return (expired, nil)
    }
    for onExpiry in expired { onExpiry() }
    return interval
  }
}
#endif
