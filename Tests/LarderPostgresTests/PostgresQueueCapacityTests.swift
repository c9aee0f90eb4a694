#if Postgres
import Larder
import LarderPostgres
import LarderTesting
import TestSupport
import Testing

/// The limit of the items of a queue.
@Suite struct PostgresQueueCapacityTests {
  @Test func `a full queue refuses items until some have left`() async throws {
    try await Setting.run { setting in
      let configuration = PostgresQueueConfiguration(capacity: 3)
      let queue = try await PostgresQueueTests.open(setting, ManualClock(), configuration: configuration)
      try await queue.enqueue([QueueInput(1, id: "a"), QueueInput(2, after: .seconds(60))])
      await expectStoreError(.full) { try await queue.enqueue([QueueInput(3), QueueInput(4)]) }
      #expect(try await queue.count() == 2, "all or none")
      try await queue.enqueue(3)
      await expectStoreError(.full) { try await queue.enqueue(4) }
      #expect(try await queue.enqueue(5, id: "a").isDuplicate)
      let deliveries = try await queue.receive(max: 9, lease: .seconds(60))
      await expectStoreError(.full) { try await queue.enqueue(4) }
      #expect(try await queue.acknowledge(deliveries.map(\.receipt)).isEmpty)
      try await queue.enqueue([QueueInput(4), QueueInput(5)])
      await expectStoreError(.full) { try await queue.enqueue(7) }
    }
  }

  @Test(arguments: PostgresIsolation.allCases)
  func `a full queue refuses new keys and takes dead letters back`(isolation: PostgresIsolation) async throws {
    try await Setting.run(isolation: isolation) { setting in
      let queue = try await PostgresQueueTests.open(
        setting, ManualClock(),
        configuration: PostgresQueueConfiguration(policy: QueuePolicy(maximumDeliveries: 1), capacity: 3))
      try await queue.enqueue([QueueInput(1, id: "a"), QueueInput(2, id: "b"), QueueInput(3, id: "c")])
      for delivery in try await queue.receive(max: 2, lease: .seconds(60)) { try await queue.release(delivery.receipt) }
      #expect(try await queue.counts() == QueueCounts(waiting: 1, dead: 2))
      for _ in 0..<2 {
        await expectStoreError(.full) { try await queue.setValue(4, forKey: "d") }
        await expectStoreError(.full) { try await queue.apply([.remove("c"), .set("d", 4), .set("e", 5)]) }
        await expectStoreError(.full) { try await queue.update(["d"]) { $0[0] = 4 } }
      }
      #expect(try await queue.counts() == QueueCounts(waiting: 1, dead: 2))
      try await queue.apply([.remove("c"), .set("d", 4)])
      try await queue.update(["d", "f"]) { $0.assign([nil, 6]) }
      try await queue.update(["f"]) { $0[0] = 7 }
      // Dead letters count already.
      #expect(try await queue.requeueDeadLetters() == 2)
      #expect(try await queue.values(forKeys: ["a", "b", "f"]) == [1, 2, 7])
      await expectStoreError(.full) { try await queue.enqueue(8) }
    }
  }

  @Test(arguments: PostgresIsolation.allCases)
  func `producers never exceed the capacity`(isolation: PostgresIsolation) async throws {
    try await Setting.run(isolation: isolation) { setting in
      let configuration = PostgresQueueConfiguration(capacity: 25)
      let queue = try await PostgresQueueTests.open(setting, ManualClock(), configuration: configuration)
      let accepted = try await withThrowingTaskGroup(of: Int.self) { group in
        for producer in 0..<8 {
          group.addTask {
            var count = 0
            for number in 0..<10 {
              let value = producer * 10 + number
              do {
                if producer.isMultiple(of: 4) {
                  try await queue.setValue(value, forKey: StoreKey(integer: value))
                } else {
                  try await queue.enqueue(value)
                }
                count += 1
              } catch let error as StoreError where error.code == .full || error.code == .conflict {
                #expect(error.outcome == .nothingChanged)
              }
            }
            return count
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(accepted == 25)
      #expect(try await queue.count() == 25)
    }
  }

  @Test func `a transaction without room for its items changes nothing`() async throws {
    try await Setting.run { setting in
      let queue = try await PostgresQueueTests.open(
        setting, ManualClock(), configuration: PostgresQueueConfiguration(capacity: 2))
      let store = try await PostgresStore<Int>(in: setting.database)
      func write(_ values: [Int]) async throws {
        try await setting.database.write { transaction in
          try await transaction.setValue(values[0], forKey: StoreKey(integer: values[0]), in: store)
          _ = try await transaction.enqueue(values.map { QueueInput($0) }, in: queue)
        }
      }
      try await write([1])
      await expectStoreError(.full) { try await write([2, 3]) }
      try await write([4])
      await expectStoreError(.full) { try await write([5]) }
      #expect(try await queue.peek(max: 9).map(\.value) == [1, 4])
      #expect(try await store.entries(in: .all, limit: 9).map(\.value) == [1, 4])
    }
  }
}
#endif
