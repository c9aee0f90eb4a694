import Foundation
import Larder
import LarderCBOR
import LarderStoreQueue
import LarderTesting
import LarderWorker
import TestSupport
import Testing

/// Workers whose closures are slow, fail, ignore their cancellation, or crash the process: every healthy item is processed
/// within a bound.
///
/// Each run has the seed of its number, and one thread and one clock, so its schedule repeats it.
@Suite(
  .enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"),
  .timeLimit(.minutes(10)))
struct WorkerSimulationTests {
  @Test func `every healthy item is processed within a bound`() async throws {
    let trial = ScheduledTrial("workers", maximumSteps: 1_000_000, switchesAtLocks: false) { context in
      try await Simulation(context).run()
    }
    if let count = ProcessInfo.processInfo.environment["LARDER_SCHEDULES"].flatMap({ Int($0) }) {
      return try await trial.run(schedules: count)
    }
    // The process died after the closure of a healthy item had ended, and before the item was settled.
    try await trial.replay(
      Schedule(seed: 997, decisions: [7: 1, 8: 1, 246: 1, 247: 2, 248: 2, 395: 1, 396: 1, 397: 1]))
    // A short run simulates another quarter of them each time.
    let isShort = TestDepth.isShort
    let start = isShort ? 250 * TestDepth.start(distance: 4, of: "workers") : 0
    try await trial.run(schedules: isShort ? 250 : 1000, seed: UInt64(start) + 1)
  }
}

/// An item of a simulation, by what its closure does.
private enum Behavior: Sendable, Hashable {
  /// Ends after a time, which is shorter than the time limit.
  case healthy(milliseconds: Int)
  /// Throws in its first deliveries.
  case failing(times: Int)
  /// Cancels its own work in its first delivery, without being cancelled.
  case cancelled
  /// Exceeds the time limit in its first deliveries, and ends some time after it was cancelled.
  case late(times: Int, milliseconds: Int)
  /// Never ends.
  case hung
  /// Crashes the process after a time.
  case crashing(milliseconds: Int)
}

/// The processes of a simulation, which share the queues.
private final class Simulation: Sendable {
  struct Wrong: Error, CustomStringConvertible {
    let description: String
  }

  /// One item, with what happened to it.
  struct Item {
    let behavior: Behavior
    var calls = 0
    /// The number of crashes of its process while it may have been leased, by items of its own queue and of another one.
    var crashes = (own: 0, other: 0)
    /// The time at which its closure last ended in each process, which may have died before it settled the item.
    var endings: [Int: Duration] = [:]
    var isProcessed = false
    /// The processes in which a closure runs that was not cancelled.
    var running: [Int] = []
  }

  struct State {
    var items: [[Item]]
    var crashed: Set<Int> = []
    var crashCount = 0
    var stallCount = 0
    var violation: String?
  }

  private static let maximumDeliveries = 3

  private let context: ScheduledContext
  private let bytes = MemoryStore<[UInt8]>()
  /// The clock of everything that never ends.
  private let never = HungClosure()
  private let state: Locked<State>
  private let slots: Int
  private let timeLimit: Duration
  private let lease: Duration
  private let processCount: Int
  private let retryPolicy: RetryPolicy

  init(_ context: ScheduledContext) {
    var random = context.generator("worker")
    self.context = context
    slots = Int.random(in: 1...4, using: &random)
    let limit = Int.random(in: 3...10, using: &random)
    timeLimit = .seconds(limit)
    // A closure ends within a lease, or is hung, so that no suspect item waits in vain.
    lease = timeLimit + QueueWorker.cancellationLimit + .seconds(Int.random(in: 1...10, using: &random))
    processCount = Int.random(in: 1...2, using: &random)
    retryPolicy = Bool.random(using: &random) ? .immediate : RetryPolicy(base: .seconds(1), ceiling: .seconds(4))
    let items = (0..<Int.random(in: 1...2, using: &random)).map { _ in
      (0..<Int.random(in: 1...4, using: &random)).map { _ in
        let behavior: Behavior =
          switch Int.random(in: 0..<12, using: &random) {
          case 0, 1: .failing(times: Int.random(in: 1..<Self.maximumDeliveries, using: &random))
          case 2:
            .late(
              times: Int.random(in: 1..<Self.maximumDeliveries, using: &random),
              milliseconds: .random(in: 0..<4000, using: &random))
          case 3, 4: .hung
          case 5: .crashing(milliseconds: Int.random(in: 0..<limit * 1000, using: &random))
          case 6: .cancelled
          case 7: .healthy(milliseconds: limit * 1000 - 1)
          default: .healthy(milliseconds: Int.random(in: 0..<limit * 500, using: &random))
          }
        return Item(behavior: behavior)
      }
    }
    state = Locked(State(items: items))
  }

