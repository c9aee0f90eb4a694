import Dispatch
import Foundation
import Larder

/// One run of a ``ScheduledTrial``: the work that is ready, and the loop that runs one piece after another on one thread.
///
/// Everything happens on the thread of the trials. A piece of work is a job of a task from one suspension to the next, a job of
/// an actor, or a closure of an executor. The tasks of the body prefer the pool of the run, as they would prefer no executor on
/// the pool of the process, so they continue without a hop where they would there. A task without this preference, which
/// `Task {}` creates, has additional hops.
final class ScheduledRun {
  /// Work that is ready to run.
  private struct Work {
    /// The number of the task, the actor or the executor, for priorities and traces.
    var number: Int
    /// The executor whose work runs in order and one after another, or `nil` for the pool.
    var executor: ObjectIdentifier?
    var name: String
    var run: () -> Void
  }

  /// The reason why a run ended before its body.
  enum End: Error {
    case deadlock
    /// A thread with this name, which is not part of the trial, has resumed a task.
    case left(thread: String)
    /// A piece of work with this name does not end.
    case blocked(work: String)
    case tooManySteps
    case crash
  }

  /// The number of pieces of work that may run inside of each other on the stack.
  private static let maximumDepth = 3

  /// The run whose work the thread is running.
  ///
  /// Only the thread of the trials reads and writes it: others have no scheduler, or another one.
  nonisolated(unsafe) private static var running: ScheduledRun?

  static var current: ScheduledRun? {
    guard let scheduler = WorkScheduler.current, scheduler === running?.scheduler else { return nil }
    return running
  }

  let clock: ManualClock
  let pool = TrialPool()
  private(set) var decisions: ScheduleDecisions
  private let maximumSteps: Int
  private let switchesAtLocks: Bool
  private let progress: TrialProgress

  private var ready: [Work] = []
  private var busyExecutors: Set<ObjectIdentifier> = []
  private var numbers: [UInt: Int] = [:]
  private var currentNumber = 0
  private var steps = 0
  private var depth = 0
  private var cancellations: [() -> Void] = []
  private(set) var trace: [String] = []
  /// A Boolean value that indicates whether the process may die.
  var mayCrash = false
  /// A Boolean value that indicates whether time may move on while work is ready.
  var mayPassTime = false

  // Assigned once, because its closures need the run.
  private var scheduler: WorkScheduler?

  init(
    _ decisions: ScheduleDecisions, clock: ManualClock, maximumSteps: Int, switchesAtLocks: Bool,
    progress: TrialProgress
  ) {
    self.decisions = decisions
    self.clock = clock
    self.maximumSteps = maximumSteps
    self.switchesAtLocks = switchesAtLocks
    self.progress = progress
    scheduler = WorkScheduler(
      taking: { [unowned self] executor, name, work in
        let identifier = ObjectIdentifier(executor)
        ready.append(
          Work(number: number(of: UInt(bitPattern: identifier)), executor: identifier, name: name, run: work))
      },
      reachingPoint: { [unowned self] in interrupt() })
  }

  // MARK: Receiving work

  /// Returns a number that is the same each time that a run is repeated, as long as no task has the address of an earlier one.
  private func number(of address: UInt) -> Int {
    if let number = numbers[address] { return number }
    numbers[address] = numbers.count + 1
    return numbers.count
  }

  func enqueue(_ job: UnownedJob) {
    let number = number(of: unsafeBitCast(job, to: UInt.self))
    ready.append(
      Work(
        number: number, executor: nil, name: "job \(number)",
        run: { [pool] in job.runSynchronously(on: pool.asUnownedTaskExecutor()) }))
  }

  /// Resumes the current task as work of its own.
  func enqueueResumption(_ resume: @escaping () -> Void) {
    ready.append(Work(number: currentNumber, executor: nil, name: "yield of \(currentNumber)", run: resume))
  }

  // MARK: Running it

  /// Runs work until the body has ended, and then other work that is ready.
  ///
  /// - Parameters:
  ///   - start: A closure that creates the task of the body.
  ///   - hasEnded: A closure that returns whether the body has ended.
  /// - Throws: ``End`` if the body or the other work does not end, or the run has crashed.
  func run(_ start: () -> Void, until hasEnded: () -> Bool) throws {
    let outer = Self.running
    Self.running = self
    defer { Self.running = outer }
    uninterrupted(start)
    while true {
      guard steps < maximumSteps else { throw End.tooManySteps }
      if !hasEnded() { try accident() }
      if step() { continue }
      if hasEnded() { return }
      if wakeSleepers() { continue }
      throw pool.leavingThread.map(End.left) ?? End.deadlock
    }
  }

