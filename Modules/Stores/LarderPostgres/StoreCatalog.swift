#if Postgres
import Larder

/// Larder's own records of the stores in a schema, in the table `larder_stores`.
struct StoreCatalog: Sendable {
  /// The record of a store.
  struct Record: Sendable, Equatable {
    var codecName: String
    var format: Int

    /// A Boolean value that indicates whether every writer records its changes in the change feed.
    var reportsChanges: Bool { format >= StoreCatalog.reportingFormat }
  }

  /// The table that holds the records.
  static let tableName = "larder_stores"

  /// The format version of stores whose changes are not recorded.
  private static let plainFormat = 1

  /// The format version of stores whose changes every writer records, which older versions refuse.
  fileprivate static let reportingFormat = 2

  /// The length from which PostgreSQL cuts names without an error, in bytes.
  private static let maximumNameLength = 63

  private static let attemptLimit = 20

  private let handle: PostgresHandle

  /// The name of the store in errors.
  private let store: String

  /// The table of the records, with its schema, for SQL.
  var table: String { "\(handle.quotedSchema).\(StoreCatalog.tableName)" }

  /// Creates the catalog of a schema.
  init(_ handle: PostgresHandle, store: String) {
    self.handle = handle
    self.store = store
  }

  /// Returns why a name cannot be that of a store, or `nil` if it can.
  static func problem(withName name: String) -> String? {
    let length = name.utf8.count
    if length == 0 || length > maximumNameLength {
      return "the name of a store has 1 to \(maximumNameLength) bytes, not \(length); PostgreSQL cuts longer names"
    }
    if name.utf8.contains(0) { return "the name of a store cannot contain NUL" }
    if name.utf8.starts(with: "larder_".utf8) { return "names that begin with larder_ are reserved" }
    return nil
  }

  /// Returns the names of the stores, in order.
  func names(for operation: StoreOperation) async throws -> [String] {
    guard try await exists(StoreCatalog.tableName, for: operation) else { return [] }
    let rows = try await handle.read(
      Statement("SELECT name FROM \(table) ORDER BY name COLLATE \"C\""), for: operation)
    return (0..<rows.rowCount).compactMap { rows.text($0, 0) }
  }

  func exists(_ name: String, for operation: StoreOperation) async throws -> Bool {
    let rows = try await handle.read(
      Statement(
        """
        SELECT 1 FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
        WHERE namespace.nspname = $1 AND class.relname = $2
        """,
        .text(handle.pool.configuration.schema), .text(name)), for: operation)
    return rows.rowCount > 0
  }

  /// Returns the record of a store, or `nil` if it doesn't have one.
  ///
  /// - Throws: ``StoreError`` with `versionMismatch` if a newer version wrote it.
  func record(of name: String) async throws -> Record? {
    guard try await exists(StoreCatalog.tableName, for: .open) else { return nil }
    let rows = try await handle.read(
      Statement("SELECT codec, format::int8 FROM \(table) WHERE name = $1", .text(name)), for: .open)
    guard rows.rowCount == 1 else { return nil }
    guard let codecName = rows.text(0, 0), let format = rows.integer(0, 1) else {
      throw StoreError(.corrupted, during: .open, store: store, message: "the record of the store cannot be read")
    }
    guard format <= StoreCatalog.reportingFormat else {
      throw StoreError(
        .versionMismatch, during: .open, store: store,
        message:
          "the store has format version \(format); only versions up to \(StoreCatalog.reportingFormat) are supported")
    }
    return Record(codecName: codecName, format: Int(format))
  }

  /// Returns the columns of a table: their names, their types, and whether each is the primary key by itself.
  ///
  /// Unlike `information_schema`, these catalogs also show tables to which the role has no access.
  func columns(ofTable name: String) async throws -> QueryResult {
    try await handle.read(
      Statement(
        """
        SELECT attribute.attname::text, attribute.atttypid::int8,
          EXISTS (SELECT FROM pg_index AS index WHERE index.indrelid = class.oid AND index.indisprimary
            AND index.indnkeyatts = 1 AND index.indkey[0] = attribute.attnum)::int
        FROM pg_class AS class JOIN pg_namespace AS namespace ON namespace.oid = class.relnamespace
          JOIN pg_attribute AS attribute ON attribute.attrelid = class.oid
        WHERE namespace.nspname = $1 AND class.relname = $2 AND attribute.attnum > 0 AND NOT attribute.attisdropped
        ORDER BY attribute.attnum
        """, .text(handle.pool.configuration.schema), .text(name)), for: .open)
  }

