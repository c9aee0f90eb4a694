import Foundation
import GRDB
import Larder
import LarderCBOR
import LarderLMDB
import LarderSQLite

/// An `LMDBStore` and an `SQLiteStore` of 100,000 records of six fields, next to the same bytes without a type, and GRDB's
/// records in SQLite.
enum TypedStores {
  private static let count = 100_000
  private static let users = (0..<count).map(User.init)
  private static let keys = FixedSizeKeys(0..<count)

  static let comparisons = [
    Comparison(typedGets, beside: [Comparison.Yardstick(rawGets, limit: 2.2)], roundCount: 21),
    Comparison(readAll, beside: [Comparison.Yardstick(recordReadAll, limit: 1.0 / 3)], roundCount: 11),
    Comparison(puts, beside: [Comparison.Yardstick(rawPuts, limit: 2)], roundCount: 11),
    Comparison(sqliteGets, beside: [Comparison.Yardstick(recordGets, limit: 1.0 / 8)], roundCount: 21),
    Comparison(sqlitePuts, beside: [Comparison.Yardstick(recordPuts, limit: 1.0 / 8)], roundCount: 21),
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
    let queue = try await filledQueue(in: folder)
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

  // MARK: In SQLite

  /// The records that a round reads.
  private static let chosen = SampleRecords.shuffledNumbers(count).prefix(1000).sorted()

  private static let sqliteGets = Workload(
    "get of a record from an SQLiteStore of 100,000", operationCount: chosen.count
  ) { folder in
    let store = try await filledSQLiteStore(in: folder)
    return {
      for number in chosen { consume(try store.value(forKey: keys.keys[number])?.id) }
    }
  }

  private static let recordGets = Workload("GRDB's record from SQLite, by its key", operationCount: chosen.count) {
    folder in
    let queue = try await filledQueue(in: folder)
    return {
      for number in chosen { consume(try queue.read { try UserRecord.fetchOne($0, key: users[number].id) }?.id) }
    }
  }

  private static let sqlitePuts = Workload(
    "batch of 10,000 new records into an SQLiteStore", operationCount: newCount
  ) { folder in
    let store = try await SQLiteStore<User>(path: folder.newPath())
    let round = Turn(count: .max)
    return {
      try await store.apply(ChangeBatch(newUsers(round.next()).map { .set(StoreKey(integer: $0.id), $0) }))
    }
  }

  private static let recordPuts = Workload(
    "GRDB's insertion of 10,000 records in a transaction", operationCount: newCount
  ) { folder in
    let queue = try await emptyQueue(in: folder)
    let round = Turn(count: .max)
    return {
      let users = newUsers(round.next())
      try await queue.write { database in
        for user in users { try UserRecord(user).insert(database) }
      }
    }
  }

  private static let newCount = 10_000

  /// Returns the records that a round inserts.
  private static func newUsers(_ round: Int) -> [User] {
    (round * newCount..<(round + 1) * newCount).map(User.init)
  }

  private static func filledSQLiteStore(in folder: ScratchFolder) async throws -> SQLiteStore<User> {
    let store = try await SQLiteStore<User>(path: folder.newPath())
    try await store.apply(ChangeBatch(zip(keys.keys, users).map { .set($0, $1) }))
    return store
  }

  /// Returns a database as GRDB creates it: with a journal of rollbacks, and durable.
  private static func emptyQueue(in folder: ScratchFolder) async throws -> DatabaseQueue {
    let queue = try DatabaseQueue(path: folder.newPath())
    try await queue.write { try UserRecord.createTable(in: $0) }
    return queue
  }

  private static func filledQueue(in folder: ScratchFolder) async throws -> DatabaseQueue {
    let queue = try await emptyQueue(in: folder)
    try await queue.write { database in
      for user in users { try UserRecord(user).insert(database) }
    }
    return queue
  }

  // MARK: Samples

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
