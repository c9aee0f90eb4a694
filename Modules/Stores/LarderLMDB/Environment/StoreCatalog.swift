#if LMDB
import CLMDB
import Foundation
import Larder

/// Larder's own records of the stores of an environment, in the named database `larder`.
///
/// The key is the name of a store, and the value is a record in JSON, such as `{"codec":"json","format":1}` or
/// `{"codec":"json","format":1,"contents":"notes"}`. Versions that do not know a field ignore and keep it.
struct StoreCatalog {
  /// The record of a store.
  struct Record: Codable, Equatable {
    var codec: String
    var format: Int

    /// The label of the kind of the values, or `nil` if none was ever given.
    var contents: String?

    enum CodingKeys: CodingKey {
      case codec, format, contents
    }
  }

  /// The named database that holds the records.
  static let name = "larder"

  /// The format version that this code reads and writes.
  static let format = 1

  /// The name of the store in error messages.
  let store: String

  /// The operation in errors.
  var operation = StoreOperation.open

  /// Finds the named database of a store and its record.
  ///
  /// - Returns: The database and its record, or `nil` if there is no such database.
  /// - Throws: ``StoreError``; `LMDBError`.
  func find(_ name: String, in transaction: OpaquePointer) throws -> (identifier: MDB_dbi, record: Record?)? {
    guard let identifier = try open(name, in: transaction) else { return nil }
    return (identifier, try record(of: StoreKey(name), in: transaction).map { try decode($0) })
  }

  /// Returns the identifier of the named database of a store that was found before.
  ///
  /// - Throws: ``StoreError``, with `conflict` if another program has removed the database in the meantime;
  ///   `LMDBError`.
  func identifier(of name: String, in transaction: OpaquePointer) throws -> MDB_dbi {
    if let identifier = try open(name, in: transaction) { return identifier }
    throw StoreError(
      .conflict, during: operation, store: store, message: "another program has removed the named database",
      isRetryable: true)
  }

  /// Creates the named database of a store and its record, if they are missing.
  ///
  /// - Returns: The database, the name of the codec in its record, and whether the record was written.
  /// - Throws: ``StoreError``, with `versionMismatch` as `check(_:)`; `LMDBError`.
  func create(
    _ name: String, codecName: String, in transaction: OpaquePointer
  ) throws -> (identifier: MDB_dbi, codecName: String, isNew: Bool) {
    // Another process may have created it in the meantime.
    if let found = try find(name, in: transaction), let record = found.record {
      try check(record)
      return (found.identifier, record.codec, false)
    }
    let record = try encode(Record(codec: codecName, format: StoreCatalog.format))
    var identifier: MDB_dbi = 0
    try LMDBError.check(mdb_dbi_open(transaction, name, UInt32(MDB_CREATE), &identifier))
    var catalog: MDB_dbi = 0
    try LMDBError.check(mdb_dbi_open(transaction, StoreCatalog.name, UInt32(MDB_CREATE), &catalog))
    try RawDatabase(transaction: transaction, identifier: catalog).setValue(Array(record), forKey: StoreKey(name))
    return (identifier, codecName, true)
  }