  /// Returns the table of a store, or `nil` if nothing has its name.
  ///
  /// - Throws: ``StoreError`` with `unsupported` if the table is not of the form of a store's.
  func findTable(_ name: String) async throws -> StoreTable? {
    let columns = try await columns(ofTable: name)
    guard columns.rowCount > 0 else { return nil }
    guard columns.rowCount == 2, columns.text(0, 0) == "key", columns.integer(0, 2) == 1, columns.text(1, 0) == "value",
      columns.integer(0, 1) == StoreTable.ValueType.bytes.identifier,
      let valueType = StoreTable.ValueType.allCases.first(where: { $0.identifier == columns.integer(1, 1) })
    else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: "\(name) exists in the schema and is not a table of a store, which is "
          + "\(name)(key bytea PRIMARY KEY, value bytea or json); choose another name")
    }
    return StoreTable(name: name, schema: handle.quotedSchema, valueType: valueType)
  }

  /// Returns whether triggers record each change of a table by SQL in the change feed.
  func hasRecordingTriggers(_ table: StoreTable) async throws -> Bool {
    let rows = try await handle.read(
      Statement(
        """
        SELECT coalesce(bit_or(tgtype::int8), 0) FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid
        WHERE tgrelid = $1::text::regclass AND tgenabled IN ('O', 'A') AND proname = 'larder_record_changes'
        """, .text(table.quotedName)), for: .open)
    // The events INSERT, DELETE, UPDATE and TRUNCATE.
    let all: Int64 = 4 | 8 | 16 | 32
    return (rows.integer(0, 0) ?? 0) & all == all
  }

  /// Throws `unsupported` if the table refuses the rows without a value with which an update locks missing keys.
  ///
  /// `NOT NULL` and triggers are checked before the server notices that a key exists, so every update would fail. A table with
  /// rules of its own is tried, in a transaction that is rolled back.
  func checkAcceptsLocks(_ table: StoreTable) async throws {
    let rules = try await handle.read(
      Statement(
        """
        SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = class.oid AND attname = 'value' AND attnotnull)
          OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = class.oid AND contype = 'c')
          OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = class.oid AND NOT tgisinternal)
        FROM pg_class AS class WHERE oid = $1::text::regclass
        """, .text(table.quotedName)), for: .open)
    // The binary format of true is 1.
    guard rules.withBytes(0, 0, { $0?.first == 1 }) else { return }
    let key = StoreKey(bytes: (0..<16).map { _ in UInt8.random(in: .min ... .max) })
    do {
      try await handle.transaction(for: .open, first: [table.claim([key])]) { _, _ in
        TransactionEnd(result: (), commits: false)
      }
    } catch let error as StoreError
      where error.code == .notPermitted && (error.underlying as? PostgresError)?.sqlState != "42501"
    {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message:
          "a constraint or a trigger of the table \(table.name) refuses rows without a value, with which updates lock "
          + "missing keys; let it accept NULL, as with ALTER TABLE … ALTER COLUMN value DROP NOT NULL, or open the store "
          + "only for reading", underlying: error.underlying)
    }
  }

  /// Creates the table and the record of a store, as far as they are missing.
  ///
  /// A role without the right to create tables can use those that exist.
  ///
  /// - Parameters:
  ///   - new: The table.
  ///   - codecName: The name of the codec to record.
  ///   - reportsChanges: A Boolean value that indicates whether writers must record their changes.
  func create(_ new: StoreTable, codecName: String, reportsChanges: Bool) async throws {
    var statements: [Statement] = []
    if try await !exists(StoreCatalog.tableName, for: .open) {
      statements.append(
        Statement(
          """
          CREATE TABLE IF NOT EXISTS \(table)(name text PRIMARY KEY, codec text NOT NULL, format integer NOT NULL)
          """))
    }
    if try await !exists(new.name, for: .open) {
      statements.append(
        Statement(
          """
          CREATE TABLE IF NOT EXISTS \(new.quotedName)(key bytea PRIMARY KEY, value \(new.valueType.rawValue))
          """))
    }
    if !statements.isEmpty { try await creating { try await handle.write(statements, for: .open) } }
    // Afterward, because a statement is parsed before the one before it has created its table.
    let format = reportsChanges ? StoreCatalog.reportingFormat : StoreCatalog.plainFormat
    let record = Statement(
      "INSERT INTO \(table)(name, codec, format) VALUES($1, $2, \(format)) ON CONFLICT (name) DO NOTHING",
      .text(new.name), .text(codecName))
    try await handle.write([record], for: .open)
  }

  /// Creates the change feed of the schema, unless it exists.
  func createFeed() async throws {
    let hasChanges = try await exists(FeedTable.names.changes, for: .open)
    let hasState = try await exists(FeedTable.names.state, for: .open)
    guard !hasChanges || !hasState else { return }
    try await creating {
      try await handle.write(FeedTable(schema: handle.quotedSchema).creation, for: .open)
    }
  }

  /// Runs a closure that creates tables, again if another process creates them at the same moment.
  func creating(_ body: () async throws -> Void) async throws {
    var attempt = 1
    while true {
      do {
        return try await body()
      } catch let error as StoreError {
        // "IF NOT EXISTS" does not see what others are just creating.
        let states = ["23505", "42P07", "42710"]
        guard attempt < StoreCatalog.attemptLimit, let cause = error.underlying as? PostgresError,
          states.contains(cause.sqlState)
        else {
          throw error
        }
        attempt += 1
      }
    }
  }
}
#endif
