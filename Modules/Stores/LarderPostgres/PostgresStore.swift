#if Postgres
public import Larder
import LarderCBOR

/// A store in a PostgreSQL database, which many hosts share: a table that every language and the command `psql` read.
///
/// ```swift
/// let database = try await PostgresDatabase("postgresql://db.example/app")
/// let store = try await PostgresStore<User>(in: database, name: "users")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try await store.value(forKey: "user:1")
/// await database.close()
/// ```
///
/// A read takes one round trip to the server, ``apply(_:)`` one, and ``update(deciding:_:)`` two, whatever the number of keys.
/// Many or large values are encoded and decoded on the cooperative pool (see "Threads and actors" in the documentation of
/// `Larder`).
///
/// The table of the store holds exactly its entries: the keys unchanged in a column `key` of the type `bytea`, and the
/// values as encoded by the codec in a column `value`, of the type `json` where the codec writes JSON, and else `bytea`.
/// The name of the codec is recorded in the table `larder_stores`. A store cannot be opened with a different codec.
///
/// ## Changes
///
/// A store that is created with `reportsChanges` reports the commits of all hosts to its observers, so a cache above it
/// agrees with those of other hosts. Commits of the same ``PostgresDatabase`` are reported before the call returns, and
/// those of others some milliseconds later. Any other store reports only the commits of its own `PostgresDatabase`.
/// <doc:PostgresChangeFeed> describes how, and what it costs. A store of a standby reports no commits of others, and says so.
public final class PostgresStore<Value: Sendable>: ObservableStore {
  /// The default name of a store.
  public static var defaultName: String { "default" }

  /// The name, limits and durability of the store.
  public let information: StoreInformation

  let handle: PostgresHandle
  let coder: ValueCoder<Value>
  let table: StoreTable

  /// The database, if the store closes it.
  private let ownDatabase: PostgresDatabase?

  /// The codec, which each write compares with the record.
  let recordedCodec: RecordedCodec

  /// Opens a store in a database.
  ///
  /// ```swift
  /// let flags = try await PostgresStore(in: database, name: "flags", codec: .json(Bool.self), reportsChanges: true)
  /// ```
  ///
  /// - Parameters:
  ///   - database: The database that holds the store.
  ///   - name: The name of the store. It is that of its table: 1 to 63 bytes of UTF-8 without NUL. Defaults to
  ///     `default`. Names that begin with `larder_` are refused.
  ///   - codec: The codec of the values.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the store if it is missing. Defaults to
  ///     `true`.
  ///   - reportsChanges: A Boolean value that indicates whether a store that is created reports the changes of all hosts.
  ///     An existing store does what its record says, whatever this argument is. Defaults to `false`.
  /// - Throws: `StoreError`: `invalidArgument` if the name is invalid; `notFound`; `versionMismatch` if the store was
  ///   written by a newer version or with a different codec; `unsupported` if the schema has something else of that name,
  ///   or if the store exists and does not report its changes although `reportsChanges` is `true`, or if its table is that
  ///   of another program and does not have the triggers of <doc:PostgresChangeFeed>; `notPermitted`; `closed`;
  ///   `timedOut`; `ioFailed`.
  public convenience init(
    in database: PostgresDatabase, name: String = PostgresStore.defaultName, codec: some Codec<Value>,
    createsIfMissing: Bool = true, reportsChanges: Bool = false
  ) async throws {
    try await self.init(
      UntypedTable(
        in: database, isOwned: false, name: name, createsIfMissing: createsIfMissing, newCodecName: codec.name,
        reportsChanges: reportsChanges),
      codec: codec)
  }

  /// Opens a store, whose table is created if it is missing.
  ///
  /// - Throws: ``StoreError``.
  init(_ untyped: UntypedTable, codec: some Codec<Value>) async throws {
    handle = untyped.handle
    coder = ValueCoder(
      codec: codec, store: handle.name, maximumSize: handle.information.maximumValueSize ?? .max)
    let hasFeed: Bool
    do {
      (table, recordedCodec) = try await untyped.table(for: codec, coder.codecRecord)
      hasFeed = table.reportsChanges ? try await handle.feed.begin(for: handle) : false
    } catch {
      await untyped.ownDatabase?.close()
      throw error
    }
    ownDatabase = untyped.ownDatabase
    var information = handle.information
    information.noteEncryption(by: codec)
    information.reportedCommits = hasFeed ? .ofAllHosts : .ofObject
    self.information = information
  }

