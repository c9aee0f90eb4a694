#if SQLite
public import Larder
import LarderSQLiteFormat

/// A store in an SQLite database: a table in a file that every language, every backup tool and the command `sqlite3` read.
///
/// ```swift
/// let store = try await SQLiteStore<User>(path: "users.sqlite")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try store.value(forKey: "user:1")
/// try await store.close()
/// ```
///
/// A read runs a prepared statement on a connection of its own and decodes the value on the caller's executor. Many or
/// large values are decoded on the cooperative pool (see "Threads and actors" in the documentation of `Larder`). A read
/// never waits for a writer, but it waits for the disk if the data is not in memory. Writes run one after another on a
/// thread that belongs to the database.
///
/// The table of the store holds exactly its entries: the keys unchanged, and the values as encoded by the codec, as text
/// where the codec writes JSON. The name of the codec is recorded in a separate table, `larder`. A store cannot be opened
/// with a different codec. <doc:UsingSQLiteStore> shows how to query the table.
///
/// Stores of different types need different names. Within a process, a store cannot be open with two types at the same
/// time, except that `JSONText` and `[UInt8]` may be beside any other type.
///
/// Several stores can share an ``SQLiteDatabase``. It offers transactions across stores.
public final class SQLiteStore<Value: Sendable>: DataStore {
  /// The default name of a store.
  public static var defaultName: String { "default" }

  /// The name, limits and durability of the store.
  public let information: StoreInformation

  let handle: DatabaseHandle
  let coder: ValueCoder<Value>
  let table: StoreTable

  /// The generation of the database where the table and its record were found to be those of this store.
  private let checkedGeneration = Locked(0)

  /// The database, if the store opened it itself and therefore closes it.
  private let ownDatabase: SQLiteDatabase?

  /// Opens a store in a database.
  ///
  /// - Parameters:
  ///   - database: The database that holds the store.
  ///   - name: The name of the store. It is that of its table: 1 to 511 bytes of UTF-8 without NUL. Defaults to
  ///     `default`. The name `larder`, names that begin with `sqlite_` or end in `_text`, and names that differ from an
  ///     existing one only in case are refused.
  ///   - codec: The codec of the values.
  ///   - layout: The kind of a new table. Defaults to `SQLiteTableLayout.ordinary`. An existing table keeps its kind.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the store if it is missing. Defaults to
  ///     `true`.
  /// - Throws: `StoreError`: `invalidArgument` if the name is invalid, or if this process has the store open with another
  ///   type; `notFound`; `versionMismatch` if the store was written by a newer version or with a different codec;
  ///   `unsupported` if the database has something else of that name; `closed`; `timedOut`; `full`; `ioFailed`.
  public convenience init(
    in database: SQLiteDatabase, name: String = SQLiteStore.defaultName, codec: some Codec<Value>,
    layout: SQLiteTableLayout = .ordinary, createsIfMissing: Bool = true
  ) async throws {
    try await self.init(
      UntypedTable(
        in: database, isOwned: false, name: name, layout: layout, createsIfMissing: createsIfMissing,
        newCodecName: codec.name),
      codec: codec)
  }

  /// Opens a store together with its database.
  ///
  /// ```swift
  /// let users = try await SQLiteStore(path: "users.sqlite", codec: .json(User.self))  // SQL can read the values
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the database file.
  ///   - name: The name of the store. Defaults to `default`.
  ///   - codec: The codec of the values.
  ///   - layout: The kind of a new table. Defaults to `SQLiteTableLayout.ordinary`.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its file. Defaults to `StoreAccess.readWrite`.
  ///     With any other access, nothing is created.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the file or store if it is missing.
  ///     Defaults to `true`.
  ///   - busyTimeout: The time that a call waits for another process. Defaults to 5 seconds.
  /// - Throws: The errors of opening the database and of opening a store in it.
  public convenience init(
    path: String, name: String = SQLiteStore.defaultName, codec: some Codec<Value>,
    layout: SQLiteTableLayout = .ordinary, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, busyTimeout: Duration = .seconds(5)
  ) async throws {
    // Before a database is created for it.
    try UntypedTable.check(name, in: path)
    let database = try await SQLiteDatabase(
      path: path, durability: durability, access: access, createsIfMissing: createsIfMissing, busyTimeout: busyTimeout)
    try await self.init(
      UntypedTable(
        in: database, isOwned: true, name: name, layout: layout, createsIfMissing: createsIfMissing,
        newCodecName: codec.name),
      codec: codec)
  }

