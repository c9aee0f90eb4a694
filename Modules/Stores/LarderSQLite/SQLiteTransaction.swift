#if SQLite
public import Larder
import LarderSQLiteFormat

/// A transaction over several stores of an ``SQLiteDatabase``; see ``SQLiteDatabase/read(_:)`` and
/// ``SQLiteDatabase/write(_:)``.
///
/// All reads of a transaction see one snapshot plus the transaction's own writes. The compiler allows writing only in a
/// transaction created by ``SQLiteDatabase/write(_:)``.
///
/// A transaction exists only inside the closure that receives it. It can be neither stored nor copied.
public struct SQLiteTransaction: ~Copyable {
  private let handle: DatabaseHandle

  /// The transaction of the writer.
  ///
  /// One that only reads has no changes, because the compiler allows none.
  private var writing: DatabaseWriter.Transaction

  /// The buffer that ``setValue(_:forKey:in:)`` encodes into.
  private var buffer: [UInt8] = []

  /// The error of a failed change.
  ///
  /// Nothing is then changed, even if the closure caught the error.
  private var failure: (any Error)?

  init(reading connection: SQLiteConnection, handle: DatabaseHandle) {
    writing = DatabaseWriter.Transaction(
      connection: connection, generation: 0, changes: CommitRecord(isRecording: false))
    self.handle = handle
  }

  init(writing: DatabaseWriter.Transaction, handle: DatabaseHandle) {
    self.writing = writing
    self.handle = handle
  }

  private var connection: SQLiteConnection { writing.connection }

  /// Returns the transaction of the writer with its changes.
  ///
  /// - Throws: The error of a failed change.
  consuming func end() throws -> DatabaseWriter.Transaction {
    if let failure { throw failure }
    return writing
  }

  /// Throws an error if a store belongs to another database or was closed.
  private borrowing func check<Value>(_ store: SQLiteStore<Value>, for operation: StoreOperation) throws {
    guard store.handle.database === handle.database else {
      throw StoreError(
        .invalidArgument, during: operation, store: store.information.name,
        message: "the store belongs to a different database than the transaction")
    }
    try store.handle.checkOpen(for: operation)
  }

  /// Runs a closure that reads, and converts an SQLite error to a store error.
  @inline(__always)
  private borrowing func naming<Value, Result>(
    _ store: SQLiteStore<Value>, _ operation: StoreOperation, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as SQLiteError {
      throw StoreError(error, during: operation, store: store.information.name, message: "the transaction failed")
    }
  }

  /// Runs a closure that writes, records its error, and converts an SQLite error to a store error.
  ///
  /// - Parameter format: The format of the values that were encoded for it. Defaults to `nil`.
  private mutating func change<Value>(
    _ store: SQLiteStore<Value>, encodedIn format: CodecRecord.Format? = nil,
    _ body: (RawTable, inout DatabaseWriter.Transaction) throws -> Void
  ) throws {
    if let failure { throw failure }
    do {
      let table = try store.writableTable(in: &writing, during: .write)
      if let format {
        try store.coder.codecRecord.checkUnchanged(since: format, during: .write, store: store.information.name)
      }
      try body(table, &writing)
    } catch {
      let named: any Error =
        (error as? SQLiteError).map {
          StoreError(
            $0, during: .write, store: store.information.name, message: "the transaction failed", isWrite: true)
        } ?? error
      failure = named
      throw named
    }
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this database.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another database; `corrupted` or
  ///   `undecodable` if the value cannot be decoded; `closed`; `ioFailed`.
  public borrowing func value<Value>(forKey key: StoreKey, in store: SQLiteStore<Value>) throws -> Value? {
    try check(store, for: .value)
    try store.check(key, for: .value)
    return try naming(store, .value) { try store.value(forKey: key, on: connection, during: .value) }
  }

  /// Calls a closure with the encoded bytes of a value, without copying them.
  ///
  /// ```swift
  /// let size = try database.read { transaction in
  ///   try transaction.withBytes(forKey: "7", in: customers) { $0?.byteCount }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this database.
  ///   - body: A closure that receives the bytes, or `nil` if the key is missing. The compiler ensures that the bytes
  ///     do not escape the closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. `StoreError`: `invalidKey`; `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func withBytes<Value, Result>(
    forKey key: StoreKey, in store: SQLiteStore<Value>, _ body: (RawSpan?) throws -> Result
  ) throws -> Result {
    try check(store, for: .value)
    try store.check(key, for: .value)
    return try naming(store, .value) {
      try store.rawTable(on: connection).withValue(forKey: key) { try body($0?.bytes) }
    }
  }

