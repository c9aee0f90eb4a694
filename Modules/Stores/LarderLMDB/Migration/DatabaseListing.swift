#if LMDB
import Larder
import LarderFiles

/// All databases of a data file, which must be intact.
struct DatabaseListing {
  /// The maximum number of entries, and of bytes of keys and values, after which a batch ends.
  private static let batchLimits = (count: 20_000, size: 8 << 20)

  private let snapshot: DataFileSnapshot
  private let store: String

  init(_ snapshot: DataFileSnapshot, store: String) {
    self.snapshot = snapshot
    self.store = store
  }

  /// Returns the name of a named database.
  ///
  /// - Parameter key: Its key in the main database.
  /// - Throws: ``StoreError`` with `unsupported` if a program other than LMDB's own library has chosen the name.
  func name(ofKey key: StoreKey) throws -> [UInt8] {
    var name = key.bytes
    if snapshot.meta.format.terminatesNames, name.popLast() != 0 { throw unsupportedName }
    guard !name.isEmpty, !name.contains(0) else { throw unsupportedName }
    return name
  }

  private var unsupportedName: StoreError {
    StoreError(
      .unsupported, during: .migrate, store: store,
      message: "the name of a database cannot be that of one in the other version of LMDB")
  }

  /// Calls a closure with the entries of a database in order, in batches.
  ///
  /// - Parameters:
  ///   - key: The key of a named database, or `nil` for the main database.
  ///   - body: A closure that receives entries, and the keys of the named databases among those of the main database.
  /// - Throws: ``StoreError``: `corrupted` if a page is damaged; `unsupported`; `ioFailed`. The error that `body` throws.
  func forEachBatch(
    of key: StoreKey?, _ body: (_ entries: [StoreEntry<[UInt8]>], _ databases: [StoreKey]) throws -> Void
  ) throws {
    let record = try record(of: key)
    var (remaining, count): (KeyRange?, UInt64) = (.all, 0)
    while let range = remaining {
      let batch = try batch(from: record.root, range)
      guard key == nil || batch.databases.isEmpty else {
        throw MigrationError.damaged("a named database contains another one", store: store)
      }
      count += UInt64(batch.entries.count + batch.databases.count)
      try body(batch.entries, batch.databases)
      remaining = batch.remaining
    }
    guard count == record.entryCount else {
      throw MigrationError.damaged(
        "a database has \(count) entries, but \(record.entryCount) according to its record", store: store)
    }
  }

  /// Visits the entries of a range of one database.
  ///
  /// - Throws: The error that `visit` throws; ``StoreError`` if the file cannot be read.
  private func scan(from root: UInt64?, _ range: KeyRange, _ visit: (TreeScan.Item) throws -> Bool) throws {
    do {
      try TreeScan.run(from: root, in: snapshot, range: range, visit)
    } catch let error as FileError {
      throw StoreError(error, during: .migrate, store: store, message: "the data file cannot be read")
    }
  }

  private typealias Batch = (entries: [StoreEntry<[UInt8]>], databases: [StoreKey], remaining: KeyRange?)

  private func batch(from root: UInt64?, _ range: KeyRange) throws -> Batch {
    var batch: Batch = ([], [], nil)
    var size = 0
    try scan(from: root, range) { item in
      switch item {
      case .damage(let damage, _):
        throw MigrationError.damaged(
          "page \(damage.page) of the data file \(damage.problem)", store: store)
      case .entry(let key, let content):
        if case .value(let value) = content {
          batch.entries.append(StoreEntry(key: key, value: value))
          size += value.count
        } else {
          batch.databases.append(key)
        }
        size += key.count
        let count = batch.entries.count + batch.databases.count
        guard count < DatabaseListing.batchLimits.count, size < DatabaseListing.batchLimits.size else {
          batch.remaining = range.after(key)
          return false
        }
        return true
      }
    }
    return batch
  }

  /// Returns the record of a database, whose flags no special order or kind of values must need.
  private func record(of key: StoreKey?) throws -> DatabaseRecord {
    var record: DatabaseRecord? = key == nil ? snapshot.meta.main : nil
    if let key {
      try scan(from: snapshot.meta.main.root, .only(key)) { item in
        if case .entry(_, .database(let found)) = item { record = found }
        return true
      }
    }
    guard let record else { throw MigrationError.damaged("a named database cannot be found", store: store) }
    guard record.flags == 0 else {
      throw StoreError(
        .unsupported, during: .migrate, store: store,
        message:
          "a database of the environment allows several values per key or uses its own key order; migrate it with the "
          + "program that wrote it, or with mdb_dump and mdb_load")
    }
    return record
  }

  // MARK: Comparison

  /// Throws an error unless another data file has the same databases with the same entries.
  ///
  /// - Throws: ``StoreError``, with `ioFailed` if they differ or a file cannot be read.
  func compare(with other: DatabaseListing) throws {
    var (keys, otherKeys) = (try compare(nil, with: nil, of: other))
    guard try keys.map(name) == otherKeys.map(other.name) else { throw difference }
    while let key = keys.popLast(), let otherKey = otherKeys.popLast() {
      _ = try compare(key, with: otherKey, of: other)
    }
  }

  /// Compares the entries of a database, and returns the keys of the named databases in both.
  private func compare(
    _ key: StoreKey?, with otherKey: StoreKey?, of other: DatabaseListing
  ) throws -> (keys: [StoreKey], otherKeys: [StoreKey]) {
    var (keys, otherKeys): ([StoreKey], [StoreKey]) = ([], [])
    // The entries of the other database are read in ranges that end with those of this one, because names differ in length.
    let otherRoot = try other.record(of: otherKey).root
    var start = StoreKey("")
    func check(_ entries: [StoreEntry<[UInt8]>], upTo end: StoreKey?) throws {
      var index = 0
      try other.scan(from: otherRoot, KeyRange(from: start, upTo: end)) { item in
        switch item {
        case .damage: throw difference
        case .entry(let key, .value(let value)):
          guard index < entries.count, entries[index].key == key, entries[index].value == value else {
            throw difference
          }
          index += 1
        case .entry(let key, _): otherKeys.append(key)
        }
        return true
      }
      guard index == entries.count else { throw difference }
    }
    try forEachBatch(of: key) { entries, databases in
      keys += databases
      guard let last = entries.last else { return }
      try check(entries, upTo: last.key.successor)
      start = last.key.successor
    }
    try check([], upTo: nil)
    return (keys, otherKeys)
  }

  private var difference: StoreError {
    StoreError(
      .ioFailed, during: .migrate, store: store,
      message: "the new data file does not have the entries that were written to it; check the disk, then migrate again"
    )
  }
}
#endif
