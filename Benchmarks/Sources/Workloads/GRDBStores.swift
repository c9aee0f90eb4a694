import Foundation
import GRDB
import Larder
import LarderGRDB

/// A `GRDBStore` of 100,000 entries of 200 bytes inside the transactions of a pool, next to GRDB's own cached statements
/// over the same table.
enum GRDBStores {
  private static let entryCount = 100_000
  private static let batchCount = 10_000

  static let comparisons = [
    Comparison(gets, beside: [Comparison.Yardstick(statementGets, limit: 1.3)]),
    Comparison(puts, beside: [Comparison.Yardstick(statementPuts, limit: 1.3)]),
    Comparison(putsOfItsOwn, beside: [Comparison.Yardstick(statementPuts, limit: 1.3)]),
  ]

  // MARK: Reading

  private static let gets = Workload("get from a GRDBStore inside a read", operationCount: batchCount) { folder in
    let (pool, store) = try await filled(in: folder)
    let keys = keys.map { StoreKey($0) }
    return {
      consume(
        try await pool.read { db in
          try keys.reduce(UInt64(0)) { sum, key in sum &+ UInt64(try store.value(forKey: key, in: db)?.first ?? 0) }
        })
    }
  }

  private static let statementGets = Workload("GRDB's cached statement, inside a read", operationCount: batchCount) {
    folder in
    let (pool, _) = try await filled(in: folder)
    return {
      consume(
        try await pool.read { db in
          let statement = try db.cachedStatement(sql: "SELECT value FROM \"default\" WHERE key = ?")
          return try keys.reduce(UInt64(0)) { sum, key in
            sum &+ UInt64(try Data.fetchOne(statement, arguments: [Data(key.utf8)])?.first ?? 0)
          }
        })
    }
  }

  // MARK: Writing

  private static let puts = Workload("batch of 10,000 puts into a GRDBStore inside a write", operationCount: batchCount)
  { folder in
    let (pool, store) = try await filled(in: folder)
    let keys = keys.map { StoreKey($0) }
    let round = Turn(count: 250)
    return {
      let value = [UInt8](repeating: UInt8(round.next()), count: 200)
      try await pool.write { db in try store.apply(ChangeBatch(keys.map { .set($0, value) }), in: db) }
    }
  }

  private static let putsOfItsOwn = Workload(
    "batch of 10,000 puts into a GRDBStore, a transaction of its own", operationCount: batchCount
  ) { folder in
    let (_, store) = try await filled(in: folder)
    let keys = keys.map { StoreKey($0) }
    let round = Turn(count: 250)
    return {
      let value = [UInt8](repeating: UInt8(round.next()), count: 200)
      try await store.apply(ChangeBatch(keys.map { .set($0, value) }))
    }
  }

  private static let statementPuts = Workload("the same batch, by GRDB's cached statement", operationCount: batchCount)
  {
    folder in
    let (pool, _) = try await filled(in: folder)
    let round = Turn(count: 250)
    return {
      let value = Data(repeating: UInt8(round.next()), count: 200)
      try await pool.write { db in
        let statement = try db.cachedStatement(
          sql: "INSERT INTO \"default\" VALUES (?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value")
        for key in keys { try statement.execute(arguments: [Data(key.utf8), value]) }
      }
    }
  }

  /// The keys of a batch, in ascending order.
  private static let keys = SampleRecords.shuffledNumbers(entryCount).prefix(batchCount).sorted()
    .map { "user:\(1_000_000 + $0)" }

  /// Returns a new pool with a store.
  private static func filled(in folder: ScratchFolder) async throws -> (DatabasePool, GRDBStore<[UInt8]>) {
    let pool = try DatabasePool(path: folder.newPath())
    let store = try await GRDBStore(in: pool, codec: .raw)
    let value = [UInt8](repeating: 255, count: 200)
    try await store.apply(ChangeBatch((0..<entryCount).map { .set(StoreKey("user:\(1_000_000 + $0)"), value) }))
    return (pool, store)
  }
}