  /// Returns the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of entries. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidArgument`; `corrupted`; `closed`; `ioFailed`.
  public borrowing func entries<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: SQLiteStore<Value>
  ) throws -> [StoreEntry<Value>] {
    try check(store, for: .entries)
    try store.information.check(limit: limit, for: .entries)
    return try naming(store, .entries) {
      var allowance = BulkWork.Allowance.unlimited
      return try store.entries(
        in: range, limit: limit, order: order, on: connection, during: .entries, &allowance)
    }
  }

  /// Returns the first keys of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of keys. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func keys<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: SQLiteStore<Value>
  ) throws -> [StoreKey] {
    try check(store, for: .keys)
    try store.information.check(limit: limit, for: .keys)
    return try naming(store, .keys) {
      try store.rawTable(on: connection).keys(in: range, limit: limit, order: order)
    }
  }

  /// Returns the number of entries in a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func count<Value>(in range: KeyRange = .all, of store: SQLiteStore<Value>) throws -> Int {
    try check(store, for: .count)
    return try naming(store, .count) { try store.rawTable(on: connection).count(in: range) }
  }
}

/// Writing methods.
extension SQLiteTransaction {
  /// Sets the value of a key, replacing any existing value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another database;
  ///   `encodingFailed`; `valueTooLarge`; `closed`; `notPermitted`; `full`; `ioFailed`.
  public mutating func setValue<Value>(_ value: Value, forKey key: StoreKey, in store: SQLiteStore<Value>) throws {
    try check(store, for: .write)
    try store.check(key, for: .write)
    let format = store.coder.codecRecord.format
    buffer.removeAll(keepingCapacity: true)
    try store.coder.append(value, forKey: key, to: &buffer, during: .write)
    let bytes = buffer
    try change(store, encodedIn: format) { table, writing in
      try bytes.withUnsafeBytes { try table.setValue($0, forKey: key) }
      writing.changes.append(.key(key), in: table.table.identifier, hasWritten: true)
    }
  }

  /// Removes a key and its value.
  ///
  /// If the key is missing, this is a no-op.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another database; `closed`;
  ///   `notPermitted`; `full`; `ioFailed`.
  public mutating func removeValue<Value>(forKey key: StoreKey, in store: SQLiteStore<Value>) throws {
    try check(store, for: .write)
    try store.check(key, for: .write)
    try change(store) { table, writing in
      try table.removeValue(forKey: key)
      writing.changes.append(.key(key), in: table.table.identifier, hasWritten: true)
    }
  }

  /// Removes all entries in a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys to remove. Defaults to all keys.
  ///   - store: A store of this database.
  /// - Throws: `StoreError`: `invalidArgument` if the store belongs to another database; `closed`; `notPermitted`;
  ///   `full`; `ioFailed`.
  public mutating func removeAll<Value>(in range: KeyRange = .all, of store: SQLiteStore<Value>) throws {
    try check(store, for: .write)
    try change(store) { table, writing in
      try table.removeAll(in: range)
      writing.changes.append(.range(range), in: table.table.identifier, hasWritten: true)
    }
  }

  /// Applies several changes to a store, in sequence.
  ///
  /// Unsorted changes are sorted first, because SQLite writes sorted keys fastest.
  ///
  /// - Parameters:
  ///   - batch: The changes.
  ///   - store: A store of this database.
  /// - Throws: The same errors as ``setValue(_:forKey:in:)``.
  public mutating func apply<Value>(_ batch: ChangeBatch<Value>, to store: SQLiteStore<Value>) throws {
    try check(store, for: .write)
    let format = store.coder.codecRecord.format
    var allowance = BulkWork.Allowance.unlimited
    let encoded = try store.coder.encoded(batch, &allowance, for: store.information, during: .write)
    try change(store, encodedIn: format) { table, writing in
      try table.write(encoded)
      writing.changes.append(batch, in: table.table.identifier, hasWritten: true)
    }
  }
}
#endif
