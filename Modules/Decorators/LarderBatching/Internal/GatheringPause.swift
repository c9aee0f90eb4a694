import Synchronization

/// The time that a committer or a flusher waits for more to come, which may be cut short.
final class GatheringPause: Sendable {
  private enum State {
    case none
    case waiting(Task<Void, Never>)
    /// It was ended before it began to wait.
    case ended
  }

  private let clock: any Clock<Duration>
  private let state = Mutex(State.none)

  /// Makes a pause.
  ///
  /// - Parameter clock: What measures it.
  init(clock: any Clock<Duration>) {
    self.clock = clock
  }

  /// Waits; only one may at a time.
  ///
  /// - Parameter duration: How long.
  func wait(_ duration: Duration) async {
    let clock = clock
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
