#if SQLite
import CSQLite
import Larder

/// Larder's own records of the stores in a database file, in the table `larder`.
struct StoreCatalog {
  /// The record of a store.
  struct Record: Equatable {
    var codecName: String
    var format: Int
  }

  /// The table that holds the records.
  static let tableName = "larder"

  /// The format version that this code reads and writes.
  static let format = 1

  private static let creation =
    "CREATE TABLE IF NOT EXISTS \(tableName)(name TEXT PRIMARY KEY, codec TEXT NOT NULL, format INTEGER NOT NULL) STRICT"

  /// The name of the store in error messages.
  let store: String

  /// The operation in errors.
  var operation = StoreOperation.open

  /// Finds the table of a store and its record.
  ///
  /// - Parameters:
  ///   - name: The name of the store.
  ///   - connection: A connection in a transaction.
  /// - Returns: The table and its record, if it has one, or `nil` if there is no such table.
  /// - Throws: ``StoreError``, with `invalidArgument` if another name differs only in case, and `unsupported` if the
  ///   table is not of the form of a store; `SQLiteError`.
  func find(_ name: String, on connection: SQLiteConnection) throws -> (table: StoreTable, record: Record?)? {
    guard let found = try existingName(name, on: connection) else { return nil }
    guard found.utf8.elementsEqual(name.utf8) else {
      throw StoreError(
        .invalidArgument, during: operation, store: store,
        message: "the database has the name \(found), which SQLite does not tell from \(name)")
    }
    guard let table = try table(named: name, on: connection) else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "\(name) exists in the database and is not a table of a store, which is "
          + "\(name)(key BLOB NOT NULL PRIMARY KEY, value BLOB or TEXT NOT NULL) STRICT; choose another name")
    }
    return (table, try record(of: name, on: connection))
  }

  /// Returns the name of a table, view or index that SQLite does not tell from a name, or `nil`.
  private func existingName(_ name: String, on connection: SQLiteConnection) throws -> String? {
    // Triggers have names of their own.
    try connection.rows(
      "SELECT name FROM sqlite_schema WHERE name = ?1 COLLATE NOCASE AND type <> 'trigger'", name
    ).first?.first
  }

  /// Returns a table if it has the form of a store's, or `nil`.
  private func table(named name: String, on connection: SQLiteConnection) throws -> StoreTable? {
    let kind = try connection.rows(
      "SELECT type, strict FROM pragma_table_list WHERE schema = 'main' AND name = ?1", name)
    guard kind == [["table", "1"]] else { return nil }
    let columns = try connection.rows(
      "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1) ORDER BY cid", name)
    guard columns.count == 2, columns[0] == ["key", "BLOB", "1", "1"], columns[1][0] == "value",
      columns[1][2...] == ["1", "0"], let valueType = StoreTable.ValueType(rawValue: columns[1][1])
    else { return nil }
    return StoreTable(name: name, valueType: valueType)
  }

  /// Returns the record of a store, or `nil` if it has none.
  ///
  /// - Throws: ``StoreError`` with `versionMismatch` if a newer version wrote it; `SQLiteError`.
  func record(of name: String, on connection: SQLiteConnection) throws -> Record? {
    guard try hasRecords(on: connection) else { return nil }
    let rows = try connection.rows("SELECT codec, format FROM \(StoreCatalog.tableName) WHERE name = ?1", name)
    guard let row = rows.first else { return nil }
    guard row.count == 2, let format = Int(row[1]) else {
      throw StoreError(
        .corrupted, during: operation, store: store, message: "the record of the store's codec cannot be read")
    }
    guard format <= StoreCatalog.format else {
      throw StoreError(
        .versionMismatch, during: operation, store: store,
        message: "the store has format version \(format); only versions up to \(StoreCatalog.format) are supported")
    }
    return Record(codecName: row[0], format: format)
  }

  /// Returns whether the file has the table of records.
  ///
  /// - Throws: ``StoreError`` with `unsupported` if the file has another table of that name; `SQLiteError`.
  private func hasRecords(on connection: SQLiteConnection) throws -> Bool {
    let columns = try connection.rows("SELECT name FROM pragma_table_xinfo(?1) ORDER BY cid", StoreCatalog.tableName)
    if columns.isEmpty { return false }
    // A newer version may have added columns.
    guard columns.prefix(3) == [["name"], ["codec"], ["format"]] else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the database has a table \(StoreCatalog.tableName) that is not Larder's; use another database file")
    }
    return true
  }

  /// Creates the table of a store, its view and its record.
  ///
  /// - Throws: ``StoreError``, with `unsupported` if the name of the view is taken; `SQLiteError`.
  func create(
    _ table: StoreTable, _ layout: SQLiteTableLayout, codecName: String, on connection: SQLiteConnection
  ) throws {
    let view = table.name + StoreTable.viewSuffix
    guard try existingName(view, on: connection) == nil else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the database has the name \(view), which a new store \(table.name) needs for its view")
    }
    for statement in table.creation(layout) { try connection.run(statement) }
    try setCodecName(codecName, ofStore: table.name, on: connection)
  }

  /// Records the codec of a store.
  ///
  /// - Throws: ``StoreError``; `SQLiteError`.
  func setCodecName(_ codecName: String, ofStore name: String, on connection: SQLiteConnection) throws {
    if try !hasRecords(on: connection) { try connection.run(StoreCatalog.creation) }
    try connection.withStatement(
      "INSERT INTO \(StoreCatalog.tableName)(name, codec, format) VALUES(?1, ?2, \(StoreCatalog.format)) "
        + "ON CONFLICT(name) DO UPDATE SET codec = excluded.codec, format = excluded.format"
    ) { statement in
      try Array(name.utf8).withUnsafeBytes { name in
        try statement.bind(name, at: 1, isText: true)
        try Array(codecName.utf8).withUnsafeBytes { codecName in
          try statement.bind(codecName, at: 2, isText: true)
          _ = try statement.step()
        }
      }
    }
  }

  /// Returns the names of the tables that have the form of a store's, in ascending order.
  ///
  /// - Throws: `SQLiteError`.
  func storeNames(on connection: SQLiteConnection) throws -> [String] {
    try connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
      .map { $0[0] }
      .filter { try StoreTable.problem(withName: $0) == nil && table(named: $0, on: connection) != nil }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Returns whether the file holds nothing but stores, their records, and indexes and triggers of those.
  ///
  /// - Throws: `SQLiteError`.
  func hasOnlyStores(on connection: SQLiteConnection) throws -> Bool {
    let names = try storeNames(on: connection)
    let own = Set(names + names.map { $0 + StoreTable.viewSuffix } + [StoreCatalog.tableName])
    // Tables of SQLite itself, such as the statistics of ANALYZE, have no row numbers that matter.
    return try connection.rows("SELECT tbl_name FROM sqlite_schema")
      .allSatisfy { own.contains($0[0]) || $0[0].hasPrefix("sqlite_") }
  }
}
#endif
