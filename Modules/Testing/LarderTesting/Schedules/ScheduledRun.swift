import Dispatch
import Larder

/// One run of a ``ScheduledTrial``: the work that is ready, and the loop that runs one piece after another on one thread.
///
/// Everything happens on the thread of the trials. A piece of work is a job of a task from one suspension to the next, a job of
/// an actor, or a closure of an executor. Its code runs as it would on the pool: a task continues without a hop where it would there, because it
/// prefers the pool of the trial, and an actor runs all of its jobs that are ready.
final class ScheduledRun {
  /// Work that is ready to run.
  private struct Work {
    /// The task or the actor, for priorities and traces.
    var identity: UInt
    /// The executor whose work runs in order and one after another, or `nil` for the pool.
    var executor: ObjectIdentifier?
    var name: String
    var run: () -> Void
  }

  /// The reason for which a run ended before its body.
  enum End: Error {
    case deadlock
    case tooManySteps
    case crash
  }

  /// The number of pieces of work that may run inside of each other on the stack.
  private static let maximumDepth = 3

  /// The run whose work the thread is running.
  ///
  /// Only the thread of the trials has a scheduler, so only it reads and writes this variable.
  nonisolated(unsafe) private static var running: ScheduledRun?

  static var current: ScheduledRun? { WorkScheduler.current == nil ? nil : running }

  let clock: ManualClock
  private(set) var decisions: ScheduleDecisions
  private let maximumSteps: Int

  private var ready: [Work] = []
  private var busyExecutors: Set<ObjectIdentifier> = []
  private var steps = 0
  private var yieldCount: UInt = 0
  private var depth = 0
  private var cancellations: [() -> Void] = []
  private(set) var trace: [String] = []
  /// Whether the process may die.
  var mayCrash = false

  // Assigned once, because its closures need the run.
  private var scheduler: WorkScheduler?

  init(_ decisions: ScheduleDecisions, clock: ManualClock, maximumSteps: Int) {
    self.decisions = decisions
    self.clock = clock
    self.maximumSteps = maximumSteps
    scheduler = WorkScheduler(
      taking: { [unowned self] executor, name, work in
        ready.append(
          Work(
            identity: UInt(bitPattern: ObjectIdentifier(executor)), executor: ObjectIdentifier(executor), name: name,
            run: work))
      },
      reachingPoint: { [unowned self] in interrupt() })
  }

  // MARK: Receiving work

  private static func identity(of job: UnownedJob) -> UInt { unsafeBitCast(job, to: UInt.self) }

  func enqueue(_ job: UnownedJob) {
    ready.append(
      Work(
        identity: Self.identity(of: job), executor: nil, name: "task",
        run: { job.runSynchronously(on: TrialPool.shared.asUnownedTaskExecutor()) }))
  }

  /// Resumes a task as work of its own.
  func enqueueResumption(_ resume: @escaping () -> Void) {
    yieldCount += 1
    ready.append(Work(identity: yieldCount, executor: nil, name: "yield", run: resume))
  }

  // MARK: Running it

  /// Runs work until the body has ended, and then what is left and ready.
  ///
  /// - Parameters:
  ///   - start: A closure that creates the task of the body.
  ///   - hasEnded: A closure that returns whether the body has ended.
  /// - Throws: ``End`` if the body cannot end, or the run has crashed.
  func run(_ start: () -> Void, until hasEnded: () -> Bool) throws {
    Self.running = self
    defer { Self.running = nil }
    uninterrupted(start)
    while !hasEnded() {
      guard steps < maximumSteps else { throw End.tooManySteps }
      try accident()
      if !step() {
        guard wakeSleepers() else { throw End.deadlock }
      }
    }
    // Work of the background that the body did not wait for.
    while steps < maximumSteps, step() {}
  }

  /// Runs one piece of work.
  ///
  /// - Returns: Whether there was one.
  private func step() -> Bool {
    var seen = busyExecutors
    // An executor runs its work in order, one after another.
    let candidates = ready.indices.filter { index in
      guard let executor = ready[index].executor else { return true }
      return seen.insert(executor).inserted
    }
    guard !candidates.isEmpty else { return false }
    let choice = decisions.choose(among: candidates.map { ready[$0].identity })
    let work = ready.remove(at: candidates[choice])
    steps += 1
    if trace.count < 10_000 { trace.append(work.name) }
    if let executor = work.executor { busyExecutors.insert(executor) }
    scheduler?.run(work.run)
    if let executor = work.executor { busyExecutors.remove(executor) }
    return true
  }

  /// Runs other work in the middle of one, nested on the stack.
  private func interrupt() {
    guard depth < Self.maximumDepth else { return }
    var count = decisions.interruption()
    guard count > 0, #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
    depth += 1
    // A task that starts immediately saves and restores the current task of the thread.
    let nested = UncheckedSendable { [self] in
      while count > 0, steps < maximumSteps, step() { count -= 1 }
    }
    Task.immediate { nested.body() }
    depth -= 1
  }

  /// Wakes the tasks that sleep for the shortest time.
  ///
  /// - Returns: Whether there was one.
  private func wakeSleepers() -> Bool {
    guard let next = clock.nextDeadline else { return false }
    trace.append("time \(next.offset)")
    uninterrupted { clock.advance(by: max(.zero, next.offset - clock.now.offset)) }
    return true
  }

  /// Cancels a task or ends the program, if it is decided so.
  private func accident() throws {
    guard let index = decisions.accident(among: cancellations.count + (mayCrash ? 1 : 0)) else { return }
    guard index < cancellations.count else { throw End.crash }
    let cancel = cancellations.remove(at: index)
    trace.append("cancellation")
    uninterrupted(cancel)
  }

  /// Runs code of the trial itself, whose jobs are received.
  private func uninterrupted(_ body: () -> Void) {
    depth += Self.maximumDepth
    scheduler?.run(body)
    depth -= Self.maximumDepth
  }

  /// Adds the cancellation of a task, which may happen at any moment.
  func addCancellable(_ cancel: @escaping () -> Void) {
    cancellations.append(cancel)
  }

  /// Drops all work, as the death of a process does.
  func forgetEverything() {
    trace.append("crash")
    (ready, cancellations, busyExecutors, mayCrash) = ([], [], [], false)
  }
}

/// The pool of a trial, which its tasks prefer to the pool of the process.
///
/// A job that another thread enqueues, or that is left when its run has ended, runs outside of the trial.
final class TrialPool: TaskExecutor {
  static let shared = TrialPool()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if let run = ScheduledRun.current { return run.enqueue(job) }
    DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Suspends the task, so that others can run.
///
/// In a trial, `Task.yield()` would leave it in a task that was started immediately, because the runtime then takes the pool of
/// the process for the current executor (Swift 6.3).
func suspendOnce() async {
  guard let run = ScheduledRun.current else { return await Task.yield() }
  await withUnsafeContinuation { continuation in
    run.enqueueResumption { continuation.resume() }
  }
}

/// A closure that is sent to a task which runs on the same thread, immediately, while its caller waits.
private struct UncheckedSendable: @unchecked Sendable {
  let body: () -> Void

  init(_ body: @escaping () -> Void) {
    self.body = body
  }
}