  /// Runs one piece of work.
  ///
  /// - Returns: A Boolean value that indicates whether there was one.
  private func step() -> Bool {
    if mayPassTime, clock.nextDeadline != nil, decisions.accident(among: 1) != nil { _ = wakeSleepers() }
    var seen = busyExecutors
    // An executor runs its work in order, one after another.
    let candidates = ready.indices.filter { index in
      guard let executor = ready[index].executor else { return true }
      return seen.insert(executor).inserted
    }
    guard !candidates.isEmpty else { return false }
    let choice = decisions.choose(among: candidates.map { ready[$0].number })
    let work = ready.remove(at: candidates[choice])
    steps += 1
    trace.append(String(repeating: ">", count: depth) + work.name)
    if let executor = work.executor { busyExecutors.insert(executor) }
    let outerNumber = currentNumber
    currentNumber = work.number
    if depth == 0 { progress.begin(work.name) }
    scheduler?.run(work.run)
    currentNumber = outerNumber
    if let executor = work.executor { busyExecutors.remove(executor) }
    return true
  }

  /// Runs other work in the middle of one, nested on the stack.
  private func interrupt() {
    guard switchesAtLocks, depth < Self.maximumDepth else { return }
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
  /// - Returns: A Boolean value that indicates whether there was one.
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

  /// Runs code in whose middle no other work may run, and whose jobs are received.
  func uninterrupted(_ body: () -> Void) {
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
    // Never released: a task of a dead process neither continues nor ends, and its continuations must not be missed.
    _ = Unmanaged.passRetained(Forgotten(ready.map(\.run), clock.forgetSleepers()))
    (ready, cancellations, busyExecutors, mayCrash, mayPassTime) = ([], [], [], false, false)
  }

  /// The work and the sleepers of a process that has died.
  private final class Forgotten {
    let work: [() -> Void]
    let sleepers: Any

    init(_ work: [() -> Void], _ sleepers: Any) {
      self.work = work
      self.sleepers = sleepers
    }
  }
}

/// The pool of a run, which the tasks of its body prefer to the pool of the process.
///
/// A job that another thread enqueues has left the trial. It is kept until the run has ended, so it does not run beside
/// it.
final class TrialPool: TaskExecutor {
  private struct State {
    var hasEnded = false
    var jobs: [UnownedJob] = []
    /// The name of the first thread that has enqueued one of them.
    var thread: String?
  }

  private let state = Locked(State())

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if let run = ScheduledRun.current, run.pool === self { return run.enqueue(job) }
    let runsNow = state.withLock { state in
      if state.hasEnded { return true }
      state.jobs.append(job)
      if state.thread == nil { state.thread = Self.threadName }
      return false
    }
    if runsNow { run(job) }
  }

  /// The name of the thread that has enqueued a job during the run, or `nil` if only the run has.
  var leavingThread: String? { state.withLock(\.thread) }

  /// The name of the current thread, of which Linux keeps 15 bytes.
  ///
  /// Dispatch names its threads after their queue. Trials run on Linux only, and glibc shows `pthread_getname_np` to C alone.
  private static var threadName: String {
    guard let name = FileManager.default.contents(atPath: "/proc/thread-self/comm") else { return "?" }
    return String(decoding: name, as: UTF8.self).trimmingCharacters(in: .newlines)
  }

  /// Runs the jobs that have left, now that the run has ended.
  func end() {
    let jobs = state.withLock { state in
      defer { state = State(hasEnded: true) }
      return state.jobs
    }
    for job in jobs { run(job) }
  }

  private func run(_ job: UnownedJob) {
    DispatchQueue.global().async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

/// Suspends the task, so others can run.
///
/// In a trial, `Task.yield()` would leave it in a task that was started immediately, because the runtime then takes the pool of
/// the process for the current executor (Swift 6.3).
func suspendOnce() async {
  guard let run = ScheduledRun.current else { return await Task.yield() }
  await withUnsafeContinuation { continuation in
    run.enqueueResumption { continuation.resume() }
  }
}

/// A closure that is sent to a task which starts immediately.
///
/// Proof for @unchecked: the task runs it on the thread of its caller, which waits for it.
private struct UncheckedSendable: @unchecked Sendable {
  let body: () -> Void

  init(_ body: @escaping () -> Void) {
    self.body = body
  }
}