  /// Observes the entries; see `ObservableStore.observe(_:_:)`.
  ///
  /// The observer is called on the thread of a writer of this `PostgresDatabase`, or on one that reads the changes of
  /// others. Rolled back transactions are not reported. Changes by SQL are reported only with the triggers of
  /// <doc:PostgresChangeFeed>.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    handle.observe(range, of: table, observer)
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if the value cannot be decoded; `conflict` if
  ///   the table is gone; `closed`; `timedOut`; `ioFailed`. `CancellationError`.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try information.check(key, for: .value)
    return try await handle.running(.value) {
      let rows = try await handle.read(table.value(forKey: key), for: .value)
      return try value(of: rows, forKey: key, during: .value)
    }
  }

  /// Returns the values of several keys from one consistent snapshot.
  ///
  /// More than 64 values, or more than 64 KiB, are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if a value cannot be decoded; `conflict`;
  ///   `closed`; `timedOut`; `ioFailed`. `CancellationError`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await handle.running(.values) {
      guard !keys.isEmpty else { return [] }
      let rows = try await handle.read(table.values(forKeys: keys), for: .values)
      return try await values(of: rows, forKeys: keys, during: .values)
    }
  }

  /// Returns the first entries of a range from one consistent snapshot.
  ///
  /// If there are more than 64, or they have more than 64 KiB, they are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `corrupted` or `undecodable` if a value cannot
  ///   be decoded; `conflict`; `closed`; `timedOut`; `ioFailed`. `CancellationError`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await handle.running(.entries) {
      let rows = try await handle.read(table.entries(in: range, limit: limit, order: order), for: .entries)
      return try await entries(of: rows, during: .entries)
    }
  }

  /// Returns the first keys of a range from one consistent snapshot.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `conflict`; `closed`; `timedOut`; `ioFailed`.
  ///   `CancellationError`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    let rows = try await handle.running(.keys) {
      try await handle.read(table.keys(in: range, limit: limit, order: order), for: .keys)
    }
    return rows.keys
  }

  /// Returns the number of entries in a range.
  ///
  /// PostgreSQL counts the rows one by one.
  ///
  /// - Throws: `StoreError`: `conflict`; `closed`; `timedOut`; `ioFailed`. `CancellationError`.
  public func count(in range: KeyRange) async throws -> Int {
    let rows = try await handle.running(.count) { try await handle.read(table.count(in: range), for: .count) }
    return Int(rows.integer(0, 0) ?? 0)
  }

  // MARK: Writing

  /// Applies a batch of changes atomically; see `DataStore.apply(_:)`.
  ///
  /// The batch is one transaction in one round trip. It waits for others that change the same keys; a batch that removes
  /// a range waits for all other writes to the store, and they wait for it. More than 64 values, or more than 64 KiB, are
  /// encoded off the caller's actor.
  ///
  /// The method also throws `notPermitted` if the role or a trigger refuses a change, `conflict` if the table is gone or
  /// after 20 attempts, and `timedOut` if another transaction holds a lock for longer than the time limit.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await handle.running(.apply) {
      try information.check(changes)
      guard !changes.isEmpty else { return }
      let format = coder.codecRecord.format
      let encoded = try await coder.encoded(changes, for: information, during: .apply)
      let recorded = table.reportsChanges ? BoundedChanges(changes) : BoundedChanges()
      _ = try await recordedCodec.comparing(for: .apply) {
        try await handle.write(
          statements(for: encoded, in: format, recording: recorded), usesResults: false,
          reporting: committed { BoundedChanges(changes) }, for: .apply)
      }
      recordedCodec.noteCommit()
    }
  }

  /// Reads, changes and writes back the values of several keys atomically; see `DataStore.update(deciding:_:)`.
  ///
  /// The keys are locked in key order until the commit, also those that are missing. `body` runs on the caller's executor,
  /// and may run more than once, because a transaction that meets a conflict is repeated.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await handle.running(.update) {
      try information.check(updateOf: keys)
      let format = coder.codecRecord.format
      let first =
        try recordedCodec.beginning(.shared, during: .update) + [table.claim(keys), table.values(forKeys: keys)]
      let (result, unchanged) = try await recordedCodec.comparing(for: .update) {
        try await handle.transaction(for: .update, first: first) { session, rows in
          let (result, statements, assigned) = try await changed(
            keys, rows[first.count - 1], in: format, during: .update, deciding: body)
          // Without a change, what was locked is rolled back with the rows for missing keys.
          guard let statements else { return TransactionEnd(result: (result, assigned), commits: false) }
          session.afterCommit { [recordedCodec] in recordedCodec.noteCommit() }
          session.note(committed { BoundedChanges(keys: assigned) })
          return TransactionEnd(result: (result, []), statements: statements)
        }
      }
      // A cache counts on a report of each key that was assigned, also of equal values.
      if !unchanged.isEmpty {
        handle.feed.report(committed { BoundedChanges(keys: unchanged) })
      }
      return result
    }
  }

  /// Waits until all previous writes are durable.
  ///
  /// With `Durability.File.synced` every write was durable when it returned. Otherwise a small transaction waits for the
  /// disk of the server.
  ///
  /// - Throws: `StoreError`: `closed`; `timedOut`; `ioFailed`.
  public func synchronize() async throws {
    try await handle.synchronize()
  }

  /// Waits for running operations, then closes the store, and also the database if a registry opened it for the store.
  public func close() async throws {
    await handle.close()
    await ownDatabase?.close()
  }
}

