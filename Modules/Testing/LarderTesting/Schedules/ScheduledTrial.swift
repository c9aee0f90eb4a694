import Larder
import LarderFiles

/// A test that runs code with concurrent tasks in many orders, each of which can be repeated.
///
/// A test on the thread pool sees the few orders that the system happens to choose. A trial runs all tasks of a closure on one
/// thread and chooses, at each suspension, which of them continues:
///
/// ```swift
/// let trial = ScheduledTrial("two withdrawals") { context in
///   let account = Account(balance: 100)
///   async let first = account.withdraw(80)
///   async let second = account.withdraw(80)
///   let granted = await [first, second].count { $0 }
///   guard granted == 1 else { throw Overdrawn() }
/// }
/// try await trial.run(schedules: 1000)
/// ```
///
/// A failure has the ``Schedule`` of the run, shortened to the decisions that matter, and ``replay(_:)`` repeats it.
///
/// - Time stands still while work is ready, unless ``ScheduledContext/mayPassTime()`` was called. If nothing is, ``ScheduledContext/clock``
///   moves on to the end of the shortest sleep. Give this clock to the code.
/// - In debug builds, other work also runs in the middle of a piece of work, before the code takes a `Locked` and after it has
///   released one, as another thread would.
/// - In debug builds, work of a `DispatchQueueExecutor` is part of the trial. Everything that waits for another thread is not: a
///   queue of the system, the main actor, `Task.sleep` and the clocks of Swift. Then nothing is ready, and the run fails as a
///   deadlock. A piece of work that blocks its thread fails after ``blockingLimit``.
/// - One trial runs at a time, beside other tests.
///
/// The decisions repeat a run if its code makes no other choices. Take random numbers from ``ScheduledContext/generator(_:)``, and
/// set `SWIFT_DETERMINISTIC_HASHING=1` if the order of a set or a dictionary matters. See <doc:TestingConcurrentCode>.
public struct ScheduledTrial: Sendable {
  /// The name of the tested code, for failures.
  public let name: String

  /// The number of pieces of work after which a run fails, because it may never end.
  public let maximumSteps: Int

  /// A Boolean value that indicates whether other work also runs around locks.
  public let switchesAtLocks: Bool

  /// The time after which a piece of work counts as blocked, and the run fails.
  public let blockingLimit: Duration

  private let body: @Sendable (ScheduledContext) async throws -> Void

  /// Creates a trial.
  ///
  /// - Parameters:
  ///   - name: The name of the tested code, for failures.
  ///   - maximumSteps: The number of pieces of work after which a run fails. Defaults to 20,000.
  ///   - switchesAtLocks: Whether other work also runs around locks, in debug builds. Defaults to `true`. Pass `false` if the
  ///     code under test cancels tasks; see ``ScheduledContext/cancel(_:)``.
  ///   - blockingLimit: The time after which a piece of work counts as blocked, by the real clock. Defaults to a minute.
  ///   - body: A closure that throws an error if its tasks did something wrong. It runs once for each schedule, and must not
  ///     keep anything from an earlier run.
  public init(
    _ name: String, maximumSteps: Int = 20_000, switchesAtLocks: Bool = true,
    blockingLimit: Duration = .seconds(60),
    body: @escaping @Sendable (ScheduledContext) async throws -> Void
  ) {
    self.name = name
    self.maximumSteps = maximumSteps
    self.switchesAtLocks = switchesAtLocks
    self.blockingLimit = blockingLimit
    self.body = body
  }

  /// A Boolean value that indicates whether the runtime lets a program choose the order of its jobs.
  ///
  /// It does on Linux, unless the runtime is linked statically.
  public static var isAvailable: Bool { RuntimeHooks.areSet }

  /// The thread of all trials, outside of the pool.
  private static let thread = DispatchQueueExecutor(label: "Larder.ScheduledTrial")

  /// Runs the body with many schedules.
  ///
  /// - Parameters:
  ///   - schedules: The number of runs.
  ///   - seed: The seed of the first run; each of the others has the next number. Defaults to
  ///     ``SeededGenerator/seedOfProcess``.
  ///   - strategy: The way to choose among orders. Defaults to `nil`, to alternate between all.
  /// - Throws: ``ScheduleFailure`` for the first schedule that fails. `StoreError` with `unsupported` if trials are not
  ///   available; see ``isAvailable``. `CancellationError`.
  public func run(
    schedules: Int, seed: UInt64 = SeededGenerator.seedOfProcess, strategy: ScheduleStrategy? = nil
  ) async throws {
    try checkAvailable()
    let progress = TrialProgress(name, limit: blockingLimit)
    for number in 0..<UInt64(max(0, schedules)) {
      try Task.checkCancellation()
      let seed = seed &+ number
      let decisions = ScheduleDecisions(strategy: strategy ?? .alternating(seed), seed: seed)
      let failure = await progress.watch(on: Self.thread) { [self] in
        attempt(decisions, seed: seed, progress).map { shortened($0, progress) }
      }
      if let failure { throw failure }
    }
  }

