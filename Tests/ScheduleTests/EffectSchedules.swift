import Larder
import LarderCBOR
import LarderObservation
import LarderQueue
import LarderStoreQueue
import LarderTesting
import TestSupport
import Testing

/// Transactions and queues in many schedules: what was acknowledged has happened once.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct EffectSchedules {
  @Test func `transfers keep the sum`() async throws {
    try await runSchedules("transfers") { context in
      let bytes = context.slowStore()
      let accounts = bytes.typed(Int.self, prefix: "a/", codec: .json())
      let log = bytes.typed(Int.self, prefix: "l/", codec: .json())
      try await accounts.apply([.set("x", 100), .set("y", 100)])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<3 {
          group.addTask {
            for number in 0..<2 {
              try await bytes.transaction { transaction in
                let balance = try await transaction.value(forKey: "x", in: accounts) ?? 0
                try await transaction.setValue(balance - 1, forKey: "x", in: accounts)
                try await transaction.update("y", in: accounts) { $0 = ($0 ?? 0) + 1 }
                try await transaction.setValue(1, forKey: "\(task)/\(number)", in: log)
                return .commit(())
              }
            }
          }
        }
        try await group.waitForAll()
      }
      let balances = try await accounts.values(forKeys: ["x", "y"])
      let transferCount = try await log.count(in: .all)
      guard balances == [94, 106], transferCount == 6 else { throw Wrong("\(balances), \(transferCount) transfers") }
    }
  }

  @Test func `consumers share a queue`() async throws {
    try await runSchedules("two consumers") { context in
      let bytes = context.slowStore()
      let queue = try await StoreQueue(
        bytes, prefix: "q/", codec: .cbor(Int.self),
        environment: .manual(context.clock, randomness: context.generator("queue")))
      let consumed = await withTaskGroup(of: Result<[Int], any Error>.self) { group in
        group.addTask {
          do {
            for number in 0..<4 { try await queue.enqueue(number) }
            return .success([])
          } catch {
            return .failure(error)
          }
        }
        for _ in 0..<2 {
          group.addTask {
            do {
              var values: [Int] = []
              for _ in 0..<2 { values.append(try await queue.withNext(lease: .seconds(60)) { $0.value }) }
              return .success(values)
            } catch {
              return .failure(error)
            }
          }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      let values = try consumed.flatMap { try $0.get() }
      guard values.sorted() == [0, 1, 2, 3] else { throw Wrong("consumed \(values)") }
      guard try await queue.counts() == QueueCounts() else { throw Wrong("\(try await queue.counts())") }
    }
  }

  /// A consumer that waits for the time of an item is not forgotten, also if the timer ends while the consumer is still about to
  /// wait.
  @Test func `a delayed item is delivered in time`() async throws {
    try await runSchedules("delayed items") { context in
      context.mayPassTime()
      let queue = try await StoreQueue(
        context.slowStore().observable(), prefix: "q/", codec: .cbor(Int.self),
        environment: .manual(context.clock, randomness: context.generator("queue")))
      for number in 1...2 { try await queue.enqueue(number, after: .seconds(number)) }
      async let first = queue.withNext(lease: .seconds(60)) { $0.value }
      async let second = queue.withNext(lease: .seconds(60)) { $0.value }
      guard try await [first, second].sorted() == [1, 2] else { throw Wrong("other items") }
      // One that is not woken would wait until the end of a lease.
      guard context.clock.now.offset < .seconds(30) else { throw Wrong("delivered at \(context.clock.now.offset)") }
    }
  }

  #if DEBUG
  // The threads of files take part in debug builds only.

  /// The next producer must get the room for which one that has given up was waiting.
  @Test func `a producer that gives up admits others`() async throws {
    try await runSchedules("producers") { context in
      let queue = try await QueueStore<Int>(
        path: "/queue", codec: .cbor(),
        configuration: QueueConfiguration(capacity: QueueCapacity(items: 2, policy: .wait)), durability: .buffered,
        fileSystem: SimulatedFileSystem(seed: context.seed),
        environment: .manual(context.clock, randomness: context.generator("queue")))
      try await queue.enqueue(1)
      let first = Task { try await queue.enqueue([QueueInput(2), QueueInput(3)]) }
      let second = Task { try await queue.enqueue(4) }
      var generator = context.generator()
      for _ in 0..<Int.random(in: 0..<12, using: &generator) { await Task.yield() }
      context.cancel(first)
      guard case .failure(let error) = await first.result, error is CancellationError else {
        throw Wrong("room for two")
      }
      _ = try await second.value
    }
  }
  #endif
}