  /// Removes the named database of a store and its record.
  ///
  /// - Parameters:
  ///   - name: The name of the store, which this process must not have open.
  ///   - transaction: A transaction that writes.
  /// - Throws: ``StoreError``: `notFound`; `unsupported` if there is no record; `LMDBError`.
  func remove(_ name: String, in transaction: OpaquePointer) throws {
    guard let found = try find(name, in: transaction) else {
      throw StoreError(.notFound, during: operation, store: store, message: "the environment has no store \(name)")
    }
    guard found.record != nil, let records = try records(in: transaction) else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message:
          "the named database \(name) has no record of Larder, because another program has created it; remove it "
          + "with that program")
    }
    try LMDBError.check(mdb_drop(transaction, found.identifier, 1))
    _ = try records.removeValue(forKey: StoreKey(name))
  }

  /// Returns the bytes of the record of a store, or `nil` if it doesn't have one.
  ///
  /// - Throws: ``StoreError``; `LMDBError`.
  func record(of name: StoreKey, in transaction: OpaquePointer) throws -> UnsafeRawBufferPointer? {
    try records(in: transaction)?.value(forKey: name)
  }

  /// Changes the name of the codec in the record of a store, and keeps its other fields.
  ///
  /// - Parameters:
  ///   - codecName: The new name.
  ///   - name: The name of the store.
  ///   - transaction: A transaction that writes.
  /// - Returns: A Boolean value that indicates whether there is a record with another name.
  /// - Throws: ``StoreError``; `LMDBError`.
  func setCodecName(_ codecName: String, ofStore name: StoreKey, in transaction: OpaquePointer) throws -> Bool {
    guard let records = try records(in: transaction), let bytes = try records.value(forKey: name),
      try decode(bytes).codec != codecName
    else { return false }
    // Replaced in the text, so that fields of newer versions stay.
    var text = Array(bytes)
    text.replaceSubrange(try rangeOfCodecName(in: text), with: try JSONEncoder().encode(codecName))
    try records.setValue(text, forKey: name)
    return true
  }

  /// Returns where the JSON string of the codec's name is in the text of a record.
  private func rangeOfCodecName(in text: [UInt8]) throws -> Range<Int> {
    var range: Range<Int>?
    do {
      var scanner = JSONScanner(text[...])
      try scanner.forEachMember { _, field, scanner in
        let value = try scanner.value()
        if field.elementsEqual(Record.CodingKeys.codec.stringValue.utf8) { range = value.indices }
      }
    } catch {
      throw corrupted(error)
    }
    guard let range else { throw corrupted(nil) }
    return range
  }

  /// Throws an error if a store was written by a newer version.
  ///
  /// - Throws: ``StoreError`` with `versionMismatch`.
  func check(_ record: Record) throws {
    guard record.format <= StoreCatalog.format else {
      throw StoreError(
        .versionMismatch, during: operation, store: store,
        message: "the store has format version \(record.format); only versions up to \(StoreCatalog.format) are "
          + "supported")
    }
  }

  /// Compares a label with that of a record.
  ///
  /// - Returns: A Boolean value that indicates whether the record has the label. If not, it has none.
  /// - Throws: ``StoreError`` with `invalidArgument` if the label is invalid, and `versionMismatch` if the record has
  ///   another one.
  func check(_ contents: String, against record: Record?) throws -> Bool {
    guard (1...StoreKey.maximumLength).contains(contents.utf8.count) else {
      throw StoreError(
        .invalidArgument, during: operation, store: store,
        message: "the label of a store's contents must have 1 to \(StoreKey.maximumLength) bytes")
    }
    guard let recorded = record?.contents else { return false }
    // Compared byte by byte, as everything in the files.
    guard recorded.utf8.elementsEqual(contents.utf8) else {
      throw StoreError(
        .versionMismatch, during: operation, store: store,
        message:
          "the store contains \"\(recorded)\", not \"\(contents)\"; open it as \"\(recorded)\", or choose another "
          + "store name for \"\(contents)\"")
    }
    return true
  }

  /// Adds a label to the record of a store, unless another process did so in the meantime.
  ///
  /// - Returns: A Boolean value that indicates whether the label was added.
  /// - Throws: ``StoreError`` as `check(_:against:)`; `LMDBError`.
  func record(_ contents: String, of name: String, in transaction: OpaquePointer) throws -> Bool {
    guard let records = try records(in: transaction), let bytes = try records.value(forKey: StoreKey(name)),
      let end = bytes.lastIndex(of: UInt8(ascii: "}")), try !check(contents, against: decode(bytes))
    else { return false }
    // Inserted into the text, so that fields of newer versions stay.
    let label = try JSONEncoder().encode(contents)
    let text = Array(bytes[..<end]) + Array(",\"contents\":".utf8) + label + Array(bytes[end...])
    try records.setValue(text, forKey: StoreKey(name))
    return true
  }

  /// Returns the keys of the main database that can be names of named databases, in order, without `larder`.
  func candidates(in transaction: OpaquePointer) throws -> [String] {
    var candidates: [String] = []
    var scan = try RawDatabase(transaction: transaction, identifier: RawDatabase.main).scan(.all)
    while let (key, _) = try scan.next() {
      if let name = DataFileFormat.linked.databaseName(ofKey: key), name != StoreCatalog.name {
        candidates.append(name)
      }
    }
    return candidates
  }

  /// Returns whether a candidate is the name of a named database.
  ///
  /// Other candidates are plain entries of the main database, or were removed in the meantime.
  func isDatabase(_ name: String, in transaction: OpaquePointer) throws(LMDBError) -> Bool {
    var identifier: MDB_dbi = 0
    let code = mdb_dbi_open(transaction, name, 0, &identifier)
    if code == MDB_INCOMPATIBLE || code == MDB_NOTFOUND { return false }
    try LMDBError.check(code)
    return true
  }

  /// Returns the database of the records, or `nil` if no store has one.
  private func records(in transaction: OpaquePointer) throws -> RawDatabase? {
    try open(StoreCatalog.name, in: transaction).map { RawDatabase(transaction: transaction, identifier: $0) }
  }

  /// Returns the identifier of a named database, or `nil` if it does not exist.
  private func open(_ name: String, in transaction: OpaquePointer) throws -> MDB_dbi? {
    var identifier: MDB_dbi = 0
    let code = mdb_dbi_open(transaction, name, 0, &identifier)
    if code == MDB_NOTFOUND { return nil }
    if code == MDB_INCOMPATIBLE {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the environment has a plain entry of this name, not a named database; choose another name")
    }
    try LMDBError.check(code)
    var flags: UInt32 = 0
    try LMDBError.check(mdb_dbi_flags(transaction, identifier, &flags))
    guard flags == 0 else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the named database allows several values per key or uses its own key order; choose another name")
    }
    return identifier
  }

  func decode(_ bytes: UnsafeRawBufferPointer) throws -> Record {
    do {
      return try JSONDecoder().decode(Record.self, from: Data(bytes))
    } catch {
      throw corrupted(error)
    }
  }

  private func corrupted(_ error: (any Error)?) -> StoreError {
    StoreError(
      .corrupted, during: operation, store: store, message: "the record of the store's codec cannot be read",
      underlying: error)
  }

  private func encode(_ record: Record) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return try encoder.encode(record)
  }
}
#endif