  /// Runs the body with one schedule.
  ///
  /// ```swift
  /// try await trial.replay(schedule)
  /// ```
  ///
  /// - Parameter schedule: The schedule, usually that of a failure.
  /// - Throws: ``ScheduleFailure`` if it fails. `StoreError` with `unsupported` if trials are not available.
  public func replay(_ schedule: Schedule) async throws {
    try checkAvailable()
    let progress = TrialProgress(name, limit: blockingLimit)
    let failure = await progress.watch(on: Self.thread) { [self] in
      attempt(ScheduleDecisions(repeating: schedule), seed: schedule.seed, progress)
    }
    if let failure { throw failure }
  }

  private func checkAvailable() throws {
    guard Self.isAvailable else {
      throw StoreError(
        .unsupported, during: .open, store: name,
        message: "this runtime of Swift lets no program choose the order of its jobs")
    }
  }

  // MARK: One run

  /// Runs the body once, on the thread of the trials.
  private func attempt(_ decisions: ScheduleDecisions, seed: UInt64, _ progress: TrialProgress) -> ScheduleFailure? {
    progress.begin("the start of the body", seed: seed)
    let context = ScheduledContext(seed: seed)
    let run = ScheduledRun(
      decisions, clock: context.clock, maximumSteps: maximumSteps, switchesAtLocks: switchesAtLocks,
      progress: progress)
    context.run = run
    defer {
      context.run = nil
      run.pool.end()
    }
    var error = outcome(of: run) { [body] in try await body(context) }
    while case ScheduledRun.End.crash? = error, let afterCrash = context.takeAfterCrash() {
      run.forgetEverything()
      error = outcome(of: run, afterCrash)
    }
    guard let error else { return nil }
    return ScheduleFailure(
      trial: name, schedule: Schedule(seed: seed, decisions: run.decisions.deviations), underlying: error,
      trace: run.trace)
  }

  private func outcome(
    of run: ScheduledRun, _ body: @escaping @Sendable () async throws -> Void
  ) -> (any Error)? {
    let ending = Ending()
    do {
      try run.run {
        Task.detached(executorPreference: run.pool) {
          do {
            try await body()
            ending.result = .success(())
          } catch {
            ending.result = .failure(error)
          }
        }
      } until: {
        ending.result != nil
      }
      try ending.result?.get()
      return nil
    } catch {
      return error
    }
  }

  /// The result of a body.
  ///
  /// Proof for @unchecked: only the thread of the trials uses it.
  private final class Ending: @unchecked Sendable {
    var result: Result<Void, any Error>?
  }

  /// Removes the decisions from the schedule of a failure without which the run fails, too.
  private func shortened(_ failure: ScheduleFailure, _ progress: TrialProgress) -> ScheduleFailure {
    var shortest = failure
    var size = max(1, failure.schedule.decisions.count / 2)
    var attempts = 200
    while size > 0, attempts > 0 {
      var position = 0
      let numbers = shortest.schedule.decisions.keys.sorted()
      while position < numbers.count, attempts > 0 {
        var schedule = shortest.schedule
        for number in numbers[position..<min(position + size, numbers.count)] { schedule.decisions[number] = nil }
        attempts -= 1
        position += size
        guard schedule.decisions.count < shortest.schedule.decisions.count else { continue }
        if let found = attempt(ScheduleDecisions(repeating: schedule), seed: schedule.seed, progress),
          found.schedule.decisions.count < shortest.schedule.decisions.count, found.isLike(failure)
        {
          shortest = found
        }
      }
      size /= 2
    }
    return shortest
  }
}

/// One run of a ``ScheduledTrial``, for its body.
///
/// Proof for @unchecked: only work of the trial uses it, which runs on one thread; work that has left the trial waits until the
/// run has ended.
public final class ScheduledContext: @unchecked Sendable {
  /// The seed of the run, for everything in it that is random, such as a `FaultPlan` or a `SimulatedFileSystem`.
  public let seed: UInt64

  /// A clock that moves on when no work is ready.
  public let clock = ManualClock()

