#if GRDB
public import GRDB
public import Larder
import LarderSQLiteFormat

/// Methods for your program's own transactions and observations.
///
/// They take the `Database` of a closure such as `pool.write { db in … }`, and neither begin nor commit a transaction
/// that is already open. They throw what the methods of `DataStore` throw.
extension GRDBStore {
  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// `ValueObservation` tracks this read like any other.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - db: A connection to the database of the store.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` or `undecodable` if the value cannot be decoded; `conflict` if the
  ///   table is gone; `closed`; `ioFailed`.
  public func value(forKey key: StoreKey, in db: Database) throws -> Value? {
    try information.check(key, for: .value)
    return try reading(.value) { try storedValue(forKey: key, in: db) }
  }

  func storedValue(forKey key: StoreKey, during operation: StoreOperation = .value, in db: Database) throws -> Value? {
    try rawTable(in: db).withValue(forKey: key) { bytes in
      try bytes.map { try coder.value(of: $0, forKey: key, during: operation) }
    }
  }

  /// Returns the values of several keys.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - db: A connection to the database of the store.
  /// - Returns: The values in the order of the keys, with `nil` for a missing key.
  /// - Throws: As ``value(forKey:in:)``.
  public func values(forKeys keys: [StoreKey], in db: Database) throws -> [Value?] {
    try information.check(keys, for: .values)
    return try reading(.values) { try storedValues(forKeys: keys, in: db) }
  }

  func storedValues(forKeys keys: [StoreKey], in db: Database) throws -> [Value?] {
    try db.inSnapshot { try keys.map { try storedValue(forKey: $0, during: .values, in: db) } }
  }

