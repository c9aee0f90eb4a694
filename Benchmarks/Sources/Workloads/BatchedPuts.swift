import Foundation
import Larder
import LarderBatching
import LarderLMDB
import LarderSQLite

/// Durable puts of many tasks through a `BatchingStore`, next to the bare stores and LMDB called from C.
public enum BatchedPuts {
  private static let taskCount = 1000
  private static let putsPerTask = 20
  // Enough puts that creating the tasks, and the incomplete groups at the beginning and the end, hardly count.
  private static let newPutsPerTask = 100
  private static let entryCount = 1_000_000
  private static let value = (0..<200).map { UInt8(truncatingIfNeeded: $0) }

  static let comparisons =
    [
      Comparison(
        ascending("put of a new key, of 1,000 tasks through .batched()", putsPerTask: newPutsPerTask) { $0.batched() },
        beside: [
          Comparison.Yardstick(
            ascending("put of a new key, of 1,000 tasks into the bare LMDBStore", putsPerTask: 1) { $0 }, limit: 1 / 40),
          Comparison.Yardstick(rawAscending, limit: 2.5),
        ], roundCount: 11),
      Comparison(random, beside: [Comparison.Yardstick(rawRandom, limit: 1 / 0.7)], roundCount: 11),
      Comparison(
        single("put of a single task through .batched()") { $0.batched() },
        beside: [Comparison.Yardstick(single("put of a single task into the bare LMDBStore") { $0 }, limit: 1.1)]),
      Comparison(
        sqlite("put of a new key into SQLite, of 1,000 tasks through .batched()", putsPerTask: putsPerTask) {
          $0.batched()
        },
        beside: [
          Comparison.Yardstick(
            sqlite("put of a new key, of 1,000 tasks into the bare SQLiteStore", putsPerTask: 1) { $0 }, limit: 1 / 20)
        ], roundCount: 11),
    ] + [10, 100].map(fewer)

  /// Compares a number of tasks that is smaller than elsewhere.
  private static func fewer(_ tasks: Int) -> Comparison {
    Comparison(
      ascending("put of a new key, of \(tasks) tasks through .batched()", tasks: tasks, putsPerTask: 20) {
        $0.batched()
      },
      beside: [
        Comparison.Yardstick(
          ascending("put of a new key, of \(tasks) tasks into the bare LMDBStore", tasks: tasks, putsPerTask: 2) { $0 })
      ], roundCount: 11)
  }

  /// Returns the time within which 99 of 100 puts return.
  ///
  /// - Parameters:
  ///   - isBatched: A Boolean value that indicates whether 1,000 tasks put through `.batched()`, or a single task into
  ///     the bare store.
  ///   - folder: The folder of the store.
  /// - Returns: The time, in seconds.
  /// - Throws: The error of the store.
  @concurrent
  public static func secondsOfNinetyNinePercent(isBatched: Bool, in folder: ScratchFolder) async throws -> Double {
    let store = try await LMDBStore(path: folder.newPath(), codec: .raw)
    let times = Locked<[Double]>([])
    let turn = Turn(count: .max)
    @Sendable func put(into store: some DataStore<[UInt8]>, count: Int) async throws {
      var own: [Double] = []
      for _ in 0..<count {
        let key = StoreKey(integer: turn.next())
        let time = try await ContinuousClock().measure { try await store.setValue(value, forKey: key) }
        own.append(time / .seconds(1))
      }
      times.withLock { [own] in $0 += own }
    }
    if isBatched {
      let batched = store.batched()
      try await inTasks { _ in try await put(into: batched, count: 100) }
    } else {
      try await put(into: store, count: 2000)
    }
    try await store.close()
    let sorted = times.withLock { $0.sorted() }
    return sorted[sorted.count * 99 / 100]
  }

  // MARK: Workloads

