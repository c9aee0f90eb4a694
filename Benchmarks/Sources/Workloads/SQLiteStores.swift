import Foundation
import Larder
import LarderSQLite
import RawSQLite

/// An `SQLiteStore` of 1,000,000 entries of 200 bytes, next to SQLite called from C on the same kind of file.
enum SQLiteStores {
  private static let entryCount = 1_000_000
  private static let getCount = 20_000
  private static let batchCount = 10_000

  static let comparisons = [
    Comparison(gets, beside: [Comparison.Yardstick(rawGets, limit: 1.2)]),
    Comparison(twoThreads, beside: [Comparison.Yardstick(gets, limit: 1 / 1.4)]),
    Comparison(
      puts("batch of 10,000 sorted puts into an SQLiteStore", count: batchCount),
      beside: [Comparison.Yardstick(rawPuts("the same batch, in C, of SQLite", count: batchCount), limit: 1.15)]),
    Comparison(
      puts("durable put into an SQLiteStore", count: 1),
      beside: [Comparison.Yardstick(rawPuts("the same put, in C, of SQLite", count: 1), limit: 1.15)], roundCount: 301),
    Comparison(pages, beside: [Comparison.Yardstick(rawScan, limit: 1.3)], roundCount: 11),
    Comparison(
      middlePage(of: 1_000_000), beside: [Comparison.Yardstick(middlePage(of: 1000), limit: 2)]),
  ]

  // MARK: Reading

  private static let gets = Workload("get from an SQLiteStore of 1,000,000 entries", operationCount: getCount) {
    folder in
    let store = try await SQLiteStore(path: filledFile(in: folder), codec: .raw)
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount).prefix(getCount))
    return { try get(keys.keys, from: store) }
  }

  private static func get(_ keys: [StoreKey], from store: SQLiteStore<[UInt8]>) throws {
    var sum: UInt64 = 0
    for key in keys { sum &+= UInt64(try store.value(forKey: key)?.first ?? 0) }
    consume(sum)
  }

  private static let rawGets = Workload(
    "prepared SELECT and a malloc'ed copy, in C", operationCount: getCount
  ) { folder in
    let database = try RawDatabase(try await filledFile(in: folder))
    let keys = FixedSizeKeys(SampleRecords.shuffledNumbers(entryCount).prefix(getCount))
    return { consume(try database.getCopies(keys)) }
  }

  private static let twoThreads = Workload(
    "get from an SQLiteStore of 1,000,000 entries, on two threads", operationCount: 2 * getCount
  ) { folder in
    let store = try await SQLiteStore(path: filledFile(in: folder), codec: .raw)
    let numbers = SampleRecords.shuffledNumbers(entryCount)
    let halves = [
      FixedSizeKeys(numbers.prefix(getCount)), FixedSizeKeys(numbers.dropFirst(getCount).prefix(getCount)),
    ]
    return {
      try await withThrowingTaskGroup { group in
        for keys in halves {
          group.addTask { try get(keys.keys, from: store) }
        }
        try await group.waitForAll()
      }
    }
  }

  private static let pages = Workload("scan of an SQLiteStore by pages of 1,000", operationCount: entryCount) {
    folder in
    let store = try await SQLiteStore(path: filledFile(in: folder), codec: .raw)
    return {
      var sum: UInt64 = 0
      for try await page in store.pages(of: .all, size: 1000) {
        for entry in page.entries { sum &+= UInt64(entry.value.first ?? 0) }
      }
      consume(sum)
    }
  }

  private static let rawScan = Workload(
    "pages of 1,000 whose keys and values are malloc'ed, in C", operationCount: entryCount
  ) { folder in
    let database = try RawDatabase(try await filledFile(in: folder))
    return { consume(try database.scanCopies()) }
  }

  private static func middlePage(of count: Int) -> Workload {
    let size = count.formatted(.number.locale(Locale(identifier: "en")))
    return Workload("page of 50 from the middle of an SQLiteStore of \(size) entries", operationCount: 1000) {
      folder in
      let store = try await SQLiteStore(path: filledFile(in: folder, count: count), codec: .raw)
      let range = FixedSizeKeys([count / 2]).keys[0]...
      return {
        for _ in 0..<1000 { consume(try await store.entries(in: range, limit: 50, order: .ascending).count) }
      }
    }
  }

  // MARK: Writing

  /// Batches of keys from all over the store, with other keys and another value in each round.
  private static func puts(_ name: String, count: Int) -> Workload {
    Workload(name, operationCount: count) { folder in
      let store = try await SQLiteStore(path: filledFile(in: folder), codec: .raw)
      let batches = batches(of: count)
      let turn = Turn(count: batches.count)
      let round = Turn(count: 250)
      return {
        let value = value(round.next())
        try await store.apply(ChangeBatch(batches[turn.next()].keys.map { .set($0, value) }))
      }
    }
  }

  private static func rawPuts(_ name: String, count: Int) -> Workload {
    Workload(name, operationCount: count) { folder in
      let database = try RawDatabase(try await filledFile(in: folder))
      let batches = batches(of: count)
      let turn = Turn(count: batches.count)
      let round = Turn(count: 250)
      return { try database.set(batches[turn.next()], value: value(round.next())) }
    }
  }

  /// Returns a value that differs from round to round, because SQLite writes nothing for an equal one.
  private static func value(_ round: Int) -> [UInt8] { [UInt8](repeating: UInt8(round), count: 200) }

  private static func batches(of count: Int) -> [FixedSizeKeys] {
    let numbers = SampleRecords.shuffledNumbers(entryCount)
    return (0..<min(100, entryCount / count)).map { FixedSizeKeys(numbers[$0 * count..<($0 + 1) * count].sorted()) }
  }

  /// Returns the path of a new file with a store.
  private static func filledFile(in folder: ScratchFolder, count: Int = entryCount) async throws -> String {
    let path = folder.newPath()
    let store = try await SQLiteStore(path: path, codec: .raw, durability: .buffered)
    let keys = FixedSizeKeys(0..<count)
    for first in stride(from: 0, to: count, by: 100_000) {
      let part = keys[first..<min(first + 100_000, count)]
      try await store.apply(ChangeBatch(part.keys.map { .set($0, value(255)) }))
    }
    try await store.close()
    return path
  }
}

/// An SQLite database as in a C program, for one thread at a time.
private final class RawDatabase: @unchecked Sendable {
  // Proof for @unchecked: a workload runs its rounds one after another and does not share the database.
  private let pointer: OpaquePointer

  init(_ path: String) throws {
    var pointer: OpaquePointer?
    try RawDatabase.check(raw_sqlite_open(path, &pointer))
    guard let pointer else { throw SQLiteError(code: 1, message: "no database") }
    self.pointer = pointer
  }

  deinit {
    raw_sqlite_close(pointer)
  }

  func set(_ keys: FixedSizeKeys, value: [UInt8]) throws {
    try RawDatabase.check(raw_sqlite_set(pointer, keys.bytes, keys.size, keys.count, value, value.count))
  }

  func getCopies(_ keys: FixedSizeKeys) throws -> UInt64 {
    var sum: UInt64 = 0
    try RawDatabase.check(raw_sqlite_get_copies(pointer, keys.bytes, keys.size, keys.count, &sum))
    return sum
  }

  func scanCopies() throws -> UInt64 {
    var sum: UInt64 = 0
    try RawDatabase.check(raw_sqlite_scan_copies(pointer, &sum))
    return sum
  }

  private static func check(_ code: Int32) throws {
    if code != 0 { throw SQLiteError(code: code, message: "a call from C failed") }
  }
}
