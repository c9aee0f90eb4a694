import Foundation
import GRDB
import Larder
import LarderCBOR
import LarderCache
import LarderJSON
import LarderLMDB
import LarderSQLite

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Stores of 10,000 records of six fields, and caches of as many, next to the alternatives that Swift programs use.
enum Peers {
  private static let count = 10_000
  private static let users = (0..<count).map(User.init)
  private static let keys = users.map { StoreKey("user:\($0.id)") }

  /// The records that a round reads or writes.
  private static let chosen = Array(SampleRecords.shuffledNumbers(count).prefix(200))

  static let comparisons = [
    Comparison(
      Workload("typed get from an LMDBStore", operationCount: chosen.count) { folder in
        gets(from: try await filled(LMDBStore<User>(path: folder.newPath())))
      },
      beside: [
        Workload("typed get from an SQLiteStore", operationCount: chosen.count) { folder in
          gets(from: try await filled(SQLiteStore<User>(path: folder.newPath())))
        },
        Workload("typed get from a JSONFileStore", operationCount: chosen.count) { folder in
          gets(from: try await filled(JSONFileStore<User>(path: folder.newPath())))
        }, recordGets, rowGets, fileGets, defaultsGets,
      ].map { Comparison.Yardstick($0) }),
    Comparison(
      Workload("durable typed put into an LMDBStore", operationCount: chosen.count) { folder in
        puts(into: try await filled(LMDBStore<User>(path: folder.newPath())))
      },
      beside: [
        Workload("durable typed put into an SQLiteStore", operationCount: chosen.count) { folder in
          puts(into: try await filled(SQLiteStore<User>(path: folder.newPath())))
        },
        Workload("durable typed put into a JSONFileStore", operationCount: chosen.count) { folder in
          puts(into: try await filled(JSONFileStore<User>(path: folder.newPath())))
        }, recordPuts, rowPuts, filePuts, defaultsPuts,
      ].map { Comparison.Yardstick($0) }, roundCount: 7),
    Comparison(
      cacheHits, beside: [Comparison.Yardstick(foundationCacheHits), Comparison.Yardstick(responseCacheHits)]),
  ]

  // MARK: Stores

  private static func filled<Store: DataStore<User>>(_ store: Store) async throws -> Store {
    try await store.apply(ChangeBatch(zip(keys, users).map { .set($0, $1) }))
    return store
  }

  private static func gets(from store: some DataStore<User>) -> Workload.Round {
    return {
      for number in chosen { consume(try await store.value(forKey: keys[number])?.id) }
    }
  }

  private static func puts(into store: some DataStore<User>) -> Workload.Round {
    let round = Turn(count: .max)
    return {
      let age = round.next()
      for number in chosen { try await store.setValue(user(number, age: age), forKey: keys[number]) }
    }
  }

  /// Returns a record that differs from that of the last round.
  private static func user(_ number: Int, age: Int) -> User {
    var user = users[number]
    user.age = age
    return user
  }

  // MARK: GRDB

  private static let recordGets = Workload("GRDB's record, by its key", operationCount: chosen.count) { folder in
    let database = try await recordDatabase(in: folder)
    return {
      for number in chosen {
        consume(try read(database) { try UserRecord.fetchOne($0, key: users[number].id) }?.id)
      }
    }
  }

  private static let recordPuts = Workload("GRDB's record, updated and committed", operationCount: chosen.count) {
    folder in
    let database = try await recordDatabase(in: folder)
    let round = Turn(count: .max)
    return {
      let age = round.next()
      for number in chosen {
        let record = UserRecord(user(number, age: age))
        try write(database) { try record.update($0) }
      }
    }
  }

  private static let rowGets = Workload("JSON in a table of GRDB, decoded", operationCount: chosen.count) { folder in
    let database = try await rowDatabase(in: folder)
    return {
      let decoder = JSONDecoder()
      for number in chosen {
        let data = try read(database) {
          try Data.fetchOne($0, sql: "SELECT value FROM entry WHERE key = ?", arguments: ["user:\(users[number].id)"])
        }
        consume(try data.map { try decoder.decode(User.self, from: $0) }?.id)
      }
    }
  }

  private static let rowPuts = Workload("JSON in a table of GRDB, committed", operationCount: chosen.count) { folder in
    let database = try await rowDatabase(in: folder)
    let round = Turn(count: .max)
    return {
      let age = round.next()
      let encoder = JSONEncoder()
      for number in chosen {
        let data = try encoder.encode(user(number, age: age))
        try write(database) {
          try $0.execute(
            sql: "INSERT OR REPLACE INTO entry (key, value) VALUES (?, ?)",
            arguments: ["user:\(users[number].id)", data])
        }
      }
    }
  }

  /// Opens a database whose commits are durable, as those of the stores are.
  private static func database(in folder: ScratchFolder) async throws -> DatabasePool {
    let pool = try DatabasePool(path: folder.newPath())
    // Not in the configuration, after which GRDB sets it to NORMAL.
    try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    return pool
  }

  /// Reads without a change of the task's thread, which would cost several times the read.
  private static func read<Result>(_ pool: DatabasePool, _ body: (Database) throws -> Result) throws -> Result {
    try pool.read(body)
  }

  private static func write<Result>(_ pool: DatabasePool, _ body: (Database) throws -> Result) throws -> Result {
    try pool.write(body)
  }

  private static func recordDatabase(in folder: ScratchFolder) async throws -> DatabasePool {
    let database = try await database(in: folder)
    try await database.write { database in
      try UserRecord.createTable(in: database)
      for user in users { try UserRecord(user).insert(database) }
    }
    return database
  }

