#if Postgres
public import Larder

/// A transaction over the stores of a ``PostgresDatabase``; see ``PostgresDatabase/read(_:)`` and
/// ``PostgresDatabase/write(_:)``.
///
/// Each call takes one round trip, and ``update(_:in:_:)`` takes two. After a call has failed because of the server, the
/// transaction cannot be committed, even if the closure catches the error. After the closure has returned, every call
/// throws `closed`.
public final class PostgresTransaction: Sendable {
  private let session: TransactionSession
  private let handle: PostgresHandle

  init(_ session: TransactionSession, of handle: PostgresHandle) {
    self.session = session
    self.handle = handle
  }

  /// Runs statements of a store or a queue of this database.
  func run(
    _ statements: [Statement], of owner: PostgresHandle, for operation: StoreOperation
  ) async throws -> [QueryResult] {
    guard owner.pool === handle.pool else {
      throw StoreError(
        .invalidArgument, during: operation, store: owner.name,
        message: "the store belongs to a different database than the transaction")
    }
    try owner.checkOpen(for: operation)
    return try await session.run(statements, for: operation, store: owner.name)
  }

  /// Calls a closure once the transaction is committed, and never if it is rolled back or repeated.
  func afterCommit(_ action: @escaping @Sendable () -> Void) {
    session.afterCommit(action)
  }

  /// Notes changes of a store, which are reported when the transaction is committed, or may be.
  private func note(_ changes: CommittedChanges) {
    session.note(changes)
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this database.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another database; `corrupted` or
  ///   `undecodable` if the value cannot be decoded; `conflict`; `closed`; `timedOut`; `ioFailed`.
  public func value<Value>(forKey key: StoreKey, in store: PostgresStore<Value>) async throws -> Value? {
    try store.information.check(key, for: .value)
    let rows = try await run([store.table.value(forKey: key)], of: store.handle, for: .value)[0]
    return try store.value(of: rows, forKey: key, during: .value)
  }

  /// Returns the values of several keys.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - store: A store of this database.
  /// - Returns: A value for each key, or `nil` where a key is missing.
  /// - Throws: The same errors as ``value(forKey:in:)``.
  public func values<Value>(forKeys keys: [StoreKey], in store: PostgresStore<Value>) async throws -> [Value?] {
    try store.information.check(keys, for: .values)
    let rows = try await run([store.table.values(forKeys: keys)], of: store.handle, for: .values)[0]
    return try await store.values(of: rows, forKeys: keys, during: .values)
  }

  /// Returns the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of entries. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidArgument`; `corrupted` or `undecodable`; `conflict`; `closed`; `timedOut`;
  ///   `ioFailed`.
  public func entries<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: PostgresStore<Value>
  ) async throws -> [StoreEntry<Value>] {
    try store.information.check(limit: limit, for: .entries)
    let statement = store.table.entries(in: range, limit: limit, order: order)
    let rows = try await run([statement], of: store.handle, for: .entries)[0]
    return try await store.entries(of: rows, during: .entries)
  }

