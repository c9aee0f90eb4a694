import Larder
import LarderBounded
import LarderLMDB

/// A bounded `LMDBStore` that is full, next to the bare store, used by eight tasks.
///
/// The limit is 100 MB, and an entry has 1 KB.
enum BoundedStores {
  private static let byteLimit = 100_000_000
  private static let taskCount = 8
  private static let getsPerTask = 10_000
  private static let batchesPerTask = 4
  private static let batchSize = 500
  private static let value = [UInt8](repeating: 7, count: 1024)
  private static let entryCount = byteLimit / (value.count + 8)

  static let comparisons = [
    Comparison(
      gets("get from a full bounded LMDBStore, by 8 tasks") { try await $0.bounded(bytes: byteLimit) },
      beside: [Comparison.Yardstick(gets("get from an LMDBStore of 100 MB, by 8 tasks") { $0 }, limit: 1.6)],
      roundCount: 11),
    Comparison(
      puts("put of 500 new keys into a full bounded LMDBStore, by 8 tasks") { try await $0.bounded(bytes: byteLimit) },
      beside: [
        Comparison.Yardstick(puts("put of 500 new keys into an LMDBStore of 100 MB, by 8 tasks") { $0 }, limit: 5)
      ],
      roundCount: 11),
    Comparison(
      opening("open a full bounded LMDBStore") { try await $0.bounded(bytes: byteLimit) },
      beside: [Comparison.Yardstick(opening("open an LMDBStore of 100 MB") { $0 })], roundCount: 11),
  ]

  private static func batch(from first: Int) -> ChangeBatch<[UInt8]> {
    ChangeBatch((first..<first + batchSize).map { .set(StoreKey(integer: $0), value) })
  }

  /// Fills a store beyond the limit of the bounded one.
  private static func fill(_ store: some DataStore<[UInt8]>) async throws {
    for first in stride(from: 0, to: entryCount + batchSize, by: batchSize) {
      try await store.apply(batch(from: first))
    }
  }

  private static func gets(
    _ name: String,
    _ decorate: @escaping @Sendable (LMDBStore<[UInt8]>) async throws -> some DataStore<[UInt8]>
  ) -> Workload {
    Workload(name, operationCount: taskCount * getsPerTask) { folder in
      let store = try await decorate(LMDBStore(path: folder.newPath(), codec: .raw, durability: .buffered))
      try await fill(store)
      let keys = SampleRecords.shuffledNumbers(entryCount).map { StoreKey(integer: $0) }
      return {
        try await inTasks { task in
          var sum: UInt64 = 0
          for number in 0..<getsPerTask {
            let key = keys[(task * getsPerTask + number) % keys.count]
            sum &+= UInt64(try await store.value(forKey: key)?.first ?? 0)
          }
          consume(sum)
        }
      }
    }
  }

  private static func puts(
    _ name: String,
    _ decorate: @escaping @Sendable (LMDBStore<[UInt8]>) async throws -> some DataStore<[UInt8]>
  ) -> Workload {
    Workload(name, operationCount: taskCount * batchesPerTask * batchSize) { folder in
      let store = try await decorate(LMDBStore(path: folder.newPath(), codec: .raw, durability: .buffered))
      try await fill(store)
      let turn = Turn(count: .max)
      return {
        try await inTasks { _ in
          for _ in 0..<batchesPerTask {
            try await store.apply(batch(from: entryCount + (turn.next() + 2) * batchSize))
          }
        }
      }
    }
  }

  private static func opening(
    _ name: String,
    _ decorate: @escaping @Sendable (LMDBStore<[UInt8]>) async throws -> some DataStore<[UInt8]>
  ) -> Workload {
    Workload(name) { folder in
      let path = folder.newPath()
      let store = try await decorate(LMDBStore(path: path, codec: .raw, durability: .buffered))
      try await fill(store)
      try await store.close()
      return {
        let store = try await decorate(LMDBStore(path: path, codec: .raw, durability: .buffered))
        consume(try await store.value(forKey: StoreKey(integer: entryCount)))
        try await store.close()
      }
    }
  }

  private static func inTasks(_ body: @escaping @Sendable (_ task: Int) async throws -> Void) async throws {
    try await withThrowingDiscardingTaskGroup { group in
      for task in 0..<taskCount {
        group.addTask { try await body(task) }
      }
    }
  }
}