  private static func rowDatabase(in folder: ScratchFolder) async throws -> DatabasePool {
    let database = try await database(in: folder)
    try await database.write { database in
      try database.execute(sql: "CREATE TABLE entry (key TEXT PRIMARY KEY, value BLOB NOT NULL)")
      let encoder = JSONEncoder()
      for user in users {
        try database.execute(
          sql: "INSERT INTO entry (key, value) VALUES (?, ?)",
          arguments: ["user:\(user.id)", try encoder.encode(user)])
      }
    }
    return database
  }

  // MARK: Foundation

  private static let fileGets = Workload("file for each record, read and decoded", operationCount: chosen.count) {
    folder in
    let files = try files(in: folder)
    return {
      let decoder = JSONDecoder()
      for number in chosen { consume(try decoder.decode(User.self, from: Data(contentsOf: files[number])).id) }
    }
  }

  private static let filePuts = Workload("file for each record, .atomic, not durable", operationCount: chosen.count) {
    folder in
    let files = try files(in: folder)
    let round = Turn(count: .max)
    return {
      let age = round.next()
      let encoder = JSONEncoder()
      for number in chosen { try encoder.encode(user(number, age: age)).write(to: files[number], options: .atomic) }
    }
  }

  private static func files(in folder: ScratchFolder) throws -> [URL] {
    let url = URL(filePath: folder.newPath())
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    let encoder = JSONEncoder()
    return try users.map { user in
      let file = url.appending(path: "\(user.id).json")
      try encoder.encode(user).write(to: file)
      return file
    }
  }

  private static let defaultsGets = Workload("UserDefaults, decoded", operationCount: chosen.count) { _ in
    let defaults = try SampleDefaults(users)
    return {
      let decoder = JSONDecoder()
      for number in chosen {
        let data = defaults.read { $0.data(forKey: "user:\(users[number].id)") }
        consume(try data.map { try decoder.decode(User.self, from: $0) }?.id)
      }
    }
  }

  // One in twenty of the others' puts, because each writes the whole file.
  private static let defaultsPuts = Workload(
    "UserDefaults, with synchronize(), not durable", operationCount: chosen.count / 20
  ) { _ in
    let defaults = try SampleDefaults(users)
    let round = Turn(count: .max)
    return {
      let age = round.next()
      let encoder = JSONEncoder()
      for number in chosen.prefix(chosen.count / 20) {
        let data = try encoder.encode(user(number, age: age))
        defaults.read {
          $0.set(data, forKey: "user:\(users[number].id)")
          $0.synchronize()
        }
      }
    }
  }

  /// Records in a domain of `UserDefaults`, which is removed at the end.
  private final class SampleDefaults: Sendable {
    private let name = "larder-benchmarks-\(UUID().uuidString)"

    init(_ users: [User]) throws {
      let encoder = JSONEncoder()
      try read { defaults in
        for user in users { defaults.set(try encoder.encode(user), forKey: "user:\(user.id)") }
        defaults.synchronize()
      }
    }

    deinit {
      read {
        $0.removePersistentDomain(forName: name)
        $0.synchronize()
      }
    }

    func read<Result>(_ body: (UserDefaults) throws -> Result) rethrows -> Result {
      // The name is neither the global domain nor that of this program, so there is always a result.
      guard let defaults = UserDefaults(suiteName: name) else { preconditionFailure("no domain \(name)") }
      return try body(defaults)
    }
  }

  // MARK: Caches

  private static let cacheHits = Workload("hit in a MemoryCache of 10,000 records", operationCount: count) { _ in
    let cache = MemoryCache<StoreKey, User>(entryLimit: count)
    for (key, user) in zip(keys, users) { cache.setValue(user, forKey: key) }
    return {
      for key in keys { consume(cache.value(forKey: key)?.id) }
    }
  }

  private static let foundationCacheHits = Workload("hit in an NSCache of 10,000 records", operationCount: count) { _ in
    let cache = FoundationCache()
    return { cache.readAll() }
  }

  /// A cache of Foundation, whose keys and values must be objects.
  ///
  /// `NSCache` is thread-safe, and the keys do not change.
  private final class FoundationCache: @unchecked Sendable {
    private final class Box {
      let user: User

      init(_ user: User) { self.user = user }
    }

    private let cache = NSCache<NSString, Box>()
    private let keys = users.map { NSString(string: "user:\($0.id)") }

    init() {
      for (key, user) in zip(keys, users) { cache.setObject(Box(user), forKey: key) }
    }

    func readAll() {
      for key in keys { consume(cache.object(forKey: key)?.user.id) }
    }
  }

  private static let responseCacheHits = Workload(
    "hit in a URLCache of 1,000 records, in memory, decoded", operationCount: 1000
  ) { folder in
    let cache = URLCache(
      memoryCapacity: 100_000_000, diskCapacity: 0, diskPath: folder.newPath())
    let encoder = JSONEncoder()
    let requests = try users.prefix(1000).map { user in
      let url = URL(string: "https://example.org/\(user.id)") ?? URL(filePath: "/")
      let response = URLResponse(url: url, mimeType: nil, expectedContentLength: -1, textEncodingName: nil)
      let request = URLRequest(url: url)
      cache.storeCachedResponse(CachedURLResponse(response: response, data: try encoder.encode(user)), for: request)
      return request
    }
    return {
      let decoder = JSONDecoder()
      for request in requests {
        guard let found = cache.cachedResponse(for: request) else { throw CocoaError(.fileNoSuchFile) }
        consume(try decoder.decode(User.self, from: found.data).id)
      }
    }
  }
}