  /// Opens a store, whose table is created if it is missing.
  ///
  /// - Throws: ``StoreError``.
  init(_ untyped: UntypedTable, codec: some Codec<Value>) async throws {
    handle = untyped.handle
    coder = ValueCoder(codec: codec, store: handle.name, maximumSize: handle.information.maximumValueSize ?? .max)
    do {
      table = try await untyped.table(for: codec, coder.codecRecord)
      try handle.claim(table.identifier, for: Value.self)
    } catch {
      // Nothing was written, so there is no error of closing to report.
      try? await untyped.ownDatabase?.close()
      throw error
    }
    var information = handle.information
    information.identity = StoreIdentity()
    information.noteEncryption(by: codec)
    self.information = information
    ownDatabase = untyped.ownDatabase
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// The value is decoded on the caller's executor, whatever its size.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if the value cannot be decoded; `closed`;
  ///   `timedOut`; `ioFailed`.
  @_specialize(where Value == [UInt8])
  public func value(forKey key: StoreKey) throws -> Value? {
    try check(key, for: .value)
    return try handle.read(for: .value) { try value(forKey: key, on: $0, during: .value) }
  }

  /// Returns the values of several keys from one consistent snapshot.
  ///
  /// More than 64 values, or more than 64 KiB, are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if a value cannot be decoded; `closed`;
  ///   `timedOut`; `ioFailed`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try handle.read(for: .values) { connection in
        try connection.reading {
          try keys.map { key in
            try rawTable(on: connection).withValue(forKey: key) { bytes in
              guard let bytes else { return nil }
              try allowance.take(bytes.count)
              return try coder.value(of: bytes, forKey: key, during: .values)
            }
          }
        }
      }
    }
  }

  /// Returns the first entries of a range from one consistent snapshot.
  ///
  /// If the limit is above 64, or the entries have more than 64 KiB, they are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `corrupted` or `undecodable` if a value cannot
  ///   be decoded; `closed`; `timedOut`; `ioFailed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await BulkWork.run(atMost: limit) { [self] allowance in
      try handle.read(for: .entries) {
        try entries(in: range, limit: limit, order: order, on: $0, during: .entries, &allowance)
      }
    }
  }

  /// Returns the first keys of a range from one consistent snapshot.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `closed`; `timedOut`; `ioFailed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try handle.read(for: .keys) { try rawTable(on: $0).keys(in: range, limit: limit, order: order) }
  }

  /// Returns the number of entries in a range.
  ///
  /// SQLite counts the keys one by one, without reading values.
  ///
  /// - Throws: `StoreError`: `closed`; `timedOut`; `ioFailed`.
  public func count(in range: KeyRange) throws -> Int {
    try handle.read(for: .count) { try rawTable(on: $0).count(in: range) }
  }

  // MARK: Writing

  /// Applies a batch of changes atomically; see `DataStore.apply(_:)`.
  ///
  /// The changes are one transaction and may be in any order. They are sorted first as far as their semantics allow,
  /// because SQLite writes sorted keys fastest. The values of more than 64 changes, or of more than 64 KiB, are encoded
  /// off the caller's actor; those of several thousand changes are encoded on several threads.
  ///
  /// The method throws `timedOut` if another process holds the lock for longer than the timeout of the database,
  /// `notPermitted` if a trigger or an index in the database refuses a change, `conflict` if another program has removed
  /// or changed the table, and `versionMismatch` if a newer program has recorded another codec since the store was opened.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await handle.running(.apply) {
      try information.checkWritable(for: .apply)
      guard !changes.isEmpty else { return }
      let format = coder.codecRecord.format
      let encoded = try await coder.encoded(changes, for: information, during: .apply)
      let deadline = handle.deadline  // Encoding can take longer than the timeout, and is no waiting.
      try await handle.database.writer.write(for: handle, during: .apply, until: deadline) { [self] transaction in
        let table = try writableTable(in: &transaction, during: .apply)
        try coder.codecRecord.checkUnchanged(since: format, during: .apply, store: information.name)
        try table.write(encoded)
        transaction.changes.append(changes, in: self.table.identifier, hasWritten: true)
        return .commit(())
      }
    }
  }

  /// Reads, changes and writes back the values of several keys atomically; see `DataStore.update(deciding:_:)`.
  ///
  /// `body` runs on the thread of the database's writer, inside the transaction, so other processes wait for it too.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await handle.running(.update) {
      try information.check(updateOf: keys)
      return try await handle.database.writer.write(
        for: handle, during: .update, until: handle.deadline
      ) { [self] transaction in
        let table = try writableTable(in: &transaction, during: .update)
        let stored = try keys.map { key in try table.withValue(forKey: key) { $0.map { ArraySlice($0) } } }
        let (decision, assigned, changes) = try coder.update(keys, stored: stored, deciding: body)
        for (key, bytes) in changes {
          if let bytes {
            try bytes.withUnsafeBytes { try table.setValue($0, forKey: key) }
          } else {
            try table.removeValue(forKey: key)
          }
        }
        transaction.changes.append(assigned, in: self.table.identifier, hasWritten: !changes.isEmpty)
        return decision
      }
    }
  }

  /// Flushes all previous writes to disk, so they survive power loss; see ``SQLiteDatabase/synchronize()``.
  ///
  /// - Throws: The errors of ``SQLiteDatabase/synchronize()``.
  public func synchronize() async throws {
    try await handle.synchronize()
  }

  /// Waits for running operations, then closes the store, and also the database if the store opened it itself.
  ///
  /// - Throws: `StoreError`: `conflict` if the files were moved, removed or replaced; `ioFailed` if previous writes
  ///   could not be made durable. The store is closed even if an error is thrown.
  public func close() async throws {
    do {
      try await handle.close()
    } catch {
      try await ownDatabase?.close()
      throw error
    }
    try await ownDatabase?.close()
  }
}

