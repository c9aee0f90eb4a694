public import Larder

/// A connection to a database, on which the catalog runs its statements.
public protocol SQLConnection {
  /// Runs statements whose rows do not matter.
  func run(_ sql: String) throws

  /// Returns the rows of a statement as text, in which NULL is empty.
  ///
  /// - Parameters:
  ///   - sql: The statement.
  ///   - arguments: The texts of the parameters ?1, ?2 and so on.
  func rows(_ sql: String, _ arguments: String...) throws -> [[String]]
}

/// Larder's own records of the stores in a database file, in the table `larder`.
///
/// Its methods also throw the errors of the connection.
///
/// ```swift
/// let catalog = StoreCatalog(store: "shop.sqlite")
/// for name in try catalog.storeNames(on: connection) {
///   print(name, try catalog.record(of: name, on: connection)?.codecName ?? "no record")
/// }
/// ```
public struct StoreCatalog: Sendable {
  /// The record of a store.
  public struct Record: Equatable {
    /// The name of the codec.
    public var codecName: String

    /// The version of the format.
    public var format: Int
  }

  /// The table that holds the records.
  public static let tableName = "larder"

  /// The format version that this code reads and writes.
  public static let format = 1

  /// The name with its schema, because a temporary table of the same name would precede it.
  private static let qualifiedName = "main.\(tableName)"

  private static let creation =
    "CREATE TABLE IF NOT EXISTS \(qualifiedName)(name TEXT PRIMARY KEY, codec TEXT NOT NULL, format INTEGER NOT NULL) STRICT"

  /// The name of the store in error messages.
  private let store: String

  /// The operation in errors.
  private let operation: StoreOperation

  /// Creates the catalog of a file.
  ///
  /// - Parameters:
  ///   - store: The name of the store in errors.
  ///   - operation: The operation in errors. Defaults to opening.
  public init(store: String, operation: StoreOperation = .open) {
    self.store = store
    self.operation = operation
  }