  /// The current run, or `nil` after it has ended.
  fileprivate var run: ScheduledRun?
  private var afterCrash: (@Sendable () async throws -> Void)?

  fileprivate init(seed: UInt64) {
    self.seed = seed
  }

  /// Returns a generator of random numbers.
  ///
  /// They are the same each time that the schedule is repeated.
  ///
  /// ```swift
  /// var generator = context.generator()
  /// let amount = Int.random(in: 1...80, using: &generator)
  /// ```
  ///
  /// - Parameter purpose: A name for the numbers. Generators with different names are independent.
  public func generator(_ purpose: String = "body") -> SeededGenerator {
    SeededGenerator(seed: seed, purpose: purpose)
  }

  /// Cancels a task.
  ///
  /// Use it in place of `task.cancel()`. The runtime calls cancellation handlers while it holds the lock of their task, so no other
  /// work may run in the middle of them, which only this method knows.
  ///
  /// - Parameter task: The task.
  public func cancel<Success, Failure>(_ task: Task<Success, Failure>) {
    guard let run else { return task.cancel() }
    run.uninterrupted { task.cancel() }
  }

  /// Adds a task that the run cancels between any two pieces of work, or never.
  ///
  /// ```swift
  /// let trial = ScheduledTrial("a canceled writer") { context in
  ///   let store = MemoryStore<Int>().batched()
  ///   let writing = Task { try await store.setValue(1, forKey: "a") }
  ///   context.mayCancel(writing)
  ///   _ = await writing.result
  /// }
  /// ```
  ///
  /// - Parameter task: The task.
  public func mayCancel<Success, Failure>(_ task: Task<Success, Failure>) {
    run?.addCancellable { task.cancel() }
  }

  /// Allows the run to end between two pieces of work, as if the process had died, and then runs a closure.
  ///
  /// After the moment, no task continues. The closure can take away what was not written to a `SimulatedFileSystem`, open it
  /// again, and check what it has.
  ///
  /// ```swift
  /// context.mayCrash {
  ///   let store = try await JSONFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: disk)
  ///   #expect(try await store.value(forKey: "a") != nil)
  /// }
  /// ```
  ///
  /// - Parameter body: The closure. It throws an error if something is wrong. It does not run if the body ends first.
  public func mayCrash(then body: @escaping @Sendable () async throws -> Void) {
    afterCrash = body
    run?.mayCrash = true
  }

  /// Allows time to move on while work is ready, to the end of the shortest sleep.
  ///
  /// Without it, all work is done before the next sleep ends, as if no code took any time. With it, a timer may end in the middle
  /// of the code that has started it.
  public func mayPassTime() {
    run?.mayPassTime = true
  }

  fileprivate func takeAfterCrash() -> (@Sendable () async throws -> Void)? {
    defer { afterCrash = nil }
    return afterCrash
  }
}

/// A schedule with which the body of a ``ScheduledTrial`` fails.
public struct ScheduleFailure: Error, CustomStringConvertible {
  /// The name of the trial.
  public let trial: String

  /// The schedule, which ``ScheduledTrial/replay(_:)`` repeats.
  public let schedule: Schedule

  /// The error that the body threw, or the reason why it could not end.
  public let underlying: any Error

  /// The work that ran, in order.
  let trace: [String]

  /// A Boolean value that indicates whether both failures have the same kind of error.
  func isLike(_ other: ScheduleFailure) -> Bool {
    if let end = underlying as? ScheduledRun.End, let otherEnd = other.underlying as? ScheduledRun.End {
      return "\(end)".prefix(4) == "\(otherEnd)".prefix(4)
    }
    return type(of: underlying) == type(of: other.underlying)
  }

  /// The error, the schedule, and the last work that ran.
  public var description: String {
    let reason =
      switch underlying {
      case ScheduledRun.End.left(let thread):
        "a task was resumed by the thread \"\(thread)\", which is not part of the trial"
      case ScheduledRun.End.blocked(let work):
        "\(work) blocks the thread of the trials, so no other trial can run in this process"
      case ScheduledRun.End.crash: "the process died, and no closure was given for this"
      case ScheduledRun.End.deadlock:
        "nothing can run, and the body has not ended: a task waits for another one, or for something that is not part of "
          + "the trial, such as a queue, the main actor, or a clock of the system"
      case ScheduledRun.End.tooManySteps: "the body has not ended after the maximum number of steps"
      default: "\(underlying)"
      }
    return """
      \(trial): \(reason)
      replay(Schedule("\(schedule)")!)
      The last of \(trace.count) pieces of work: \(trace.suffix(40).joined(separator: ", "))
      """
  }
}
