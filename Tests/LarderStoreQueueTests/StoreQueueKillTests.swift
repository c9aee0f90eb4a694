#if LMDB
import Foundation
import Larder
import LarderCBOR
import LarderLMDB
import LarderStoreQueue
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// Processes that are killed while they enqueue and work.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes.
@Suite struct StoreQueueKillTests {
  fileprivate typealias Bytes = LMDBStore<[UInt8]>

  /// Opens a queue by a wall clock that has moved on by some hours, so the leases of killed processes have ended.
  fileprivate static func open(_ bytes: Bytes, hours: Int) async throws -> StoreQueue<Bytes, Int> {
    try await StoreQueue(
      bytes, prefix: "jobs/", codec: .cbor(),
      configuration: StoreQueueConfiguration(policy: QueuePolicy(maximumDeliveries: nil)),
      environment: QueueEnvironment(now: { Date.now.addingTimeInterval(Double(hours) * 3600) }))
  }

  fileprivate static func open(_ path: String) async throws -> Bytes {
    try await Bytes(path: path, codec: .raw, durability: .buffered)
  }

  fileprivate static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      kill(getpid(), SIGKILL)
    }
  }

  /// Appends lines to a file that several processes share.
  fileprivate final class Log: Sendable {
    private let descriptor: Int32

    init(_ path: String) { descriptor = Foundation.open(path, O_WRONLY | O_APPEND | O_CREAT, 0o600) }

    deinit { close(descriptor) }

    func append(_ event: Character, _ number: Int) {
      let line = Array("\(event) \(number)\n".utf8)
      #expect(write(descriptor, line, line.count) == line.count)
    }
  }

  // MARK: An outbox

  fileprivate static func openOutbox(_ path: String) async throws -> (LMDBEnvironment, Bytes, Bytes) {
    let environment = try await LMDBEnvironment(path: path, durability: .buffered)
    return (
      environment, try await Bytes(in: environment, name: "orders", codec: .raw),
      try await Bytes(in: environment, name: "queues", codec: .raw)
    )
  }

  fileprivate static func placeOrders(_ path: String, from first: Int) async throws {
    let (environment, orders, bytes) = try await openOutbox(path)
    let outbox = try await open(bytes, hours: 0)
    for number in first... {
      try await environment.write { transaction in
        try transaction.setValue([1], forKey: StoreKey(integer: number), in: orders)
        try transaction.apply(outbox.changes(enqueuing: number, group: "orders"), to: bytes)
      }
    }
  }

  @Test func `an order and its item are both there or neither`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "killed outboxes")
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    for round in 0..<ConformanceSuite.killsOfProcess {
      let (delay, first) = (UInt32.random(in: 1_000..<60_000, using: &generator), round * 1_000_000)
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = path as String, delay = delay as UInt32, first = first as Int] in
        StoreQueueKillTests.die(after: delay)
        try await StoreQueueKillTests.placeOrders(path, from: first)
      }
      let (environment, orders, bytes) = try await StoreQueueKillTests.openOutbox(path)
      let outbox = try await StoreQueueKillTests.open(bytes, hours: 0)
      let items = try await outbox.entries(in: .all, limit: .max, order: .ascending).map { StoreKey(integer: $0.value) }
      let found = try orders.keys(in: .all, limit: .max, order: .ascending)
      #expect(items == found, "seed \(seed), round \(round), killed after \(delay) µs")
      try await outbox.close()
      try await orders.close()
      try await environment.close()
    }
  }

  // MARK: Producers and workers

  /// Enqueues and works until it is killed, some time after it has enqueued an item, however busy the machine is.
  fileprivate static func work(_ path: String, _ logPath: String, round: Int, killedAfter delay: UInt32) async throws {
    let queue = try await open(open(path), hours: round)
    let log = Log(logPath)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for producer in 0..<2 {
        group.addTask {
          for index in 0... {
            let number = round * 1_000_000 + producer * 500_000 + index
            // Each producer has two groups.
            let id: StoreKey? = index.isMultiple(of: 3) ? "id \(number)" : nil
            try await queue.enqueue(number, id: id, priority: index % 2, group: StoreKey("\(producer) \(index % 2)"))
            log.append("e", number)
            if producer == 0, index == 0 { die(after: delay) }
          }
        }
      }
      for worker in 1...2 {
        group.addTask { while true { try await consume(queue, log, max: worker) } }
      }
      try await group.waitForAll()
    }
  }

  /// Receives and acknowledges items.
  ///
  /// - Returns: The number of items.
  @discardableResult
  fileprivate static func consume(_ queue: StoreQueue<Bytes, Int>, _ log: Log, max: Int) async throws -> Int {
    let deliveries = try await queue.receive(max: max, lease: .seconds(600))
    for delivery in deliveries {
      log.append("d", delivery.value)
      log.append("t", delivery.value)
      try await queue.acknowledge(delivery.receipt)
      log.append("a", delivery.value)
    }
    if deliveries.isEmpty { await Task.yield() }
    return deliveries.count
  }

  @Test func `killed producers and workers lose and repeat nothing`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "killed workers")
    let folder = try TemporaryFolder()
    let (path, logPath) = (folder.path("environment"), folder.path("log"))
    let rounds = ConformanceSuite.killsOfProcess
    let log = Log(logPath)
    for round in 0..<rounds {
      let delay = UInt32.random(in: 5_000..<150_000, using: &generator)
      // This process works at the same time.
      let run = SharedRun()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          let queue = try await StoreQueueKillTests.open(StoreQueueKillTests.open(path), hours: round)
          while !run.isOver.load(ordering: .relaxed) { try await StoreQueueKillTests.consume(queue, log, max: 1) }
          try await queue.close()
        }
        await #expect(processExitsWith: .signal(SIGKILL)) {
          [path = path as String, logPath = logPath as String, delay = delay as UInt32, round = round as Int] in
          try await StoreQueueKillTests.work(path, logPath, round: round, killedAfter: delay)
        }
        run.isOver.store(true, ordering: .relaxed)
        try await group.waitForAll()
      }
    }
    let queue = try await StoreQueueKillTests.open(StoreQueueKillTests.open(path), hours: rounds)
    while try await StoreQueueKillTests.consume(queue, log, max: 100) > 0 {}
    try check(String(decoding: Data(contentsOf: URL(filePath: logPath)), as: UTF8.self), "seed \(seed)")
    #expect(try await queue.counts() == QueueCounts())
    try await queue.close()
    // After the ids are forgotten, nothing is left but the record of the format.
    let bytes = try await StoreQueueKillTests.open(path)
    let later = try await StoreQueueKillTests.open(bytes, hours: rounds + 1)
    // A call forgets a limited number of them.
    var count = try bytes.count(in: .all)
    while true {
      _ = try await later.receive(lease: .seconds(1))
      let left = try bytes.count(in: .all)
      guard left < count else { break }
      count = left
    }
    #expect(count == 1)
    try await later.close()
  }

  private final class SharedRun: Sendable {
    let isOver = Atomic(false)
  }

  /// Checks the events of all processes.
  private func check(_ log: String, _ comment: Comment) throws {
    var acknowledged: Set<Int> = []
    var tried: Set<Int> = []
    var enqueued: Set<Int> = []
    var last: [String: Int] = [:]
    for line in log.split(separator: "\n") {
      let parts = line.split(separator: " ")
      let number = try #require(Int(parts[1]))
      switch parts[0] {
      case "e": enqueued.insert(number)
      case "t": tried.insert(number)
      case "a": acknowledged.insert(number)
      default:
        #expect(!acknowledged.contains(number), "\(number) was delivered again; \(comment)")
        let group = "\(number / 500_000) \(number % 500_000 % 2)"
        #expect(last[group] ?? -1 <= number, "\(number) after \(last[group] ?? -1); \(comment)")
        last[group] = number
      }
    }
    #expect(enqueued.isSubset(of: tried), comment)
    #expect(!enqueued.isEmpty)
  }
}
#endif
