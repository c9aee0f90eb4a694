import Larder

/// The reason why a worker cancels a closure.
enum ClosureCancellation: Sendable {
  /// The closure has exceeded its time limit.
  case timeLimit
  /// The leases of its items are lost.
  case leaseLost
  /// The worker must stop.
  case stopped
}

/// The state of a closure that runs in a task of its own.
///
/// This is plain state without any I/O.
struct ClosureState: Sendable {
  /// The result for the worker.
  enum Outcome: Sendable {
    /// The closure has returned, with the errors of the items that failed.
    case returned([DeliveryReceipt: any Error])
    case threw(any Error)
    /// The closure has not ended within some time after its cancellation.
    case hung
  }

  /// The first reason for which the closure was cancelled.
  private(set) var cancellation: ClosureCancellation?

  /// The result, or `nil` while the worker waits for it.
  private(set) var outcome: Outcome?

  /// A Boolean value that indicates whether the closure has ended.
  private(set) var hasEnded = false

  /// Notes a cancellation.
  ///
  /// - Returns: A Boolean value that indicates whether it is the first one, and the worker still waits.
  mutating func cancel(_ reason: ClosureCancellation) -> Bool {
    guard cancellation == nil, outcome == nil else { return false }
    cancellation = reason
    return true
  }

  /// Notes the end of the closure, whose result is ignored if it is hung.
  mutating func end(_ result: Outcome) {
    hasEnded = true
    if outcome == nil { outcome = result }
  }

  /// Notes that the time after the cancellation has passed.
  mutating func giveUp() {
    if outcome == nil { outcome = .hung }
  }
}

/// A closure that runs in a task of its own, for which a worker waits.
final class ClosureRun: Sendable {
  private struct State {
    var closure = ClosureState()
    var task: Task<Void, Never>?
    var timers: [Task<Void, Never>] = []
    var waiter: CheckedContinuation<ClosureState.Outcome, Never>?
    var onEnd: (@Sendable () -> Void)?
  }

  private let clock: any Clock<Duration>
  private let patience: Duration
  private let state = Locked(State())

  /// Creates a run.
  ///
  /// - Parameters:
  ///   - clock: The clock of the time limits.
  ///   - patience: The time after its cancellation at which a closure counts as hung.
  init(clock: any Clock<Duration>, patience: Duration) {
    self.clock = clock
    self.patience = patience
  }

  /// The reason why the closure was cancelled.
  var cancellation: ClosureCancellation? { state.withLock { $0.closure.cancellation } }

  /// Runs a closure, and waits until it has ended or is hung.
  ///
  /// - Parameters:
  ///   - limit: The time after which the closure is cancelled, or `nil` for no limit.
  ///   - body: The closure. It returns the errors of the items that failed.
  func run(
    atMost limit: Duration?, _ body: @escaping @Sendable () async throws -> [DeliveryReceipt: any Error]
  ) async -> ClosureState.Outcome {
    await withCheckedContinuation { continuation in
      let mayStart = state.withLock { state in
        state.waiter = continuation
        return state.closure.cancellation == nil
      }
      guard mayStart else { return update { $0.end(.threw(CancellationError())) } }
      let task = Task {
        let result: ClosureState.Outcome
        do {
          result = .returned(try await body())
        } catch {
          result = .threw(error)
        }
        update { $0.end(result) }
      }
      if let limit { startTimer(limit) { $0.cancel(.timeLimit) } }
      let isCancelled = state.withLock { state in
        state.task = task
        return state.closure.cancellation != nil
      }
      if isCancelled { task.cancel() }
    }
  }

  /// Cancels the closure, which counts as hung if it does not end soon.
  func cancel(_ reason: ClosureCancellation) {
    let (isFirst, task) = state.withLock { ($0.closure.cancel(reason), $0.task) }
    guard isFirst else { return }
    task?.cancel()
    startTimer(patience) { run in run.update { $0.giveUp() } }
  }

  /// Calls a closure when the run has ended, or immediately if it has.
  func onEnd(_ action: @escaping @Sendable () -> Void) {
    let hasEnded = state.withLock { state in
      if !state.closure.hasEnded { state.onEnd = action }
      return state.closure.hasEnded
    }
    if hasEnded { action() }
  }

  private func startTimer(_ duration: Duration, _ action: @escaping @Sendable (ClosureRun) -> Void) {
    let timer = Task { [clock, weak self] in
      guard await clock.hasSlept(for: duration), let self else { return }
      action(self)
    }
    let isOver = state.withLock { state in
      state.timers.append(timer)
      return state.closure.outcome != nil
    }
    if isOver { timer.cancel() }
  }

  private func update(_ change: (inout ClosureState) -> Void) {
    let (waiter, outcome, timers, onEnd) = state.withLock { state in
      change(&state.closure)
      let hasOutcome = state.closure.outcome != nil
      defer {
        if hasOutcome { (state.waiter, state.timers) = (nil, []) }
        if state.closure.hasEnded { (state.onEnd, state.task) = (nil, nil) }
      }
      return (
        hasOutcome ? state.waiter : nil, state.closure.outcome, hasOutcome ? state.timers : [],
        state.closure.hasEnded ? state.onEnd : nil
      )
    }
    for timer in timers { timer.cancel() }
    if let outcome { waiter?.resume(returning: outcome) }
    onEnd?()
  }
}
