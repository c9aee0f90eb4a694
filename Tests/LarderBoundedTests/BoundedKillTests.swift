#if Compression && LMDB && SQLite
import Foundation
import Larder
import LarderBounded
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderSQLite
import LarderTesting
import TestSupport
import Testing

/// Processes that are killed while they write to a bounded store.
///
/// `LARDER_KILL_ROUNDS` sets the number of killed processes.
@Suite(.timeLimit(.minutes(60))) struct BoundedKillTests {
  /// The stores below the limit.
  enum Base: String, CaseIterable {
    case lmdb, sqlite, json, compressed
  }

  fileprivate static func open(_ path: String, _ base: String = "lmdb") async throws
    -> BoundedStore<AnyDataStore<[UInt8]>>
  {
    var configuration = BoundedStoreConfiguration()
    configuration.maximumShare = 1
    configuration.useInterval = .zero
    let store: AnyDataStore<[UInt8]> =
      switch try #require(Base(rawValue: base)) {
      case .lmdb: AnyDataStore(try await LMDBStore(path: path, codec: .raw, durability: .buffered))
      case .sqlite: AnyDataStore(try await SQLiteStore(path: path, codec: .raw, durability: .buffered))
      case .json: AnyDataStore(try await JSONFileStore(path: path, codec: .json([UInt8].self), durability: .buffered))
      case .compressed: AnyDataStore(try await CompressedFileStore<[UInt8]>(path: path, durability: .buffered))
      }
    return try await store.bounded(bytes: 200, configuration: configuration)
  }

  /// Writes entries of 20 bytes without end.
  fileprivate static func writeInOrder(_ path: String, _ base: String) async throws {
    let store = try await open(path, base)
    let last = try await store.keys(in: .all, limit: 1, order: .descending).first
    var number = try last.map { try $0.decodedInteger() + 1 } ?? 0
    while true {
      try await store.setValue([UInt8](repeating: UInt8(number % 256), count: 12), forKey: StoreKey(integer: number))
      number += 1
    }
  }

  /// Reads, writes and removes entries without end.
  fileprivate static func writeAtRandom(_ path: String, seed: UInt64) async throws {
    let store = try await open(path)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<2 {
        group.addTask {
          var generator = SeededGenerator(seed: seed &+ UInt64(task))
          while true {
            do {
              try await store.apply(BoundedHistoryTests.batch(using: &generator))
              _ = try await store.value(forKey: "k\(Int.random(in: 0..<12, using: &generator))")
            } catch StoreError.Code.full {
              // The batch does not fit.
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Ends this process by `SIGKILL` after a number of microseconds.
  fileprivate static func die(after microseconds: UInt32) {
    Thread.detachNewThread {
      usleep(microseconds)
      kill(getpid(), SIGKILL)
    }
  }

  @Test(arguments: Base.allCases) func `nothing is lost that was not evicted`(_ base: Base) async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "killed bounded writers over \(base)")
    let folder = try TemporaryFolder()
    let (path, base) = (folder.path("store"), base.rawValue)
    for round in 0..<ConformanceSuite.killsOfProcess {
      let delay = UInt32.random(in: 1_000..<80_000, using: &generator)
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = path as String, base = base as String, delay = delay as UInt32] in
        BoundedKillTests.die(after: delay)
        try await BoundedKillTests.writeInOrder(path, base)
      }
      let comment: Comment = "\(base), seed \(seed), round \(round), killed after \(delay) µs"
      let store = try await BoundedKillTests.open(path, base)
      try await store.expectConsistent(comment)
      if let last = try await store.keys(in: .all, limit: 1, order: .descending).first {
        try await BoundedHistoryTests.expectNeighbors(store, last: try last.decodedInteger(), comment)
      }
      try await store.close()
    }
  }

  /// The limit holds for two processes together, of which one is killed.
  @Test func `the limit holds for several processes`() async throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "killed bounded processes")
    let folder = try TemporaryFolder()
    let path = folder.path("environment")
    for round in 0..<ConformanceSuite.killsOfProcess {
      let (delay, taskSeed) = (UInt32.random(in: 1_000..<80_000, using: &generator), generator.next())
      let store = try await BoundedKillTests.open(path)
      let writer = Task { [seed = generator.next()] in
        var generator = SeededGenerator(seed: seed)
        while !Task.isCancelled {
          do {
            try await store.apply(BoundedHistoryTests.batch(using: &generator))
            #expect(try await store.usage().bytes <= 200)
          } catch StoreError.Code.full {
            // The batch does not fit.
          } catch is CancellationError {
            return
          }
        }
      }
      await #expect(processExitsWith: .signal(SIGKILL)) {
        [path = path as String, delay = delay as UInt32, taskSeed = taskSeed as UInt64] in
        BoundedKillTests.die(after: delay)
        try await BoundedKillTests.writeAtRandom(path, seed: taskSeed)
      }
      writer.cancel()
      try await writer.value
      try await store.synchronize()
      try await store.expectConsistent("seed \(seed), round \(round), killed after \(delay) µs")
      try await store.close()
    }
  }
}

extension StoreKey {
  /// The integer that `init(integer:)` was given.
  func decodedInteger() throws -> Int {
    try #require(bytes.count == 8)
    return Int(Int64(bitPattern: bytes.reduce(0) { $0 << 8 | UInt64($1) } ^ (1 << 63)))
  }
}
#endif
