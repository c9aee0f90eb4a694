#if GRDB
public import GRDB
public import Larder
import LarderCBOR
import LarderFiles
import LarderSQLiteFormat

extension GRDBStore {
  /// Creates the table and the record of a store, as far as they are missing.
  ///
  /// Use it in a migration, so the schema of the migrations includes the store:
  ///
  /// ```swift
  /// migrator.registerMigration("users") { db in
  ///   try GRDBStore<User>.create(named: "users", in: db)
  /// }
  /// ```
  ///
  /// Afterward, ``init(in:name:codec:createsIfMissing:requiresSynced:)`` opens the store as it is. If the store exists,
  /// this is a no-op.
  ///
  /// Inside a transaction, the table is part of it, and an error leaves the transaction as it was before the call. Without
  /// one, the method commits a transaction of its own. It runs on the thread of the caller.
  ///
  /// - Parameters:
  ///   - name: The name of the store. It is that of its table. Defaults to `default`.
  ///   - codec: The codec of the store. If it writes JSON, the values of a new table are text.
  ///   - db: A connection that writes.
  /// - Throws: `StoreError`: `invalidArgument` if the name is reserved, or differs from an existing one only in case or in
  ///   the composition of its letters; `unsupported` if the name belongs to a table that is not a store's, or if the codec
  ///   does not suit the table; `versionMismatch` if the store has another codec or a newer format; `notPermitted` if the
  ///   connection only reads; `timedOut`; `full`; `ioFailed`.
  public static func create(
    named name: String = GRDBStore.defaultName, codec: some Codec<Value>, in db: Database
  ) throws {
    do {
      if db.isInsideTransaction {
        try db.inStoreSavepoint { .commit(try create(name, codec, on: db)) }.result
      } else {
        try db.inImmediateTransaction { .commit(try create(name, codec, on: db)) }.result
      }
    } catch {
      throw StoreError.replacing(
        error, during: .open, store: name, "the table of the store cannot be created", isWrite: true)
    }
  }

  private static func create(_ name: String, _ codec: some Codec<Value>, on db: Database) throws {
    try db.checkSQLiteVersion(store: name)
    if let problem = StoreTable.problem(withName: name) {
      throw StoreError(.invalidArgument, during: .open, store: name, message: problem)
    }
    let catalog = StoreCatalog(store: name)
    let created = try catalog.create(
      StoreTable(name: name, codec: codec), codecName: codec.name, on: GRDBConnection(db: db))
    try catalog.check(created.table, suits: codec)
    _ = try CodecRecord(codec).name(replacing: created.codecName, during: .open, store: name)
  }
}

extension GRDBStore where Value: Codable {
  /// Creates the table and the record of a store with `CBORCodec`, as far as they are missing; see
  /// ``create(named:codec:in:)``.
  ///
  /// ```swift
  /// migrator.registerMigration("orders") { db in
  ///   try GRDBStore<Order>.create(named: "orders", in: db)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the store. It is that of its table. Defaults to `default`.
  ///   - db: A connection that writes.
  /// - Throws: The same errors as ``create(named:codec:in:)``.
  public static func create(named name: String = GRDBStore.defaultName, in db: Database) throws {
    try create(named: name, codec: CBORCodec(), in: db)
  }
}

extension GRDBStore where Value: Codable {
  /// Opens a store of `Codable` values with `CBORCodec`.
  ///
  /// - Parameters:
  ///   - writer: The database, a `DatabasePool` or a `DatabaseQueue`.
  ///   - name: The name of the store. It is that of its table. Defaults to `default`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the table if it is missing. Defaults to
  ///     `true`.
  ///   - requiresSynced: A Boolean value that indicates whether to refuse a database whose commits may be lost when
  ///     power is lost. Defaults to `false`.
  /// - Throws: The same errors as ``init(in:name:codec:createsIfMissing:requiresSynced:)``.
  public convenience init(
    in writer: some DatabaseWriter, name: String = GRDBStore.defaultName, createsIfMissing: Bool = true,
    requiresSynced: Bool = false
  ) async throws {
    try await self.init(
      in: writer, name: name, codec: CBORCodec(), createsIfMissing: createsIfMissing, requiresSynced: requiresSynced)
  }
}

/// The table of a store, with what is known of its database after opening.
struct OpenedTable: Sendable {
  let table: StoreTable
  let settings: GRDBSettings

  /// The database file, if there is one.
  let files: OpenedFiles

  /// The connection that writes.
  let connection: ObjectIdentifier

  /// Finds the table of a store, or creates it.
  init(
    _ name: String, _ codec: some Codec, _ codecRecord: CodecRecord, mayCreate: Bool, isReadOnly: Bool,
    requiresSynced: Bool, on db: Database, store: String
  ) throws {
    try db.checkSQLiteVersion(store: store)
    let connection = GRDBConnection(db: db)
    let catalog = StoreCatalog(store: store)
    settings = try GRDBSettings(of: connection)
    guard !requiresSynced || settings.durability == .synced else {
      throw StoreError(
        .unsupported, during: .open, store: store,
        message: settings.canSyncFolder
          ? "the connection that writes has the journal mode \(settings.journalMode) and synchronous = "
            + "\(settings.synchronous), so power loss may lose its latest commits; set PRAGMA synchronous = FULL or EXTRA "
            + "on it, and on Apple systems PRAGMA fullfsync = ON"
          : "the folder of the database cannot be synced, so power loss may lose the latest commits; allow the program to "
            + "read the folder")
    }
    files = try settings.openedFiles(store: store)
    self.connection = ObjectIdentifier(db)
    let found = try db.inSnapshot { try catalog.find(name, on: connection) }
    var recordedName = found?.record?.codecName
    if let found, isReadOnly || recordedName != nil {
      table = found.table
    } else {
      guard found != nil || mayCreate else {
        throw StoreError(.notFound, during: .open, store: store, message: "the database has no store of this name")
      }
      let new = found?.table ?? StoreTable(name: name, codec: codec)
      // A table that the codec cannot use gets no record.
      try catalog.check(new, suits: codec)
      let created = try db.inImmediateTransaction {
        .commit(try catalog.create(new, codecName: codec.name, on: connection))
      }.result
      (table, recordedName) = (created.table, created.codecName)
    }
    try catalog.check(table, suits: codec)
    if let recordedName { _ = try codecRecord.name(replacing: recordedName, during: .open, store: store) }
  }
}
#endif
