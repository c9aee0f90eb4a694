import Foundation
import Larder
import LarderFiles
import LarderTesting
import Synchronization
import Testing

/// Trials that must find a fault, and trials that must not.
@Suite(.enabled(if: ScheduledTrial.isAvailable)) struct ScheduledTrialTests {
  private struct Wrong: Error {}

  /// A counter with a fault: it reads, suspends, and writes.
  private actor Account {
    var balance = 100

    func withdraw(_ amount: Int) async -> Bool {
      guard balance >= amount else { return false }
      await Task.yield()
      balance -= amount
      return true
    }
  }

  private static let withdrawals = ScheduledTrial("two withdrawals") { _ in
    let account = Account()
    async let first = account.withdraw(80)
    async let second = account.withdraw(80)
    guard await [first, second].count(where: { $0 }) == 1 else { throw Wrong() }
  }

  @Test func `a fault across a suspension is found`() async throws {
    let failure = try #require(
      await #expect(throws: ScheduleFailure.self) { try await Self.withdrawals.run(schedules: 100, seed: 1) })
    #expect(failure.underlying is Wrong)
    // The schedule repeats it, also from its text.
    let schedule = try #require(Schedule(failure.schedule.description))
    #expect(schedule == failure.schedule)
    for _ in 0..<3 {
      await #expect(throws: ScheduleFailure.self) { try await Self.withdrawals.replay(schedule) }
    }
  }

  @Test(arguments: [ScheduleStrategy.random, .priorities(changes: 2), .preemptions(2)])
  func `each strategy finds it`(_ strategy: ScheduleStrategy) async throws {
    let failure = try #require(
      await #expect(throws: ScheduleFailure.self) {
        try await Self.withdrawals.run(schedules: 200, seed: 1, strategy: strategy)
      })
    #expect(failure.underlying is Wrong)
  }

  @Test func `text that is no schedule is refused`() {
    for text in ["", "x", "1 2", "1 2=", "1 =2", "1 2=3=4", "-1 2=3"] { #expect(Schedule(text) == nil, "\(text)") }
    #expect(Schedule("7 2=3 1=4") == Schedule(seed: 7, decisions: [1: 4, 2: 3]))
    #expect(Schedule(seed: 7, decisions: [2: 3, 1: 4]).description == "7 1=4 2=3")
  }

  /// Increments a number in two tasks, each under one lock for reading and another one for writing.
  private static func increments(switchesAtLocks: Bool) -> ScheduledTrial {
    ScheduledTrial("two increments", switchesAtLocks: switchesAtLocks) { _ in
      let count = Box(0)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<2 {
          group.addTask {
            let old = count.value.withLock { $0 }
            count.value.withLock { $0 = old + 1 }
          }
        }
      }
      guard count.value.withLock({ $0 }) == 2 else { throw Wrong() }
    }
  }

  @Test func `a fault between two locks is found`() async throws {
    #if DEBUG
    await #expect(throws: ScheduleFailure.self) {
      try await Self.increments(switchesAtLocks: true).run(schedules: 1000, seed: 1)
    }
    #endif
    // Without points at locks, the two are one piece of work.
    try await Self.increments(switchesAtLocks: false).run(schedules: 200, seed: 1)
  }

  @Test func `a deadlock is a failure`() async throws {
    let trial = ScheduledTrial("never") { _ in
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    }
    let failure = try #require(
      await #expect(throws: ScheduleFailure.self) { try await trial.run(schedules: 1, seed: 1) })
    #expect(failure.description.contains("nothing can run"))
  }

  @Test func `a task that another thread resumes has left`() async throws {
    let trial = ScheduledTrial("a thread", maximumSteps: .max) { _ in
      let (isSuspended, isResumed) = (Box(false), Box(false))
      async let other: Void = {
        isSuspended.value.withLock { $0 = true }
        // The trial has work until the thread has resumed the task.
        while !isResumed.value.withLock({ $0 }) { await Task.yield() }
      }()
      await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
        DispatchQueue.global(qos: .utility).async {
          while !isSuspended.value.withLock({ $0 }) { sched_yield() }
          continuation.resume()
          isResumed.value.withLock { $0 = true }
        }
      }
      await other
    }
    let failure = try #require(
      await #expect(throws: ScheduleFailure.self) { try await trial.replay(Schedule(seed: 1)) })
    #expect(failure.description.contains("utility-qos\", which is not part of the trial"))
  }

  @Test func `a livelock is a failure`() async throws {
    let trial = ScheduledTrial("forever", maximumSteps: 500) { _ in
      while true { await Task.yield() }
    }
    let failure = try #require(
      await #expect(throws: ScheduleFailure.self) { try await trial.run(schedules: 1, seed: 1) })
    #expect(failure.description.contains("maximum number of steps"))
  }

  /// The thread of the trials is lost, so another process runs this one.
  @Test func `a blocking wait is a failure`() async {
    await #expect(processExitsWith: .success) {
      let trial = ScheduledTrial("a semaphore", blockingLimit: .milliseconds(50)) { _ in
        await Task.yield()
        block()
      }
      let failure = await #expect(throws: ScheduleFailure.self) { try await trial.run(schedules: 2, seed: 7) }
      #expect(failure?.description.contains("blocks the thread of the trials") == true)
      #expect(failure?.schedule.seed == 7)
      // No other trial waits for the thread.
      let other = ScheduledTrial("another one") { _ in }
      let second = await #expect(throws: ScheduleFailure.self) { try await other.run(schedules: 1) }
      #expect(second?.trial == "a semaphore")
    }
  }

  /// A trial has each piece of work that the pool has, so it leaves out no order of them.
  ///
  /// A call of an actor has two more, since the runtime does not let a job that prefers an executor take the actor on its own thread.
  @Test func `no piece of work of the pool is missing`() async {
    await #expect(processExitsWith: .success) {
      for scenario in Scenario.allCases {
        // A task that is resumed before its thread has suspended it needs no job, so a single run can have fewer.
        var onPool = 0
        for _ in 0..<20 { onPool = max(onPool, await PoolJobs.count { await scenario.run() }) }
        let inTrial = try await scenario.countInTrial()
        #expect(inTrial >= onPool, "\(scenario): \(onPool) on the pool, \(inTrial) in a trial")
        #expect(
          inTrial <= onPool + scenario.additionalCount, "\(scenario): \(onPool) on the pool, \(inTrial) in a trial")
      }
    }
  }

  @Test func `time passes when nothing else can run`() async throws {
    let trial = ScheduledTrial("sleeps") { context in
      let order = Box<[Int]>([])
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try await context.clock.sleep(for: .seconds(3600))
          order.value.withLock { $0.append(2) }
        }
        group.addTask {
          try await context.clock.sleep(for: .seconds(60))
          order.value.withLock { $0.append(1) }
        }
        group.addTask {
          try await context.clock.sleep(for: .seconds(7200))
          order.value.withLock { $0.append(3) }
        }
        try await group.waitForAll()
      }
      guard order.value.withLock({ $0 }) == [1, 2, 3], context.clock.now.offset == .seconds(7200) else { throw Wrong() }
    }
    try await trial.run(schedules: 50, seed: 1)
  }

  @Test func `executors take part`() async throws {
    let trial = ScheduledTrial("executors") { _ in
      let executor = DispatchQueueExecutor(label: "test")
      let results = await withTaskGroup(of: Int.self) { group in
        for number in 0..<3 {
          group.addTask { await executor.run { number } }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      guard results.sorted() == [0, 1, 2] else { throw Wrong() }
    }
    try await trial.run(schedules: 200, seed: 1)
  }

  @Test func `a task is cancelled at any moment`() async throws {
    let moments = Locked<Set<Int>>([])
    let trial = ScheduledTrial("cancellation") { context in
      let task = Task {
        for step in 0..<20 {
          if Task.isCancelled { return step }
          await Task.yield()
        }
        return 20
      }
      context.mayCancel(task)
      let moment = await task.value
      moments.withLock { _ = $0.insert(moment) }
    }
    try await trial.run(schedules: 500, seed: 1)
    #expect(moments.withLock { $0.count } > 10)
  }

  @Test func `a run dies at any moment`() async throws {
    let lengths = Locked<Set<Int>>([])
    let trial = ScheduledTrial("crash") { context in
      let box = Box(0)
      context.mayCrash { lengths.withLock { _ = $0.insert(box.value.withLock { $0 }) } }
      for _ in 0..<20 {
        await Task.yield()
        box.value.withLock { $0 += 1 }
      }
    }
    try await trial.run(schedules: 500, seed: 1)
    #expect(lengths.withLock { $0.count } > 10)
  }

  @Test func `the current task is restored after an interruption`() async throws {
    let trial = ScheduledTrial("task-local values") { _ in
      let box = Box(0)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<4 {
          group.addTask {
            try await Self.$number.withValue(number) {
              for _ in 0..<5 {
                box.value.withLock { $0 += 1 }
                guard Self.number == number, !Task.isCancelled else { throw Wrong() }
                await Task.yield()
                guard Self.number == number else { throw Wrong() }
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    try await trial.run(schedules: 300, seed: 1)
  }

  @TaskLocal private static var number = -1
}

/// Waits on the thread forever.
private func block() {
  DispatchSemaphore(value: 0).wait()
}

/// Work whose pieces are counted.
private enum Scenario: CaseIterable {
  case functions, calls, children, task, yields

  private actor Counter {
    private(set) var count = 0

    func increment() { count += 1 }
  }

  func run() async {
    let counter = Counter()
    switch self {
    case .functions: for _ in 0..<10 { await Self.work() }
    case .calls: for _ in 0..<10 { await counter.increment() }
    case .children:
      await withTaskGroup(of: Void.self) { group in
        // Each has an actor of its own. One that is busy on another thread has jobs for those who wait for it, and nothing runs
        // in parallel in a trial.
        for _ in 0..<3 { group.addTask { await Counter().increment() } }
      }
    case .task: await Task { await Self.work() }.value
    case .yields: for _ in 0..<3 { await Task.yield() }
    }
  }

  @concurrent private static func work() async {}

  /// The pieces of work that a trial has in addition to the jobs that the pool receives.
  var additionalCount: Int {
    switch self {
    case .functions: 0
    case .calls: 20
    case .children: 6
    // The task inherits no preference for the pool of the trial.
    case .task: 2
    // The pool receives the job of a yield by another way, which is not counted.
    case .yields: 3
    }
  }

  func countInTrial() async throws -> Int {
    struct Ended: Error {}
    let trial = ScheduledTrial("\(self)", switchesAtLocks: false) { _ in
      await run()
      throw Ended()
    }
    do {
      try await trial.replay(Schedule(seed: 1))
      return 0
    } catch let failure as ScheduleFailure {
      let count = try #require(failure.description.firstMatch(of: #/The last of (\d+) pieces/#)?.1)
      return try #require(Int(count))
    }
  }
}

/// The jobs that the pool of the process receives.
private enum PoolJobs {
  private typealias Original = @convention(thin) (UnownedJob) -> Void
  private typealias Enqueue = @convention(thin) (UnownedJob, Original) -> Void

  private static let jobs = Atomic(0)

  /// Returns the number of jobs that a closure needs, which runs in a task of its own.
  static func count(_ body: @escaping @Sendable () async -> Void) async -> Int {
    guard let symbol = dlsym(nil, "swift_task_enqueueGlobal_hook") else { return 0 }
    let variable = symbol.assumingMemoryBound(to: Enqueue?.self)
    let outer = variable.pointee
    variable.pointee = { job, original in
      PoolJobs.jobs.add(1, ordering: .sequentiallyConsistent)
      original(job)
    }
    defer { variable.pointee = outer }
    // The thread that waits needs no job.
    return await withCheckedContinuation { continuation in
      Thread {
        let start = jobs.load(ordering: .sequentiallyConsistent)
        let hasEnded = Box(false)
        Task.detached {
          await body()
          hasEnded.value.withLock { $0 = true }
        }
        while !hasEnded.value.withLock({ $0 }) { sched_yield() }
        continuation.resume(returning: jobs.load(ordering: .sequentiallyConsistent) - start)
      }.start()
    }
  }
}

/// A lock that closures share.
private final class Box<Value: Sendable>: Sendable {
  let value: Locked<Value>

  init(_ value: Value) {
    self.value = Locked(value)
  }
}
