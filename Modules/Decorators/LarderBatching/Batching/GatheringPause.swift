import Synchronization

/// The time that a committer waits for more to come, which may be cut short.
final class GatheringPause: Sendable {
  private enum State {
    case none
    case waiting(Task<Void, Never>)
    /// It was ended before it began to wait.
    case ended
  }

  private let duration: Duration
  private let clock: any Clock<Duration>
  private let state = Mutex(State.none)

  /// Makes a pause.
  ///
  /// - Parameters:
  ///   - duration: How long it is.
  ///   - clock: What measures it.
  init(duration: Duration, clock: any Clock<Duration>) {
    self.duration = duration
    self.clock = clock
  }

  /// Waits; only one may at a time.
  func wait() async {
    let (duration, clock) = (duration, clock)
    let sleep = Task.detached {
      do {
        try await clock.sleep(for: duration)
      } catch {
        // Only being cut short can end a sleep early, and then it is over as well.
      }
    }
    let isEnded = state.withLock { state in
      if case .ended = state { return true }
      state = .waiting(sleep)
      return false
    }
    if isEnded { sleep.cancel() }
    await sleep.value
    state.withLock { $0 = .none }
  }

  /// Ends the pause that goes on, or else the next one before it begins.
  func end() {
    let sleep: Task<Void, Never>? = state.withLock { state in
      if case .waiting(let sleep) = state { return sleep }
      state = .ended
      return nil
    }
    sleep?.cancel()
  }
}