  /// The time within which every item has left the queues.
  ///
  /// Even if all of them ran one after another: a delivery takes a slot for the time limit and the one of a cancellation, or
  /// holds back others for two leases. A crash or a stall costs one lease and the start of a process, and a retry its
  /// delay.
  private var bound: Duration {
    let items = state.withLock { $0.items.joined().map(\.behavior) }
    let deliveries = items.count * Self.maximumDeliveries
    let restarts =
      items.count { behavior in
        switch behavior {
        case .hung, .crashing: true
        default: false
        }
      } * Self.maximumDeliveries
    let delivery = max(timeLimit + QueueWorker.cancellationLimit, lease * 2)
    return delivery * deliveries + (lease + .seconds(15)) * restarts + retryPolicy.ceiling * Self.maximumDeliveries
      + .seconds(10)
  }

  // MARK: Running it

  func run() async throws {
    do {
      let setUp = try await open(process: nil)
      for (number, queue) in setUp.enumerated() {
        let count = state.withLock { $0.items[number].count }
        for item in 0..<count { try await queue.enqueue(item, id: StoreKey("\(item)")) }
      }
      var numbers = 0
      var processes: [Int: (worker: QueueWorker, task: Task<Void, any Error>)] = [:]
      for _ in 0..<processCount {
        numbers += 1
        processes[numbers] = try await start(numbers)
      }
      while true {
        var live = 0
        for queue in setUp { live += try await queue.counts().live }
        if live == 0 { break }
        guard context.clock.now.offset < bound else { throw Wrong(description: "\(live) items are left: \(summary)") }
        try await context.clock.sleep(for: .seconds(5))
        for (number, process) in processes.sorted(by: { $0.key < $1.key }) {
          let hasCrashed = state.withLock { $0.crashed.contains(number) }
          let hasStalled = !hasCrashed && process.worker.health().isStalled
          guard hasCrashed || hasStalled else { continue }
          if hasStalled {
            do {
              try await process.task.value
              throw Wrong(description: "a stalled worker ended without an error")
            } catch StoreError.Code.timedOut {
              state.withLock { state in
                state.stallCount += 1
                state.crashed.insert(number)
              }
            }
          }
          processes[number] = nil
          numbers += 1
          processes[numbers] = try await start(numbers)
        }
      }
      for process in processes.values {
        process.worker.shutDown()
        try await process.task.value
      }
      try await check(setUp)
    } catch {
      never.end()
      throw error
    }
    never.end()
  }

  /// Opens the queues as a process does, or for the test itself.
  private func open(process: Int?) async throws -> [StoreQueue<MortalStore, Int>] {
    var queues: [StoreQueue<MortalStore, Int>] = []
    for number in 0..<state.withLock({ $0.items.count }) {
      let store = MortalStore(base: bytes) { [self] in
        guard let process, isDead(process) else { return }
        await never.run()
        throw StoreError(.closed, during: .value, message: "the process has died")
      }
      queues.append(
        try await StoreQueue(
          store, prefix: StoreKey("q\(number)/"), codec: .cbor(),
          configuration: StoreQueueConfiguration(
            policy: QueuePolicy(
              maximumDeliveries: Self.maximumDeliveries, retryPolicy: retryPolicy, duplicateWindow: .zero),
            pollInterval: .seconds(10)),
          environment: QueueEnvironment(
            clock: context.clock, now: { [context] in context.clock.date },
            randomness: context.generator("queue \(process ?? 0)"))))
    }
    return queues
  }

  private func start(_ process: Int) async throws -> (worker: QueueWorker, task: Task<Void, any Error>) {
    let queues = try await open(process: process)
    let handlers = queues.enumerated().map { number, queue in
      QueueHandler(queue, weight: number + 1, lease: lease, timeLimit: timeLimit) { [self] delivery in
        try await call(delivery.value, of: number, delivery.attempt, in: process)
      }
    }
    let worker = QueueWorker(handlers, concurrency: slots, exitsIfStalled: true, clock: context.clock)
    return (worker, Task { try await worker.run() })
  }

  private func isDead(_ process: Int) -> Bool { state.withLock { $0.crashed.contains(process) } }

  // MARK: Closures

