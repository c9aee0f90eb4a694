import Dispatch
import Larder
import LarderFiles

/// The work of a trial on the thread of the trials, and the watch that ends a trial whose work blocks this thread.
///
/// The blocked thread cannot be ended. It stays, and all later trials of the process fail with the same reason.
final class TrialProgress: Sendable {
  private struct State {
    var seed: UInt64 = 0
    /// The piece of work that runs, or `nil` while another trial has the thread.
    var work: String?
    /// The number of pieces of work that have begun, and that number at the last look.
    var count = 0
    var seenCount = 0
    var waiter: CheckedContinuation<ScheduleFailure?, Never>?
  }

  /// The failure of the trial that has blocked the thread.
  private static let blocked = Locked<ScheduleFailure?>(nil)

  private let name: String
  private let limit: DispatchTimeInterval
  private let state = Locked(State())

  /// Creates the progress of a trial, and begins to watch it.
  ///
  /// - Parameters:
  ///   - name: The name of the trial.
  ///   - limit: The time that a piece of work may take. It fails between this time and twice of it.
  init(_ name: String, limit: Duration) {
    self.name = name
    self.limit = .milliseconds(Int(max(.milliseconds(1), limit) / .milliseconds(1)))
    lookLater()
  }

  /// Notes that a piece of work begins.
  func begin(_ work: String, seed: UInt64? = nil) {
    state.withLock { state in
      state.work = work
      state.count += 1
      if let seed { state.seed = seed }
    }
  }

  /// Runs a closure on the thread of the trials.
  ///
  /// - Returns: Its result, or the failure of the trial that has blocked the thread.
  func watch(
    on thread: DispatchQueueExecutor, _ body: @escaping @Sendable () -> ScheduleFailure?
  ) async -> ScheduleFailure? {
    if let failure = Self.blocked.withLock({ $0 }) { return failure }
    return await withCheckedContinuation { continuation in
      state.withLock { $0.waiter = continuation }
      thread.start { [self] in
        let failure = body()
        state.withLock { $0.work = nil }
        finish(failure)
      }
    }
  }

  private func finish(_ failure: ScheduleFailure?) {
    state.withLock { $0.waiter.take() }?.resume(returning: failure)
  }

  private func lookLater() {
    DispatchQueue.global().asyncAfter(deadline: .now() + limit) { [weak self] in
      guard let self else { return }
      look()
      lookLater()
    }
  }

  /// Ends the trial if the thread runs the same piece of work as at the last look, or is blocked by another trial.
  private func look() {
    let isStuck = state.withLock { state in
      defer { state.seenCount = state.count }
      return state.work != nil && state.count == state.seenCount
    }
    if isStuck {
      let failure = state.withLock { state in
        ScheduleFailure(
          trial: name, schedule: Schedule(seed: state.seed, decisions: [:]),
          underlying: ScheduledRun.End.blocked(work: state.work ?? ""), trace: [])
      }
      Self.blocked.withLock { $0 = $0 ?? failure }
    }
    if let failure = Self.blocked.withLock({ $0 }) { finish(failure) }
  }
}
