import Foundation
import Larder
import LarderCompressedFile
import LarderJSON
import LarderLMDB
import LarderPostgres
import LarderQueue
import LarderSQLite
import LarderTesting
import PostgresServers
import RawLMDB
import RawSQLite

/// The keys of some entries.
struct Keys {
  /// The keys, of 8 bytes each.
  let keys: [StoreKey]

  /// The same keys, one after another.
  let bytes: [UInt8]

  init(_ numbers: some Sequence<Int>) {
    keys = numbers.map { StoreKey(integer: $0) }
    bytes = keys.flatMap(\.bytes)
  }
}

/// A store, or the engine below it, whose growth is measured.
struct Subject {
  /// Reads the value of each key.
  var get: ((Keys) async throws -> Void)?
  /// Reads a page from each key on.
  var page: ((Keys, _ size: Int) async throws -> Void)?
  /// Writes the value of a number under each key, in one commit.
  var put: (Keys, _ number: UInt64) async throws -> Void
  /// Adds entries, each with a value of its own, in one commit.
  var add: (Range<Int>) async throws -> Void
  /// The number of entries.
  var count: () async throws -> Int
  var close: () async throws -> Void
}

/// The kind of a ``Subject``.
enum SubjectKind: String, CaseIterable {
  case lmdb, sqlite, postgres, compressed, json, memory, queue
  /// LMDB and SQLite as a C program calls them, on the files of the stores.
  case lmdbInC, sqliteInC

  /// A Boolean value that indicates whether the entries are there after the process has ended.
  var isKept: Bool { self != .memory && self != .postgres }

  /// Opens the store in a folder, or in a schema of a server.
  func open(in folder: String, _ server: PostgresServer?, _ schema: String?) async throws -> Subject {
    switch self {
    case .lmdb:
      return Subject(try await LMDBStore(path: folder + "/lmdb", codec: .raw), value: Self.bytes)
    case .sqlite:
      return Subject(try await SQLiteStore(path: folder + "/store.sqlite", codec: .raw), value: Self.bytes)
    case .compressed:
      return Subject(
        try await CompressedFileStore<JSONText>(path: folder + "/store.gz", codec: .jsonText, durability: .buffered),
        value: Self.text)
    case .json:
      return Subject(
        try await JSONFileStore<JSONText>(path: folder + "/store.json", codec: .jsonText, durability: .buffered),
        value: Self.text)
    case .memory:
      return Subject(MemoryStore<[UInt8]>(), value: Self.bytes)
    case .postgres:
      guard let server, let schema else { throw EngineFailure(code: -1) }
      let database = try await PostgresDatabase(server.connectionString, schema: schema)
      var subject = Subject(try await PostgresStore<[UInt8]>(in: database, codec: .raw), value: Self.bytes)
      subject.close = { await database.close() }
      return subject
    case .queue:
      let queue = try await QueueStore(path: folder + "/queue", codec: .raw, durability: .buffered)
      return Subject(
        put: { keys, number in try await queue.enqueue(keys.keys.map { _ in QueueInput(Self.bytes(number)) }) },
        add: { numbers in try await queue.enqueue(numbers.map { QueueInput(Self.bytes(UInt64($0))) }) },
        count: { try await queue.counts().waiting }, close: { try await queue.close() })
    case .lmdbInC:
      return try Subject(
        opening: { raw_lmdb_open(folder + "/lmdb", &$0) }, raw_lmdb_get_copies, raw_lmdb_page_copies, raw_lmdb_put,
        raw_lmdb_close)
    case .sqliteInC:
      return try Subject(
        opening: { raw_sqlite_open(folder + "/store.sqlite", &$0) }, raw_sqlite_get_copies, raw_sqlite_page_copies,
        raw_sqlite_set, raw_sqlite_close)
    }
  }

  /// Returns the value of a number: 16 bytes that do not compress.
  fileprivate static func bytes(_ number: UInt64) -> [UInt8] {
    var generator = SeededGenerator(seed: number)
    return [generator.next(), generator.next()].flatMap { (part: UInt64) in
      withUnsafeBytes(of: part) { [UInt8]($0) }
    }
  }

  /// Returns the value of a number as JSON: a string of 16 characters.
  private static func text(_ number: UInt64) throws -> JSONText {
    var generator = SeededGenerator(seed: number)
    let digits = String(generator.next(), radix: 16)
    return try JSONText("\"\(String(repeating: "0", count: 16 - digits.count))\(digits)\"".utf8)
  }
}

/// An error of a call from C, with the code of the engine, or an entry that is missing.
struct EngineFailure: Error {
  let code: Int32

  static func check(_ code: Int32) throws {
    if code != 0 { throw EngineFailure(code: code) }
  }
}

extension Subject {
  /// A store, as a generic program uses it.
  fileprivate init<Store: DataStore>(_ store: Store, value: @escaping (_ number: UInt64) throws -> Store.Value) {
    get = { keys in
      for key in keys.keys {
        guard try await store.value(forKey: key) != nil else { throw EngineFailure(code: 0) }
      }
    }
    page = { keys, size in
      for key in keys.keys {
        let entries = try await store.entries(in: key..., limit: size, order: .ascending)
        guard entries.count == size else { throw EngineFailure(code: 0) }
      }
    }
    put = { keys, number in
      let value = try value(number)
      try await store.apply(ChangeBatch(keys.keys.map { .set($0, value) }))
    }
    add = { numbers in
      try await store.apply(ChangeBatch(numbers.map { .set(StoreKey(integer: $0), try value(UInt64($0))) }))
    }
    count = { try await store.count(in: .all) }
    close = { try await store.close() }
  }

  /// An engine as a C program calls it.
  fileprivate init(
    opening open: (inout OpaquePointer?) -> Int32,
    _ getCopies: @escaping (OpaquePointer?, UnsafePointer<UInt8>?, Int, Int, UnsafeMutablePointer<UInt64>?) -> Int32,
    _ pageCopies:
      @escaping (OpaquePointer?, UnsafePointer<UInt8>?, Int, Int, Int, UnsafeMutablePointer<UInt64>?) -> Int32,
    _ putAll: @escaping (OpaquePointer?, UnsafePointer<UInt8>?, Int, Int, UnsafePointer<UInt8>?, Int) -> Int32,
    _ end: @escaping (OpaquePointer?) -> Void
  ) throws {
    var opened: OpaquePointer?
    try EngineFailure.check(open(&opened))
    let engine = opened
    get = { keys in
      var sum: UInt64 = 0
      try EngineFailure.check(getCopies(engine, keys.bytes, 8, keys.keys.count, &sum))
    }
    page = { keys, size in
      var sum: UInt64 = 0
      try EngineFailure.check(pageCopies(engine, keys.bytes, 8, keys.keys.count, size, &sum))
    }
    put = { keys, number in
      let value = SubjectKind.bytes(number)
      try EngineFailure.check(putAll(engine, keys.bytes, 8, keys.keys.count, value, value.count))
    }
    // Only the stores fill the files.
    add = { _ in throw EngineFailure(code: -1) }
    count = { 0 }
    close = { end(engine) }
  }
}