  private func call(_ item: Int, of queue: Int, _ attempt: Int, in process: Int) async throws {
    let behavior = state.withLock { state in
      state.items[queue][item].calls += 1
      state.items[queue][item].running.append(process)
      return state.items[queue][item].behavior
    }
    let others = state.withLock { state in
      state.items[queue][item].running.filter { !state.crashed.contains($0) }.count
    }
    if others > 1 {
      state.withLock { $0.violation = "item \(item) of queue \(queue) ran twice at the same time" }
    }
    let isEnded = Locked(false)
    /// Notes that the closure does not run any more, or was cancelled.
    @Sendable func end() {
      let isFirst = isEnded.withLock { value in
        defer { value = true }
        return !value
      }
      guard isFirst else { return }
      state.withLock { state in
        if let index = state.items[queue][item].running.firstIndex(of: process) {
          state.items[queue][item].running.remove(at: index)
        }
        state.items[queue][item].endings[process] = context.clock.now.offset
      }
    }
    defer { end() }
    try await withTaskCancellationHandler {
      try await perform(behavior, attempt, item, of: queue, in: process)
      // The process may have died in the meantime, by another item.
      if isDead(process) { await never.run() }
    } onCancel: {
      end()
    }
    state.withLock { $0.items[queue][item].isProcessed = true }
  }

  private func perform(
    _ behavior: Behavior, _ attempt: Int, _ item: Int, of queue: Int, in process: Int
  ) async throws {
    switch behavior {
    case .healthy(let milliseconds): try await context.clock.sleep(for: .milliseconds(milliseconds))
    case .failing(let times): if attempt <= times { throw Wrong(description: "failed") }
    case .cancelled: if attempt == 1 { throw CancellationError() }
    case .late(let times, let milliseconds):
      guard attempt <= times else { return }
      let late = Task { [context, timeLimit] in
        try await context.clock.sleep(for: timeLimit + .milliseconds(milliseconds))
      }
      _ = await late.result
      throw Wrong(description: "late")
    case .hung: await never.run()
    case .crashing(let milliseconds):
      try await context.clock.sleep(for: .milliseconds(milliseconds))
      guard !isDead(process) else { return await never.run() }
      crash(process, by: queue, item)
      await never.run()
    }
  }

  private func crash(_ process: Int, by queue: Int, _ item: Int) {
    state.withLock { state in
      state.crashed.insert(process)
      state.crashCount += 1
      for (number, items) in state.items.enumerated() {
        for index in items.indices
        where items[index].running.contains(process) || items[index].endings[process] == context.clock.now.offset {
          if number == queue {
            if index != item { state.items[number][index].crashes.own += 1 }
          } else {
            state.items[number][index].crashes.other += 1
          }
        }
      }
    }
  }

  // MARK: Checking it

  private func check(_ queues: [StoreQueue<MortalStore, Int>]) async throws {
    if let violation = state.withLock({ $0.violation }) { throw Wrong(description: violation) }
    let processes = processCount + state.withLock { $0.crashed.count }
    for (number, queue) in queues.enumerated() {
      let dead = Dictionary(
        uniqueKeysWithValues: try await queue.deadLetters().map { (try $0.value.get(), $0.attempts) })
      for (index, item) in state.withLock({ $0.items[number] }).enumerated() {
        let name = "item \(index) of queue \(number), \(item)"
        let failures: Int
        switch item.behavior {
        case .healthy:
          failures = 0
          if item.crashes.own > 2 { throw Wrong(description: "\(name) ran beside a suspect item") }
        case .failing(let times), .late(let times, _): failures = times
        case .cancelled: failures = 1
        case .hung, .crashing:
          if item.isProcessed || dead[index] == nil { throw Wrong(description: "\(name) became no dead letter") }
          // It costs one slot of each process.
          if item.calls > processes {
            throw Wrong(description: "\(name) ran \(item.calls) times in \(processes) processes")
          }
          continue
        }
        // Crashes count for items of other queues, too, and if the process died before it called the closure.
        let uncalled = dead[index].map { $0 - item.calls } ?? 0
        if failures + item.crashes.own + item.crashes.other + uncalled >= Self.maximumDeliveries { continue }
        if !item.isProcessed || dead[index] != nil { throw Wrong(description: "\(name) was not processed") }
      }
    }
  }

  private var summary: String {
    state.withLock { state in
      "\(slots) slots, limit \(timeLimit), lease \(lease), \(processCount) processes, \(state.crashCount) crashes, "
        + "\(state.stallCount) stalls: \(state.items)"
    }
  }
}

/// A store that does not answer any more when its process has died.
private struct MortalStore: ForwardingStore {
  let base: MemoryStore<[UInt8]>
  /// Returns if the process lives.
  let waitIfDead: @Sendable () async throws -> Void

  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try await waitIfDead()
    let result = try await body()
    try await waitIfDead()
    return result
  }
}