/// Methods that the store shares with ``PostgresTransaction``.
extension PostgresStore {
  func value(of rows: QueryResult, forKey key: StoreKey, during operation: StoreOperation) throws -> Value? {
    guard rows.rowCount > 0 else { return nil }
    return try value(of: rows, row: 0, column: 0, forKey: key, during: operation)
  }

  func values(
    of rows: QueryResult, forKeys keys: [StoreKey], during operation: StoreOperation
  ) async throws -> [Value?] {
    try await rows.values(forKeys: keys) { [self] row, key in
      try value(of: rows, row: row, column: 1, forKey: key, during: operation)
    }
  }

  func entries(of rows: QueryResult, during operation: StoreOperation) async throws -> [StoreEntry<Value>] {
    // The statement leaves out rows without a value.
    try await rows.entries { [self] row, key in
      try value(of: rows, row: row, column: 1, forKey: key, during: operation)
    }
  }

  private func value(
    of rows: QueryResult, row: Int, column: Int, forKey key: StoreKey, during operation: StoreOperation
  ) throws -> Value? {
    try rows.withBytes(row, column) { bytes in
      try bytes.map { try coder.value(of: $0, forKey: key, during: operation) }
    }
  }

  /// Returns changes of the store, to be reported after their commit.
  func committed(_ changes: @escaping @Sendable () -> BoundedChanges) -> CommittedChanges {
    CommittedChanges(store: table.name, isRecorded: table.reportsChanges, changes: changes)
  }

  /// Returns the statements of a batch, the first of which take its lock and compare the codec, and the last of which records
  /// the changes if the store reports them.
  ///
  /// - Throws: ``StoreError`` if the codec of the store has changed.
  func statements(
    for changes: EncodedChanges, in format: CodecRecord.Format, recording recorded: BoundedChanges,
    during operation: StoreOperation = .apply
  ) throws -> [Statement] {
    let removesRange = changes.steps.contains { if case .removeAll = $0 { true } else { false } }
    return try recordedCodec.beginning(removesRange ? .exclusive : .shared, encodedIn: format, during: operation)
      + table.recording(recorded, from: handle.feed.origin, in: table.write(changes))
  }

  /// Runs the body of an update.
  ///
  /// - Parameters:
  ///   - keys: The keys. They are locked.
  ///   - rows: Their entries.
  ///   - format: The format of the values before the transaction began.
  /// - Returns: The result; the statements that write what changed, or `nil` if nothing did; and the keys that a commit
  ///   assigned. The statements also remove the rows that locked missing keys.
  func changed<Result: Sendable>(
    _ keys: [StoreKey], _ rows: QueryResult, in format: CodecRecord.Format, during operation: StoreOperation,
    deciding body: (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> (result: Result, statements: [Statement]?, assigned: [StoreKey]) {
    let indices = rows.rowsByKey
    let stored = keys.map { key in indices[key].flatMap { rows.bytes($0, 1) }.map { $0[...] } }
    var slots = UpdateSlots(stored: try await values(of: rows, forKeys: keys, during: operation))
    let decision = body(&slots)
    let changes =
      decision.isCommit ? try coder.changes(in: slots, of: keys, stored: stored, during: operation) : []
    try coder.codecRecord.checkUnchanged(since: format, during: operation, store: information.name)
    let assigned = decision.isCommit ? slots.assignedIndices.map { keys[$0] } : []
    guard !changes.isEmpty else { return (decision.result, nil, assigned) }
    let set = changes.filter { $0.bytes != nil }
    // The rows of missing keys, which were made to lock them, must not stay.
    let missing = keys.indices.filter { stored[$0] == nil && slots[$0] == nil }.map { keys[$0] }
    let statements = table.change(
      setting: set.map(\.key), to: set.compactMap(\.bytes),
      removing: missing + changes.filter { $0.bytes == nil }.map(\.key))
    let recorded = BoundedChanges(keys: assigned)
    return (decision.result, table.recording(recorded, from: handle.feed.origin, in: statements), assigned)
  }
}

extension PostgresStore where Value: Codable {
  /// Opens a store of `Codable` values in a database, with `CBORCodec`.
  ///
  /// - Parameters:
  ///   - database: The database that holds the store.
  ///   - name: The name of the store. Defaults to `default`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the store if it is missing. Defaults to
  ///     `true`.
  ///   - reportsChanges: A Boolean value that indicates whether a store that is created reports the changes of all hosts.
  ///     Defaults to `false`.
  /// - Throws: The same errors as ``init(in:name:codec:createsIfMissing:reportsChanges:)``.
  public convenience init(
    in database: PostgresDatabase, name: String = PostgresStore.defaultName, createsIfMissing: Bool = true,
    reportsChanges: Bool = false
  ) async throws {
    try await self.init(
      in: database, name: name, codec: CBORCodec(), createsIfMissing: createsIfMissing, reportsChanges: reportsChanges)
  }
}
#endif