/// The kind of the table of a new ``SQLiteStore``.
///
/// ```swift
/// let scores = try await SQLiteStore<Int>(path: "game.sqlite", layout: .clustered)  // small values, read in ranges
/// ```
public enum SQLiteTableLayout: String, Sendable, Hashable, CaseIterable {
  /// An ordinary table with an index of its keys, for values of any size.
  case ordinary

  /// A table that is itself the tree of its keys (`WITHOUT ROWID`), for values below some 500 bytes.
  ///
  /// Small values are then read faster, above all in a scan of keys that were inserted in random order. Large values
  /// make the file several times as large and slow down reads, writes and counts.
  case clustered
}

/// Methods that work on a connection, for the store itself and for ``SQLiteTransaction``.
extension SQLiteStore {
  /// The number of entries that a scan reserves capacity for.
  private static var usualPageSize: Int { 1000 }

  /// Throws `invalidKey` if a key is empty or too long.
  @inline(__always)
  func check(_ key: StoreKey, for operation: StoreOperation) throws {
    // Checked here first: copying the information costs more than this check.
    if !(1...StoreKey.maximumLength).contains(key.count) { try information.check(key, for: operation) }
  }

  @inline(__always)
  func rawTable(on connection: SQLiteConnection) -> RawTable { RawTable(connection: connection, table: table) }

  /// Returns the table for writing, and records the codec if one that it adopts is recorded.
  ///
  /// - Throws: ``StoreError``, with nothing changed: `conflict` if another program has removed or changed the table;
  ///   `versionMismatch` if another program has recorded another codec; `SQLiteError`.
  func writableTable(
    in transaction: inout DatabaseWriter.Transaction, during operation: StoreOperation
  ) throws -> RawTable {
    let generation = transaction.generation
    if checkedGeneration.withLock({ $0 != generation }) {
      let catalog = StoreCatalog(store: information.name, operation: operation)
      if try catalog.confirm(
        table, codec: coder.codecRecord, on: transaction.connection)
      {
        // The transaction may still be aborted, so the record is compared again next time.
        transaction.hasChangedCatalog = true
      } else {
        checkedGeneration.withLock { $0 = generation }
      }
    }
    return rawTable(on: transaction.connection)
  }

  @inline(__always)
  func value(forKey key: StoreKey, on connection: SQLiteConnection, during operation: StoreOperation) throws -> Value? {
    try rawTable(on: connection).withValue(forKey: key) { bytes in
      try bytes.map { try coder.value(of: $0, forKey: key, during: operation) }
    }
  }

  // Specialized because decoding bytes is so cheap that looking up the generic types of each entry would double the
  // cost.
  @_specialize(where Value == [UInt8])
  func entries(
    in range: KeyRange, limit: Int, order: ScanOrder, on connection: SQLiteConnection,
    during operation: StoreOperation, _ allowance: inout BulkWork.Allowance
  ) throws -> [StoreEntry<Value>] {
    var entries: [StoreEntry<Value>] = []
    entries.reserveCapacity(min(limit, SQLiteStore.usualPageSize))
    try rawTable(on: connection).scan(.entries, in: range, limit: limit, order: order) { row in
      let key = StoreKey(copying: try row.bytes(at: 0))
      let value = try row.bytes(at: 1)
      try allowance.take(value.count)
      entries.append(StoreEntry(key: key, value: try coder.value(of: value, forKey: key, during: operation)))
    }
    return entries
  }
}

/// Every commit of this process is reported, also transactions of the database and writes through other objects. A commit
/// of another connection, such as one of another process, is reported as a change of all keys, within about 50
/// milliseconds.
extension SQLiteStore: ObservableStore {
  /// Observes a range; see `ObservableStore`.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    handle.observe(range, of: table.identifier, observer)
  }
}
#endif