  private static func ascending(
    _ name: String, tasks: Int = taskCount, putsPerTask: Int,
    _ decorate: @escaping @Sendable (LMDBStore<[UInt8]>) -> some DataStore<[UInt8]>
  ) -> Workload {
    Workload(name, operationCount: tasks * putsPerTask) { folder in
      ascendingPuts(
        into: decorate(try await LMDBStore(path: folder.newPath(), codec: .raw)), tasks: tasks,
        putsPerTask: putsPerTask)
    }
  }

  private static func sqlite(
    _ name: String, putsPerTask: Int, _ decorate: @escaping @Sendable (SQLiteStore<[UInt8]>) -> some DataStore<[UInt8]>
  ) -> Workload {
    Workload(name, operationCount: taskCount * putsPerTask) { folder in
      ascendingPuts(
        into: decorate(try await SQLiteStore(path: folder.newPath(), codec: .raw)), putsPerTask: putsPerTask)
    }
  }

  /// Returns a round in which every put takes the next key, as in a log.
  private static func ascendingPuts(
    into store: some DataStore<[UInt8]>, tasks: Int = taskCount, putsPerTask: Int
  ) -> @Sendable () async throws -> Void {
    let key = Turn(count: .max)
    return {
      try await inTasks(tasks) { _ in
        for _ in 0..<putsPerTask { try await store.setValue(value, forKey: StoreKey(integer: key.next())) }
      }
    }
  }

  private static let rawAscending = Workload(
    "put in C, 1,000 a transaction", operationCount: taskCount * newPutsPerTask
  ) { folder in
    let environment = try emptyEnvironment(in: folder)
    let round = Turn(count: .max)
    return {
      let first = round.next() * taskCount * newPutsPerTask
      for step in 0..<newPutsPerTask {
        let start = first + step * taskCount
        try environment.put(FixedSizeKeys(integers: start..<start + taskCount), value: value)
      }
    }
  }

  private static let random = Workload(
    "put of a random one of 1,000,000 keys, of 1,000 tasks through .batched()", operationCount: taskCount * putsPerTask
  ) { folder in
    let store = try await LMDBStores.filledStore(in: folder).batched()
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount)).keys
    let round = Turn(count: entryCount / (taskCount * putsPerTask))
    return {
      let first = round.next() * taskCount * putsPerTask
      try await inTasks { task in
        for step in 0..<putsPerTask {
          try await store.setValue(value, forKey: keys[first + step * taskCount + task])
        }
      }
    }
  }

  private static let rawRandom = Workload(
    "put of a random key in C, 1,000 a transaction, sorted", operationCount: taskCount * putsPerTask
  ) { folder in
    let environment = try LMDBStores.filledEnvironment(in: folder)
    let numbers = SampleRecords.shuffledNumbers(entryCount)
    let transactions = stride(from: 0, to: entryCount, by: taskCount).map { first in
      FixedSizeKeys(numbers[first..<first + taskCount].sorted())
    }
    let turn = Turn(count: transactions.count)
    return {
      for _ in 0..<putsPerTask { try environment.put(transactions[turn.next()], value: value) }
    }
  }

  private static func single(
    _ name: String, _ decorate: @escaping @Sendable (LMDBStore<[UInt8]>) -> some DataStore<[UInt8]>
  ) -> Workload {
    Workload(name, operationCount: 50) { folder in
      let store = decorate(try await LMDBStore(path: folder.newPath(), codec: .raw))
      let turn = Turn(count: .max)
      return {
        for _ in 0..<50 { try await store.setValue(value, forKey: StoreKey(integer: turn.next())) }
      }
    }
  }

  private static func inTasks(
    _ count: Int = taskCount, _ body: @escaping @Sendable (_ task: Int) async throws -> Void
  ) async throws {
    try await withThrowingDiscardingTaskGroup { group in
      for task in 0..<count {
        group.addTask { try await body(task) }
      }
    }
  }

  private static func emptyEnvironment(in folder: ScratchFolder) throws -> RawEnvironment {
    let path = folder.newPath()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    return try RawEnvironment(path)
  }
}