  /// Returns the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys.
  ///   - limit: The maximum number of entries. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - db: A connection to the database of the store.
  /// - Throws: As ``value(forKey:in:)``; `StoreError` with `invalidArgument` if the limit is negative.
  public func entries(
    in range: KeyRange, limit: Int = .max, order: ScanOrder = .ascending, in db: Database
  ) throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try reading(.entries) { try storedEntries(in: range, limit: limit, order: order, in: db) }
  }

  func storedEntries(
    in range: KeyRange, limit: Int, order: ScanOrder, in db: Database
  ) throws -> [StoreEntry<Value>] {
    var entries: [StoreEntry<Value>] = []
    try rawTable(in: db).scan(.entries, in: range, limit: limit, order: order) { key, bytes in
      entries.append(StoreEntry(key: key, value: try coder.value(of: bytes, forKey: key, during: .entries)))
    }
    return entries
  }

  /// Returns the first entries of the store.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of entries. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - db: A connection to the database of the store.
  /// - Throws: As ``entries(in:limit:order:in:)``.
  public func entries(
    limit: Int = .max, order: ScanOrder = .ascending, in db: Database
  ) throws -> [StoreEntry<Value>] {
    try entries(in: .all, limit: limit, order: order, in: db)
  }

  /// Returns the first keys of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys.
  ///   - limit: The maximum number of keys. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - db: A connection to the database of the store.
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `conflict`; `closed`; `ioFailed`.
  public func keys(
    in range: KeyRange, limit: Int = .max, order: ScanOrder = .ascending, in db: Database
  ) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try reading(.keys) { try storedKeys(in: range, limit: limit, order: order, in: db) }
  }

  func storedKeys(in range: KeyRange, limit: Int, order: ScanOrder, in db: Database) throws -> [StoreKey] {
    var keys: [StoreKey] = []
    try rawTable(in: db).scan(.keys, in: range, limit: limit, order: order) { key, _ in keys.append(key) }
    return keys
  }

  /// Returns the first keys of the store.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of keys. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - db: A connection to the database of the store.
  /// - Throws: As ``keys(in:limit:order:in:)``.
  public func keys(limit: Int = .max, order: ScanOrder = .ascending, in db: Database) throws -> [StoreKey] {
    try keys(in: .all, limit: limit, order: order, in: db)
  }

  /// Returns the number of entries in a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys.
  ///   - db: A connection to the database of the store.
  /// - Throws: `StoreError`: `conflict`; `closed`; `ioFailed`.
  public func count(in range: KeyRange, in db: Database) throws -> Int {
    try reading(.count) { try rawTable(in: db).count(in: range) }
  }

  /// Returns the number of entries.
  ///
  /// - Parameter db: A connection to the database of the store.
  /// - Throws: As ``count(in:in:)``.
  public func count(in db: Database) throws -> Int {
    try count(in: .all, in: db)
  }

  private func reading<Result>(_ operation: StoreOperation, _ body: () throws -> Result) throws -> Result {
    try run(operation) {
      do {
        return try body()
      } catch {
        throw StoreError.replacing(error, during: operation, store: information.name, "the read failed")
      }
    }
  }

  // MARK: Writing

  /// Sets the value of a key, replacing any existing value.
  ///
  /// ```swift
  /// try await pool.write { db in
  ///   try users.setValue(user, forKey: "user:7", in: db)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - db: The connection that the database of the store writes with.
  /// - Throws: As ``apply(_:in:)``.
  public func setValue(_ value: Value, forKey key: StoreKey, in db: Database) throws {
    try apply([.set(key, value)], in: db)
  }

  /// Removes a key and its value.
  ///
  /// If the key is missing, this is a no-op.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - db: The connection that the database of the store writes with.
  /// - Throws: As ``apply(_:in:)``.
  public func removeValue(forKey key: StoreKey, in db: Database) throws {
    try apply([.remove(key)], in: db)
  }

  /// Removes all entries in a range.
  ///
  /// ```swift
  /// try await pool.write { db in
  ///   try users.removeAll(in: .prefix("guest:"), in: db)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to remove.
  ///   - db: The connection that the database of the store writes with.
  /// - Throws: As ``apply(_:in:)``.
  public func removeAll(in range: KeyRange, in db: Database) throws {
    try apply([.removeAll(range)], in: db)
  }

  /// Removes all entries.
  ///
  /// - Parameter db: The connection that the database of the store writes with.
  /// - Throws: As ``apply(_:in:)``.
  public func removeAll(in db: Database) throws {
    try removeAll(in: .all, in: db)
  }

  /// Applies several changes atomically.
  ///
  /// Inside a transaction they are part of it, under a savepoint. Without one, they are a transaction of their own. If a row
  /// is refused, the transaction continues without the changes. If the disk or the memory is exhausted, or if a trigger asks
  /// for it, it is rolled back as a whole.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - db: The connection that the database of the store writes with.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the connection is another one; `encodingFailed`;
  ///   `valueTooLarge`; `notPermitted` if a trigger, an index or a constraint refuses a change, if a trigger ignores it, or
  ///   if the store only reads; `conflict` if the table was removed or changed, or the file moved or replaced;
  ///   `versionMismatch` if a newer program has recorded another codec; `timedOut`; `full`; `closed`; `ioFailed`, with an
  ///   unknown outcome if a transaction of its own could not be committed.
  public func apply(_ changes: ChangeBatch<Value>, in db: Database) throws {
    try writing(.apply, in: db) {
      let format = coder.codecRecord.format
      var allowance = BulkWork.Allowance.unlimited
      let encoded = try coder.encoded(changes, &allowance, for: information, during: .apply)
      guard !changes.isEmpty else { return }
      try write(encoded, in: format, of: changes, during: .apply, in: db)
    }
  }

  /// Reads, changes and writes back the values of several keys.
  ///
  /// - Parameters:
  ///   - keys: The keys, each once.
  ///   - db: The connection that the database of the store writes with.
  ///   - body: A closure that receives a slot for each key, in the order of the keys, with `nil` for a missing key. It
  ///     assigns the slots to change, with `nil` to remove a key.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws, with nothing changed; as ``apply(_:in:)``; `StoreError` with `corrupted` or
  ///   `undecodable` if a value cannot be decoded.
  @discardableResult
  public func update<Result: Sendable>(
    _ keys: [StoreKey], in db: Database, _ body: (inout UpdateSlots<Value>) throws -> Result
  ) throws -> Result {
    try update(deciding: keys, in: db) { slots in .commit(try body(&slots)) }
  }

  /// Reads, changes and writes back the values of several keys, if the closure decides so; see
  /// ``update(_:in:_:)-([StoreKey],_,_)``.
  ///
  /// - Parameters:
  ///   - keys: The keys, each once.
  ///   - db: The connection that the database of the store writes with.
  ///   - body: A closure as that of ``update(_:in:_:)-([StoreKey],_,_)``, which returns whether the slots that it assigned
  ///     are written.
  /// - Returns: The result of the decision.
  /// - Throws: As ``update(_:in:_:)-([StoreKey],_,_)``.
  @discardableResult
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], in db: Database, _ body: (inout UpdateSlots<Value>) throws -> UpdateDecision<Result>
  ) throws -> Result {
    try information.check(updateOf: keys)
    return try writing(.update, in: db) {
      try updateInTransaction(keys, in: db) { slots in UpdateDecision(catching: { try body(&slots) }) }
    }.get()
  }

  /// Reads, changes and writes back the value of a key; see ``update(_:in:_:)-([StoreKey],_,_)``.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - db: The connection that the database of the store writes with.
  ///   - body: A closure that receives the value, or `nil` if the key is missing, and changes it.
  /// - Returns: The result of `body`.
  /// - Throws: As for several keys.
  @discardableResult
  public func update<Result: Sendable>(
    _ key: StoreKey, in db: Database, _ body: (inout Value?) throws -> Result
  ) throws -> Result {
    try update([key], in: db) { try body(&$0[0]) }
  }

  private func writing<Result>(
    _ operation: StoreOperation, in db: Database, _ body: () throws -> Result
  ) throws -> Result {
    try run(operation) {
      try information.checkWritable(for: operation)
      do {
        return try body()
      } catch {
        throw StoreError.replacing(
          error, during: operation, store: information.name, "the changes could not be written", isWrite: true)
      }
    }
  }
}
#endif