  /// Returns the first keys of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of keys. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidArgument`; `conflict`; `closed`; `timedOut`; `ioFailed`.
  public func keys<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: PostgresStore<Value>
  ) async throws -> [StoreKey] {
    try store.information.check(limit: limit, for: .keys)
    let statement = store.table.keys(in: range, limit: limit, order: order)
    let rows = try await run([statement], of: store.handle, for: .keys)[0]
    return rows.keys
  }

  /// Returns the number of entries in a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidArgument`; `conflict`; `closed`; `timedOut`; `ioFailed`.
  public func count<Value>(in range: KeyRange = .all, of store: PostgresStore<Value>) async throws -> Int {
    let rows = try await run([store.table.count(in: range)], of: store.handle, for: .count)[0]
    return Int(rows.integer(0, 0) ?? 0)
  }

  // MARK: Writing

  /// Sets the value of a key, replacing any existing value.
  ///
  /// ```swift
  /// try await database.write { transaction in
  ///   try await transaction.setValue(customer, forKey: "7", in: customers)
  ///   try await transaction.execute("INSERT INTO audit(customer) VALUES($1)", ["7"])
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another database;
  ///   `encodingFailed`; `valueTooLarge`; `notPermitted`; `conflict`; `closed`; `full`; `timedOut`; `ioFailed`.
  public func setValue<Value>(_ value: Value, forKey key: StoreKey, in store: PostgresStore<Value>) async throws {
    try await apply([.set(key, value)], to: store)
  }

  /// Removes a key and its value.
  ///
  /// If the key is missing, this is a no-op.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this database.
  /// - Throws: The same errors as ``setValue(_:forKey:in:)``.
  public func removeValue<Value>(forKey key: StoreKey, in store: PostgresStore<Value>) async throws {
    try await apply([.remove(key)], to: store)
  }

  /// Removes all entries in a range.
  ///
  /// All other writes to the store wait until the end of the transaction.
  ///
  /// ```swift
  /// try await database.write { transaction in
  ///   try await transaction.removeAll(in: .prefix("7/"), of: orders)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to remove. Defaults to all keys.
  ///   - store: A store of this database.
  /// - Throws: The same errors as ``setValue(_:forKey:in:)``.
  public func removeAll<Value>(in range: KeyRange = .all, of store: PostgresStore<Value>) async throws {
    try await apply([.removeAll(range)], to: store)
  }

  /// Applies several changes to a store, in sequence.
  ///
  /// - Parameters:
  ///   - batch: The changes.
  ///   - store: A store of this database.
  /// - Throws: The same errors as ``setValue(_:forKey:in:)``.
  public func apply<Value>(_ batch: ChangeBatch<Value>, to store: PostgresStore<Value>) async throws {
    try store.information.check(batch)
    guard !batch.isEmpty else { return }
    let format = store.coder.codecRecord.format
    let encoded = try await store.coder.encoded(batch, for: store.information, during: .write)
    // Without the values, which a long transaction must not keep.
    let changes = BoundedChanges(batch)
    _ = try await write(
      store.statements(for: encoded, in: format, recording: changes, during: .write), of: store, for: .write)
    note(store.committed { changes })
  }

  /// Reads, changes and writes back the values of several keys.
  ///
  /// They are locked until the end of the transaction.
  ///
  /// - Parameters:
  ///   - keys: The keys. They must be distinct. Missing ones are locked too.
  ///   - store: A store of this database.
  ///   - body: A closure that assigns the slots to change, in which `nil` stands for a missing key.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws; the errors of ``setValue(_:forKey:in:)`` and ``value(forKey:in:)``.
  @discardableResult
  public func update<Value, Result: Sendable>(
    _ keys: [StoreKey], in store: PostgresStore<Value>,
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> Result
  ) async throws -> Result {
    try await update(deciding: keys, in: store) { slots in .commit(try body(&slots)) }
  }

  /// Reads, changes and writes back the values of several keys, if the closure decides so; see ``update(_:in:_:)``.
  ///
  /// - Parameters:
  ///   - keys: The keys. They must be distinct. Missing ones are locked too.
  ///   - store: A store of this database.
  ///   - body: A closure as that of ``update(_:in:_:)``. It returns whether the slots that it assigned are written.
  /// - Returns: The result of the decision.
  /// - Throws: As ``update(_:in:_:)``.
  @discardableResult
  public func update<Value, Result: Sendable>(
    deciding keys: [StoreKey], in store: PostgresStore<Value>,
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) throws -> UpdateDecision<Result>
  ) async throws -> Result {
    try store.information.check(updateOf: keys)
    let format = store.coder.codecRecord.format
    let first =
      try store.recordedCodec.beginning(.shared, during: .update)
      + [store.table.claim(keys), store.table.values(forKeys: keys)]
    let rows = try await write(first, of: store, for: .update)[first.count - 1]
    // The rows that lock missing keys must not be committed.
    let present = Set(rows.keys)
    let unlocking = store.table.change(setting: [], to: [], removing: keys.filter { !present.contains($0) })
    let (result, statements, assigned): (Swift.Result<Result, any Error>, [Statement]?, [StoreKey])
    do {
      (result, statements, assigned) = try await store.changed(keys, rows, in: format, during: .update) { slots in
        UpdateDecision(catching: { try body(&slots) })
      }
    } catch {
      _ = try await run(unlocking, of: store.handle, for: .update)
      throw error
    }
    if let statements {
      _ = try await write(statements, of: store, for: .update)
    } else {
      _ = try await run(unlocking, of: store.handle, for: .update)
    }
    note(store.committed { BoundedChanges(keys: assigned) })
    return try result.get()
  }

  /// Runs statements of a write to a store.
  private func write<Value>(
    _ statements: [Statement], of store: PostgresStore<Value>, for operation: StoreOperation
  ) async throws -> [QueryResult] {
    let recordedCodec = store.recordedCodec
    let results = try await recordedCodec.comparing(for: operation) {
      try await run(statements, of: store.handle, for: operation)
    }
    afterCommit { recordedCodec.noteCommit() }
    return results
  }

  // MARK: SQL

  private static let maximumParameterCount = 65_535

  /// Runs a statement of your own in the transaction.
  ///
  /// A setting that it changes ends with the transaction, also without `LOCAL`, because the session is set up anew.
  ///
  /// ```swift
  /// let rows = try await transaction.execute("SELECT name FROM people WHERE age > $1", ["30"])
  /// for row in rows { print(row["name"] ?? "unnamed") }
  /// ```
  ///
  /// - Parameters:
  ///   - sql: One statement, with `$1`, `$2` and so on for its parameters.
  ///   - parameters: The parameters as text, in which `nil` is NULL. The server infers their types.
  /// - Returns: The rows, whose fields are text, in which `nil` is NULL.
  /// - Throws: `StoreError`, whose `underlying` is a ``PostgresError`` with the server's code; `invalidArgument` if the SQL
  ///   or a parameter contains NUL, or if the SQL ends the transaction; `unsupported` for `COPY`; `closed`; `timedOut`;
  ///   `ioFailed`.
  @discardableResult
  public func execute(_ sql: String, _ parameters: [String?] = []) async throws -> [[String: String]] {
    guard parameters.count <= PostgresTransaction.maximumParameterCount,
      !sql.utf8.contains(0), parameters.allSatisfy({ $0?.utf8.contains(0) != true })
    else {
      throw StoreError(
        .invalidArgument, during: .write, store: handle.name,
        message: "the SQL and its parameters cannot contain NUL, and there are at most 65,535 parameters")
    }
    let statement = Statement(sql, parameters.map { .inferred($0) }, isPrepared: false)
    let rows = try await session.runSQL(statement, store: handle.name)
    let names = (0..<rows.columnCount).map { rows.name(ofColumn: $0) }
    return (0..<rows.rowCount).map { row in
      Dictionary(
        names.indices.compactMap { column in rows.text(row, column).map { (names[column], $0) } },
        uniquingKeysWith: { first, _ in first })
    }
  }
}
#endif
