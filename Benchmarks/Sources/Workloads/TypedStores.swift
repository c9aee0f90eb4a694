import Foundation
import GRDB
import Larder
import LarderCBOR
import LarderLMDB

/// An `LMDBStore` of 100,000 records of six fields, next to the same bytes without a type, and records in SQLite.
enum TypedStores {
  private static let count = 100_000
  private static let users = (0..<count).map(User.init)
  private static let keys = FixedSizeKeys(0..<count)

  static let comparisons = [
    Comparison(typedGets, beside: [Comparison.Yardstick(rawGets, limit: 2.2)], roundCount: 21),
    Comparison(readAll, beside: [Comparison.Yardstick(recordReadAll, limit: 1.0 / 3)], roundCount: 11),
    Comparison(puts, beside: [Comparison.Yardstick(rawPuts, limit: 2)], roundCount: 11),
  ]

  private static let typedGets = Workload("get of a record from an LMDBStore of 100,000", operationCount: count) {
    folder in
    let store = try await filledStore(in: folder)
    let shuffled = shuffledKeys
    return {
      for key in shuffled { consume(try store.value(forKey: key)?.id) }
    }
  }

  private static let rawGets = Workload("get of the same bytes, by the codec .raw", operationCount: count) { folder in
    let store = try await LMDBStore(path: folder.newPath(), codec: .raw)
    try await store.apply(ChangeBatch(zip(keys.keys, try encodedUsers()).map { .set($0, $1) }))
    let shuffled = shuffledKeys
    return {
      for key in shuffled { consume(try store.value(forKey: key)?.count) }
    }
  }

  private static let readAll = Workload("all of an LMDBStore of 100,000 records", operationCount: count) { folder in
    let store = try await filledStore(in: folder)
    return { consume(try await store.entries(in: .all, limit: .max, order: .ascending).count) }
  }

  private static let recordReadAll = Workload("GRDB's records from SQLite, all of them", operationCount: count) {
    folder in
    let queue = try DatabaseQueue(path: folder.newPath())
    try await queue.write { database in
      try database.create(table: UserRecord.databaseTableName) { table in
        table.primaryKey("id", .integer)
        table.column("name", .text).notNull()
        table.column("email", .text).notNull()
        table.column("age", .integer).notNull()
        table.column("created", .datetime).notNull()
        table.column("tags", .text).notNull()
      }
      for user in users { try UserRecord(user).insert(database) }
    }
    return { consume(try await queue.read { try UserRecord.order(Column("id")).fetchAll($0) }.count) }
  }

  private static let puts = Workload("batch of 100,000 records into an LMDBStore", operationCount: count) { folder in
    let store = try await filledStore(in: folder)
    let batch = ChangeBatch(zip(keys.keys, users).map { .set($0, $1) })
    return { try await store.apply(batch) }
  }

  private static let rawPuts = Workload("the same, of encoded records, in C", operationCount: count) { folder in
    let path = folder.newPath()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let environment = try RawEnvironment(path)
    // In C all values have the same size, which is the median size.
    let sizes = try encodedUsers().map(\.count).sorted()
    let value = [UInt8](repeating: 1, count: sizes[sizes.count / 2])
    try environment.put(keys, value: value)
    return { try environment.put(keys, value: value) }
  }

  private static var shuffledKeys: [StoreKey] {
    SampleRecords.shuffledNumbers(count).map { keys.keys[$0] }
  }

  private static func encodedUsers() throws -> [[UInt8]] {
    try users.map { user in
      var bytes: [UInt8] = []
      try CBORCodec<User>().encode(user, into: &bytes)
      return bytes
    }
  }

  private static func filledStore(in folder: ScratchFolder) async throws -> LMDBStore<User> {
    let store = try await LMDBStore<User>(path: folder.newPath())
    try await store.apply(ChangeBatch(zip(keys.keys, users).map { .set($0, $1) }))
    return store
  }
}
