#if LMDB
import CLMDB
import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What Larder keeps of the stores of an environment, in a named database of its own, `larder`: under the name of a store
/// a record in JSON, like `{"codec":"json","format":1}`.
struct StoreCatalog {
  /// What is kept of a store.
  struct Record: Codable, Equatable {
    var codec: String
    var format: Int
  }

  /// The named database that holds the records.
  static let name = "larder"

  /// The database that the names of all others are in: `MAIN_DBI` in `mdb.c` of LMDB 0.9.
  static let mainDatabase: MDB_dbi = 1

  /// The version of the format that this code reads and writes.
  static let format = 1

  /// What errors call the store.
  let store: String

  /// The named database of a store and its record; `nil` where there is no such database.
  ///
  /// - Throws: ``StoreError``; `LMDBError`.
  func find(_ name: String, in transaction: OpaquePointer) throws -> (identifier: MDB_dbi, record: Record?)? {
    guard let identifier = try open(name, in: transaction) else { return nil }
    guard let catalog = try open(StoreCatalog.name, in: transaction) else { return (identifier, nil) }
    let record = try RawDatabase(transaction: transaction, identifier: catalog).value(forKey: StoreKey(name))
      .map { try decode($0) }
    return (identifier, record)
  }

  /// The handle of the named database of a store that was found.
  ///
  /// - Throws: ``StoreError``, with `conflict` if another program has removed it meanwhile; `LMDBError`.
  func identifier(of name: String, in transaction: OpaquePointer) throws -> MDB_dbi {
    if let identifier = try open(name, in: transaction) { return identifier }
    throw StoreError(
      .conflict, during: .open, store: store, message: "another program has removed the named database",
      isRetryable: true)
  }

  /// Makes the named database of a store, and its record, where they are not there.
  ///
  /// - Throws: ``StoreError``, with `versionMismatch` as `check(_:codecName:)`; `LMDBError`.
  func create(_ name: String, codecName: String, in transaction: OpaquePointer) throws -> MDB_dbi {
    // Another process may have made it since it was looked for.
    if let found = try find(name, in: transaction), let record = found.record {
      try check(record, codecName: codecName)
      return found.identifier
    }
    let record = try encode(Record(codec: codecName, format: StoreCatalog.format))
    var identifier: MDB_dbi = 0
    try LMDBError.check(mdb_dbi_open(transaction, name, UInt32(MDB_CREATE), &identifier))
    var catalog: MDB_dbi = 0
    try LMDBError.check(mdb_dbi_open(transaction, StoreCatalog.name, UInt32(MDB_CREATE), &catalog))
    try StoreKey(name).withUnsafeBytes { key in
      try record.withUnsafeBytes {
        try RawDatabase(transaction: transaction, identifier: catalog).setValue($0, forKey: key)
      }
    }
    return identifier
  }

  /// Refuses a store that another codec, or a newer version, has written.
  ///
  /// - Throws: ``StoreError`` with `versionMismatch`.
  func check(_ record: Record?, codecName: String) throws {
    guard let record else { return }
    guard record.format <= StoreCatalog.format else {
      throw StoreError(
        .versionMismatch, during: .open, store: store,
        message: "the store has version \(record.format) of the format, this is for \(StoreCatalog.format)")
    }
    guard record.codec == codecName else {
      throw StoreError(
        .versionMismatch, during: .open, store: store,
        message: "the store was written with the codec \(record.codec), not with \(codecName)")
    }
  }

  /// The keys of the main database that can be names of named databases, in order, but for the one of the records.
  func candidates(in transaction: OpaquePointer) throws -> [String] {
    var candidates: [String] = []
    var scan = try RawDatabase(transaction: transaction, identifier: StoreCatalog.mainDatabase).scan(.all)
    while let (key, _) = try scan.next() {
      if let name = String(validating: key, as: UTF8.self), !name.utf8.contains(0), name != StoreCatalog.name {
        candidates.append(name)
      }
    }
    return candidates
  }

  /// Takes the first candidates away, as many as handles can be opened for at once, and returns those that are names of
  /// named databases.
  ///
  /// The transaction must be aborted, so that the handles do not stay.
  func names(among candidates: inout ArraySlice<String>, in transaction: OpaquePointer) throws -> [String] {
    var names: [String] = []
    while let name = candidates.first {
      var identifier: MDB_dbi = 0
      let code = mdb_dbi_open(transaction, name, 0, &identifier)
      if code == MDB_DBS_FULL && !names.isEmpty { break }
      // Others are entries of the main database, or were removed meanwhile.
      if code != MDB_INCOMPATIBLE && code != MDB_NOTFOUND {
        try LMDBError.check(code)
        names.append(name)
      }
      candidates.removeFirst()
    }
    return names
  }

  /// The handle of a named database, or `nil` where there is none.
  private func open(_ name: String, in transaction: OpaquePointer) throws -> MDB_dbi? {
    var identifier: MDB_dbi = 0
    let code = mdb_dbi_open(transaction, name, 0, &identifier)
    if code == MDB_NOTFOUND { return nil }
    if code == MDB_INCOMPATIBLE {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the environment has an entry of this name that is no named database")
    }
    try LMDBError.check(code)
    var flags: UInt32 = 0
    try LMDBError.check(mdb_dbi_flags(transaction, identifier, &flags))
    guard flags == 0 else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "the named database has several values per key, or an order of keys of its own")
    }
    return identifier
  }

  private func decode(_ bytes: UnsafeRawBufferPointer) throws -> Record {
    do {
      return try JSONDecoder().decode(Record.self, from: Data(bytes))
    } catch {
      throw StoreError(
        .corrupted, during: .open, store: store, message: "the record of the store's codec cannot be read",
        underlying: error)
    }
  }

  private func encode(_ record: Record) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return try encoder.encode(record)
  }
}
#endif
