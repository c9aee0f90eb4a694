#if LMDB
import Foundation
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderLMDB

/// A small memory map that grows while it is in use.
@Suite struct MapGrowthTests {
  private static let smallMap = 1 << 17

  private func withGrowingStore(
    _ body: (LMDBEnvironment, LMDBStore<[UInt8]>) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(
      EnvironmentConfiguration(
        path: folder.path("environment"), durability: .buffered, initialMapSize: MapGrowthTests.smallMap))
    let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
    #expect(try await environment.statistics().mapSize == MapGrowthTests.smallMap)
    try await body(environment, store)
    #expect(try await environment.statistics().mapSize > MapGrowthTests.smallMap)
    try await environment.close()
  }

  @Test func `the map has a tebibyte of address space if available`() async throws {
    let folder = try TemporaryFolder()
    let environment = try await LMDBEnvironment(path: folder.path("environment"))
    let size = try await environment.statistics().mapSize
    #expect(size == 1 << 40 || size.nonzeroBitCount == 1)
    try await environment.close()
  }

  @Test func `one batch may be many times larger than the map`() async throws {
    try await withGrowingStore { _, store in
      let value = [UInt8](repeating: 1, count: 10_000)
      try await store.apply(ChangeBatch((0..<500).map { .set(StoreKey(integer: $0), value) }))
      #expect(try store.count(in: .all) == 500)
      #expect(try store.value(forKey: StoreKey(integer: 499)) == value)
    }
  }

  @Test func `an update runs again and only its last run counts`() async throws {
    try await withGrowingStore { _, store in
      let runs = Tally()
      let result = try await store.update(["a", "b"]) { slots in
        runs.add()
        slots[0] = [UInt8](repeating: UInt8(runs.count), count: 300_000)
        return runs.count
      }
      #expect(result == runs.count)
      #expect(runs.count > 1)
      #expect(try store.value(forKey: "a")?.first == UInt8(runs.count))
      #expect(try store.value(forKey: "a")?.count == 300_000)
    }
  }

  @Test func `nested reads continue while the map grows`() async throws {
    try await withGrowingStore { environment, store in
      let value = [UInt8](repeating: 3, count: 30_000)
      try await store.setValue(value, forKey: "k")
      let isDone = Flag()
      let readers = Task {
        try await Threads.run(4) { number in
          for _ in 0..<1_000_000 where !isDone.isSet {
            try environment.read { transaction in
              // Uses stores, and another read, within the read. They must not wait for the map, which waits for them.
              let count = try transaction.count(of: store)
              #expect(try store.value(forKey: "k") == value)
              #expect(try store.keys(in: .all, limit: 5, order: .descending).isEmpty == false)
              let later = try environment.read { try $0.count(of: store) }
              #expect(later >= count)
              #expect(try transaction.count(of: store) == count)
            }
          }
        }
      }
      for number in 0..<80 {
        try await store.setValue(value, forKey: StoreKey(integer: number))
      }
      isDone.set()
      try await readers.value
      #expect(try store.count(in: .all) == 81)
    }
  }

  @Test func `an update may read its store and others`() async throws {
    try await withGrowingStore { environment, store in
      let other = try await LMDBStore<Int>(in: environment, name: "other", codec: .json())
      try await other.setValue(5, forKey: "k")
      for number in 0..<40 {
        try await store.update(StoreKey(integer: number)) { value in
          let count = try store.count(in: .all)
          let kept = try environment.read { try $0.value(forKey: "k", in: other) } ?? 0
          value = [UInt8](repeating: UInt8(count + kept), count: 9000)
        }
      }
      for number in 0..<40 {
        #expect(try store.value(forKey: StoreKey(integer: number))?.last == UInt8(number + 5))
      }
    }
  }

  @Test func `one thread may read while it iterates`() async throws {
    try await withGrowingStore { environment, store in
      let value = [UInt8](repeating: 1, count: 2000)
      try await store.apply(ChangeBatch((0..<300).map { .set(StoreKey(integer: $0), value) }))
      var count = 0
      for try await entry in store.entries(in: .all) {
        #expect(try store.value(forKey: entry.key) == value)
        // A walk over pages holds no snapshot, so writes and map growth need not wait for it.
        try await store.setValue(value, forKey: StoreKey(integer: 1000 + count))
        count += 1
        if count > 2000 { break }
        if entry.key >= StoreKey(integer: 299) { break }
      }
      #expect(count == 300)
      try environment.read { transaction in
        try transaction.withCursor(of: store) { cursor in
          while try cursor.moveToNext() {
            guard let key = cursor.key else { continue }
            #expect(try store.value(forKey: key) == value)
            #expect(try transaction.value(forKey: key, in: store) == value)
          }
        }
      }
    }
  }

  @Test func `reads continue while the map waits for a backup`() async throws {
    try await withGrowingStore { environment, store in
      try await store.setValue([1], forKey: "k")
      let backup = HeldRead()
      let backingUp = Task {
        try await backup.run { try environment.handle.read(for: .backup, isBackup: true) { _ in backup.hold() } }
      }
      await backup.isHeld()
      let growing = Task { try await store.setValue([UInt8](repeating: 1, count: 300_000), forKey: "large") }
      for _ in 0..<20_000 {
        #expect(try store.value(forKey: "k") == [1])
        await Task.yield()
      }
      backup.release()
      try await backingUp.value
      try await growing.value
      #expect(try store.value(forKey: "large")?.count == 300_000)
    }
  }

  @Test func `closing while the map grows succeeds`() async throws {
    let folder = try TemporaryFolder()
    for _ in 0..<10 {
      let environment = try await LMDBEnvironment(
        EnvironmentConfiguration(
          path: folder.path("environment"), durability: .buffered, initialMapSize: MapGrowthTests.smallMap))
      let store = try await LMDBStore<[UInt8]>(in: environment, codec: .raw)
      await withTaskGroup(of: StoreError.Code?.self) { group in
        for number in 0..<4 {
          group.addTask {
            do {
              for round in 0..<50 {
                try await store.setValue([UInt8](repeating: 1, count: 3000), forKey: "\(number) \(round)")
                _ = try store.value(forKey: "\(number) \(round)")
              }
              return nil
            } catch {
              return (error as? StoreError)?.code ?? .ioFailed
            }
          }
        }
        group.addTask {
          do {
            for _ in 0..<20 { await Task.yield() }
            try await environment.close()
            return .closed
          } catch {
            return .ioFailed
          }
        }
        for await code in group { #expect(code == nil || code == .closed) }
      }
    }
  }
}
#endif