  /// Finds the table of a store and its record.
  ///
  /// - Parameters:
  ///   - name: The name of the store.
  ///   - connection: A connection in a transaction.
  /// - Returns: The table and its record, if it has one, or `nil` if there is no such table.
  /// - Throws: ``StoreError``, with `invalidArgument` if the database has a name that differs only in case or that is
  ///   canonically equal, and `unsupported` if the table is not of the form of a store.
  public func find(_ name: String, on connection: some SQLConnection) throws -> (table: StoreTable, record: Record?)? {
    let names = try similarNames(name, on: connection)
    // Once a store is open, a table that another program adds beside its own does not concern it.
    let isThere = names.contains { $0.utf8.elementsEqual(name.utf8) }
    if operation == .open || !isThere, let other = names.first(where: { !$0.utf8.elementsEqual(name.utf8) }) {
      throw StoreError(
        .invalidArgument, during: operation, store: store,
        message: "the database has the name \(other), which differs from \(name) only in case or in the composition of "
          + "its letters; choose another name")
    }
    guard !names.isEmpty else { return nil }
    guard let table = try table(named: name, on: connection) else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "\(name) exists in the database and is not a table of a store, which is "
          + "\(name)(key BLOB NOT NULL PRIMARY KEY, value BLOB or TEXT NOT NULL) STRICT, without a UNIQUE constraint that has "
          + "a conflict clause; choose another name")
    }
    return (table, try record(of: name, on: connection))
  }

  /// Returns the names of tables, views and indexes that SQLite or a library does not tell from a name.
  ///
  /// SQLite folds the case of ASCII letters and compares bytes. Swift, and libraries that are written in it, also take two
  /// strings for equal whose bytes differ (canonical equivalence).
  private func similarNames(_ name: String, on connection: some SQLConnection) throws -> [String] {
    let folded = StoreTable.folded(name)
    // Triggers have names of their own.
    return try connection.rows("SELECT name FROM main.sqlite_schema WHERE type <> 'trigger'")
      .map { $0[0] }
      .filter { $0 == name || StoreTable.folded($0) == folded }
  }

  /// Returns a table if it has the form of a store's, or `nil`.
  private func table(named name: String, on connection: some SQLConnection) throws -> StoreTable? {
    let kind = try connection.rows(
      "SELECT type, strict, wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1", name)
    guard kind.count == 1, kind[0][..<2] == ["table", "1"] else { return nil }
    let columns = try connection.rows(
      "SELECT name, type, \"notnull\", pk FROM pragma_table_xinfo(?1, 'main') ORDER BY cid", name)
    guard columns.count == 2, columns[0] == ["key", "BLOB", "1", "1"], columns[1][0] == "value",
      columns[1][2...] == ["1", "0"], let valueType = StoreTable.ValueType(rawValue: columns[1][1]),
      try !hasConflictClause(name, on: connection)
    else { return nil }
    return StoreTable(name: name, valueType: valueType, isClustered: kind[0][2] == "1")
  }

  /// Returns whether a table has a UNIQUE constraint that may ignore a row, replace another one, or end the transaction.
  ///
  /// A clause of the primary key has no effect, because the statements of a store resolve its conflicts. SQLite shows a
  /// clause only in the text of the statement, in which the word may also stand for something else. Such a table is refused
  /// too.
  private func hasConflictClause(_ name: String, on connection: some SQLConnection) throws -> Bool {
    try !connection.rows(
      "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1 AND instr(lower(sql), 'conflict') > 0 "
        + "AND EXISTS (SELECT 1 FROM pragma_index_list(?1, 'main') WHERE origin = 'u')", name
    ).isEmpty
  }

  /// Returns the record of a store, or `nil` if it doesn't have one.
  ///
  /// - Throws: ``StoreError`` with `versionMismatch` if a newer version wrote it.
  public func record(of name: String, on connection: some SQLConnection) throws -> Record? {
    guard try hasRecords(on: connection) else { return nil }
    let rows = try connection.rows("SELECT codec, format FROM \(StoreCatalog.qualifiedName) WHERE name = ?1", name)
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
  /// - Throws: ``StoreError`` with `unsupported` if the file has another table of that name.
  private func hasRecords(on connection: some SQLConnection) throws -> Bool {
    let columns = try connection.rows(
      "SELECT name FROM pragma_table_xinfo(?1, 'main') ORDER BY cid", StoreCatalog.tableName)
    if columns.isEmpty { return false }
    // A newer version may have added columns.
    guard columns.prefix(3) == [["name"], ["codec"], ["format"]] else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the database has a table \(StoreCatalog.tableName) that is not Larder's; use another database file")
    }
    return true
  }

  /// Creates the table and the record of a store, as far as they are missing.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - codecName: The codec of a new record.
  ///   - connection: A connection in a transaction that writes.
  /// - Returns: The table, the codec in its record, and whether anything was created.
  /// - Throws: ``StoreError``, with `unsupported` if the name of the view is taken.
  public func create(
    _ table: StoreTable, codecName: String, on connection: some SQLConnection
  ) throws -> (table: StoreTable, codecName: String, hasWritten: Bool) {
    // Another process may have created it in the meantime.
    let found = try find(table.name, on: connection)
    if let found, let record = found.record { return (found.table, record.codecName, false) }
    if found == nil {
      let view = table.name + StoreTable.viewSuffix
      guard try similarNames(view, on: connection).isEmpty else {
        throw StoreError(
          .unsupported, during: operation, store: store,
          message: "the database has the name \(view), which a new store \(table.name) needs for its view")
      }
      for statement in table.creation { try connection.run(statement) }
    }
    try setCodecName(codecName, ofStore: table.name, on: connection)
    return (found?.table ?? table, codecName, true)
  }

  /// Records the codec of a store.
  ///
  /// - Throws: ``StoreError``.
  private func setCodecName(_ codecName: String, ofStore name: String, on connection: some SQLConnection) throws {
    if try !hasRecords(on: connection) { try connection.run(StoreCatalog.creation) }
    _ = try connection.rows(
      "INSERT INTO \(StoreCatalog.qualifiedName)(name, codec, format) VALUES(?1, ?2, \(StoreCatalog.format)) "
        + "ON CONFLICT(name) DO UPDATE SET codec = excluded.codec, format = excluded.format", name, codecName)
  }

  /// Compares the table and the record of an open store with the file, before it is written.
  ///
  /// - Parameters:
  ///   - table: The table of the open store.
  ///   - codec: Its codec.
  ///   - connection: A connection in a transaction that writes.
  /// - Returns: A Boolean value that indicates whether the record was changed in this transaction.
  /// - Throws: ``StoreError``: `conflict` if another program has removed or changed the table; `versionMismatch` if
  ///   another program has recorded another codec, or `conflict` if it is a newer one of this codec.
  public func confirm(
    _ table: StoreTable, codec: CodecRecord, on connection: some SQLConnection
  ) throws -> Bool {
    let found: (table: StoreTable, record: Record?)?
    do {
      found = try find(table.name, on: connection)
    } catch let error as StoreError where [.unsupported, .invalidArgument].contains(error.code) {
      // A table of another form or name, which was that of the store when it was opened.
      found = nil
    }
    guard let found, found.table.valueType == table.valueType, found.table.isClustered == table.isClustered else {
      throw StoreError(
        .conflict, during: operation, store: store,
        message: "another program has removed or changed the table of the store; close the store and open it again")
    }
    // A missing record is accepted, as when the store is opened.
    guard let recorded = found.record?.codecName else { return false }
    let name = try codec.name(replacing: recorded, during: operation, store: store)
    guard name != recorded else { return false }
    try setCodecName(name, ofStore: table.name, on: connection)
    return true
  }

  /// Removes the table, the view and the record of a store.
  ///
  /// - Parameters:
  ///   - name: The name of the store.
  ///   - connection: A connection in a transaction that writes.
  /// - Returns: The table.
  /// - Throws: ``StoreError``: `notFound`; `unsupported` if the table has no record, because another program has created it,
  ///   or is not of the form of a store.
  public func remove(_ name: String, on connection: some SQLConnection) throws -> StoreTable {
    guard let found = try find(name, on: connection) else {
      throw StoreError(.notFound, during: operation, store: store, message: "the database has no store \(name)")
    }
    guard found.record != nil else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the table \(name) has no record of Larder, because another program has created it; remove it with "
          + "DROP TABLE if nothing needs it")
    }
    // A view of another text is another program's.
    let view = name + StoreTable.viewSuffix
    let text = found.table.creation[1].replacing("CREATE VIEW main.", with: "CREATE VIEW ", maxReplacements: 1)
    let views = try connection.rows("SELECT 1 FROM main.sqlite_schema WHERE type = 'view' AND sql = ?1", text)
    if !views.isEmpty { try connection.run("DROP VIEW main.\(StoreTable.quoted(view))") }
    try connection.run("DROP TABLE main.\(StoreTable.quoted(name))")
    _ = try connection.rows("DELETE FROM \(StoreCatalog.qualifiedName) WHERE name = ?1", name)
    return found.table
  }

  /// Returns whether a change of a table may change other entries: by a trigger, or by a foreign key that refers to it.
  ///
  /// - Parameters:
  ///   - table: The identifier of the table.
  ///   - connection: A connection.
  /// - Throws: The error of the connection.
  public static func hasSideEffects(onTable table: [UInt8], on connection: some SQLConnection) throws -> Bool {
    let name = String(decoding: table, as: UTF8.self)
    let found = try connection.rows(
      "SELECT 1 FROM (SELECT type, tbl_name FROM main.sqlite_schema UNION ALL "
        + "SELECT type, tbl_name FROM temp.sqlite_schema) WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE "
        + "UNION ALL SELECT 1 FROM main.sqlite_schema AS child, pragma_foreign_key_list(child.name, 'main') AS key "
        + "WHERE child.type = 'table' AND key.\"table\" = ?1 COLLATE NOCASE "
        + "AND (key.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT') "
        + "OR key.on_update IN ('CASCADE', 'SET NULL', 'SET DEFAULT')) LIMIT 1", name)
    return !found.isEmpty
  }

  /// Throws an error if a codec writes something other than the table holds.
  ///
  /// - Throws: ``StoreError`` with `unsupported`.
  public func check(_ table: StoreTable, suits codec: some Codec) throws {
    guard table.valueType == .blob || codec.format == .json else {
      throw StoreError(
        .unsupported, during: operation, store: store,
        message: "the table holds text, which the codec \(codec.name) does not write; open it with a codec of JSON")
    }
  }

  /// Returns the names of the tables that have the form of a store's, in ascending order.
  ///
  /// - Throws: The error of the connection.
  public func storeNames(on connection: some SQLConnection) throws -> [String] {
    try connection.rows("SELECT name FROM main.sqlite_schema WHERE type = 'table'")
      .map { $0[0] }
      .filter { try StoreTable.problem(withName: $0) == nil && table(named: $0, on: connection) != nil }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Throws an error unless the file only holds stores with their records, indexes and triggers.
  ///
  /// - Throws: ``StoreError`` with `unsupported`.
  public func checkCompactable(on connection: some SQLConnection) throws {
    let names = try storeNames(on: connection)
    let own = Set((names + names.map { $0 + StoreTable.viewSuffix } + [StoreCatalog.tableName]).map { Array($0.utf8) })
    // Tables of SQLite itself, such as the statistics of ANALYZE, have no row numbers that matter.
    let hasOnlyStores = try connection.rows("SELECT tbl_name FROM main.sqlite_schema")
      .allSatisfy { own.contains(Array($0[0].utf8)) || $0[0].utf8.starts(with: "sqlite_".utf8) }
    guard !hasOnlyStores else { return }
    throw StoreError(
      .unsupported, during: operation, store: store,
      message: "the database has tables that are not Larder's, whose row numbers VACUUM could change; run VACUUM "
        + "yourself if nothing depends on them")
  }
}
