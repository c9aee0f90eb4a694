#if Postgres
import Foundation
import Larder
import LarderPostgres
import TestSupport
import Testing

/// Interleavings of two transactions in which a plain `SELECT … FOR UPDATE`, or a `DELETE` of a range, loses an update.
@Suite struct AnomalyTests {
  @Test func `two increments of a missing key are two`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let (isClaimed, mayCommit) = (Gate(), Gate())
      async let first: Void = setting.database.write { transaction in
        try await transaction.update(["k"], in: store) { $0[0] = ($0[0] ?? 0) + 1 }
        isClaimed.open()
        try await mayCommit.wait()
      }
      try await isClaimed.wait()
      async let second: Void = store.update(["k"]) { $0[0] = ($0[0] ?? 0) + 1 }
      try await setting.waitForBlocked(1)
      #expect(try await store.value(forKey: "k") == nil, "the row that locks a missing key is invisible")
      mayCommit.open()
      _ = try await (first, second)
      #expect(try await store.value(forKey: "k") == 2)
    }
  }

  @Test func `a set during an update of a missing key follows it`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let isClaimed = Gate()
      let mayWrite = Flag()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try await store.update(["k"]) { slots in
            isClaimed.open()
            while !mayWrite.isSet { Thread.sleep(forTimeInterval: 0.001) }
            slots[0] = (slots[0] ?? 0) + 1
          }
        }
        try await isClaimed.wait()
        group.addTask { try await store.setValue(5, forKey: "k") }
        try await setting.waitForBlocked(1)
        mayWrite.set()
        try await group.waitForAll()
      }
      #expect(try await store.value(forKey: "k") == 5)
    }
  }

  @Test func `an update waits for a running removal`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await store.setValue(7, forKey: "k")
      let (isRemoved, mayCommit) = (Gate(), Gate())
      async let removal: Void = setting.database.write { transaction in
        try await transaction.removeValue(forKey: "k", in: store)
        isRemoved.open()
        try await mayCommit.wait()
      }
      try await isRemoved.wait()
      async let seen = store.update(["k"]) { slots in
        defer { slots[0] = 1 }
        return slots[0]
      }
      try await setting.waitForBlocked(1)
      mayCommit.open()
      try await removal
      #expect(try await seen == nil)
      #expect(try await store.value(forKey: "k") == 1)
    }
  }

  @Test func `a removal of two keys is atomic beside a batch that sets them`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await store.setValue(0, forKey: "b")
      let (isWritten, mayCommit) = (Gate(), Gate())
      async let batch: Void = setting.database.write { transaction in
        try await transaction.apply([.set("a", 1), .set("b", 1)], to: store)
        isWritten.open()
        try await mayCommit.wait()
      }
      try await isWritten.wait()
      async let removal: Void = store.apply([.remove("a"), .remove("b")])
      try await setting.waitForBlocked(1)
      mayCommit.open()
      _ = try await (batch, removal)
      #expect(try await store.values(forKeys: ["a", "b"]) == [nil, nil])
    }
  }

  @Test func `a replacement of all entries waits for no new key`() async throws {
    try await Setting.run { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      let (isRemoved, mayCommit) = (Gate(), Gate())
      async let replacement: Void = setting.database.write { transaction in
        try await transaction.removeAll(of: store)
        isRemoved.open()
        try await mayCommit.wait()
        try await transaction.setValue(1, forKey: "marker", in: store)
      }
      try await isRemoved.wait()
      async let update: Void = store.update(["k"]) { $0[0] = 1 }
      // Without the lock of the table, the update is committed here, and outlives the removal that followed it for a reader.
      try await setting.waitForBlocked(1)
      #expect(try await store.count(in: .all) == 0, "readers don't wait")
      mayCommit.open()
      _ = try await (replacement, update)
      #expect(try await store.keys(in: .all, limit: 10, order: .ascending) == ["k", "marker"])
    }
  }

  @Test(arguments: PostgresIsolation.allCases) func `batches and updates do not deadlock`(isolation: PostgresIsolation)
    async throws
  {
    // The server counts the deadlocks of all who use it.
    let server = try await PostgresServer()
    try await Setting.run(on: server, connections: 6, isolation: isolation) { setting in
      let store = try await PostgresStore<Int>(in: setting.database)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<6 {
          group.addTask {
            for round in 0..<20 {
              let keys = (0..<8).map { _ in StoreKey("k\(Int.random(in: 0..<20))") }
              var batch = ChangeBatch<Int>()
              for (index, key) in keys.enumerated() {
                if (task + round + index).isMultiple(of: 3) {
                  batch.removeValue(forKey: key)
                } else {
                  batch.setValue(round, forKey: key)
                }
              }
              try await store.apply(batch)
              let distinct = Array(Set(keys)).shuffled()
              do {
                try await store.update(distinct) { slots in slots.assign(slots.map { ($0 ?? 0) + 1 }) }
              } catch StoreError.Code.conflict where isolation == .serializable {
                // The server could not order it, 20 times.
              }
            }
          }
        }
        try await group.waitForAll()
      }
      #expect(try await setting.deadlockCount == 0)
    }
    try await server.close()
  }
}

extension Setting {
  /// The number of deadlocks that the server has ended.
  fileprivate var deadlockCount: Int {
    get async throws {
      let text = try await psql(
        "SELECT pg_stat_force_next_flush(); SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
      return Int(text.split(separator: "\n").last ?? "") ?? -1
    }
  }
}
#endif
