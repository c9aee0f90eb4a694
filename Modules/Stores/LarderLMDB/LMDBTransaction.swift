#if LMDB
import CLMDB
public import Larder

/// A transaction over several stores of an ``LMDBEnvironment``; see ``LMDBEnvironment/read(_:)`` and
/// ``LMDBEnvironment/write(_:)``.
///
/// All reads of a transaction see one snapshot plus the transaction's own writes. The compiler allows writing only in a
/// transaction created by ``LMDBEnvironment/write(_:)``.
///
/// A transaction exists only inside the closure that receives it. It can be neither stored nor copied.
public struct LMDBTransaction: ~Copyable {
  let pointer: OpaquePointer
  private let handle: EnvironmentHandle

  /// The buffer that ``setValue(_:forKey:in:)`` encodes into.
  var buffer: [UInt8] = []

  /// The error of a failed change.
  ///
  /// LMDB then discards all changes, even if the closure caught the error.
  private(set) var failure: LMDBError?

  /// The changes so far, for observers.
  private(set) var changes: CommitRecord<MDB_dbi>

  /// The handles of the stores that were checked to be writable.
  ///
  /// Stores with one named database may have different codecs.
  private var changed: [ObjectIdentifier] = []

  init(
    pointer: OpaquePointer, handle: EnvironmentHandle,
    recording changes: CommitRecord<MDB_dbi> = CommitRecord<MDB_dbi>(isRecording: false)
  ) {
    self.pointer = pointer
    self.changes = changes
    self.handle = handle
  }

  /// Throws an error if a store belongs to another environment or was closed.
  borrowing func check<Value>(_ store: LMDBStore<Value>, for operation: StoreOperation) throws {
    guard store.handle.environment === handle.environment else {
      throw StoreError(
        .invalidArgument, during: operation, store: store.information.name,
        message: "the store belongs to a different environment than the transaction")
    }
    try store.handle.checkOpen(for: operation)
  }

  /// Runs a closure that reads a store, and converts an LMDB error to a store error.
  @inline(__always)
  private borrowing func reading<Value, Result>(
    _ store: LMDBStore<Value>, for operation: StoreOperation, _ body: (RawDatabase) throws -> Result
  ) throws -> Result {
    try check(store, for: operation)
    do {
      return try body(store.database(in: pointer))
    } catch let error as LMDBError {
      throw StoreError(error, during: operation, store: store.information.name, message: "the transaction failed")
    }
  }

  /// Runs a closure that writes, records an LMDB error, and converts it to a store error.
  ///
  /// - Parameter format: The format of the values that were encoded for it. Defaults to `nil`.
  mutating func change<Value, Result>(
    _ store: LMDBStore<Value>, encodedIn format: CodecRecord.Format? = nil, _ body: (RawDatabase) throws -> Result
  ) throws -> Result {
    try check(store, for: .write)
    do {
      // LMDB itself would only report that the transaction has failed.
      if let failure { throw failure }
      let writer = ObjectIdentifier(store.handle)
      if !changed.contains(writer) {
        _ = try store.changeableDatabase(in: pointer, during: .write)
        try store.recordCodecName(in: pointer, during: .write, noting: &changes)
        changed.append(writer)
      }
      if let format {
        try store.coder.codecRecord.checkUnchanged(since: format, during: .write, store: store.information.name)
      }
      return try body(store.database(in: pointer))
    } catch let error as LMDBError {
      failure = error
      throw StoreError(error, during: .write, store: store.information.name, message: "the transaction failed")
    }
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this environment.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another environment; `corrupted`
  ///   or `undecodable` if the value cannot be decoded; `closed`; `ioFailed`.
  public borrowing func value<Value>(forKey key: StoreKey, in store: LMDBStore<Value>) throws -> Value? {
    try reading(store, for: .value) {
      try store.check(key, for: .value)
      return try store.value(forKey: key, in: $0.transaction, during: .value)
    }
  }

  /// Calls a closure with the encoded bytes of a value in the memory map, without copying them.
  ///
  /// ```swift
  /// let size = try environment.read { transaction in
  ///   try transaction.withBytes(forKey: "7", in: customers) { $0?.byteCount }  // without a copy
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this environment.
  ///   - body: A closure that receives the bytes, or `nil` if the key is missing. The compiler ensures that the bytes
  ///     do not escape the closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. `StoreError`: `invalidKey`; `invalidArgument`; `closed`; `ioFailed`.
  @inlinable
  public borrowing func withBytes<Value, Result>(
    forKey key: StoreKey, in store: LMDBStore<Value>, _ body: (RawSpan?) throws -> Result
  ) throws -> Result {
    try body(bytes(forKey: key, in: store)?.bytes)
  }

  /// Returns the bytes of a value in the memory map, or `nil` if the key is missing.
  @usableFromInline
  borrowing func bytes<Value>(forKey key: StoreKey, in store: LMDBStore<Value>) throws -> UnsafeRawBufferPointer? {
    try reading(store, for: .value) {
      try store.check(key, for: .value)
      return try $0.value(forKey: key)
    }
  }

  /// Returns the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of entries. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - store: A store of this environment.
  /// - Throws: `StoreError`: `invalidArgument`; `corrupted`; `closed`; `ioFailed`.
  public borrowing func entries<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: LMDBStore<Value>
  ) throws -> [StoreEntry<Value>] {
    try reading(store, for: .entries) {
      try store.information.check(limit: limit, for: .entries)
      var allowance = BulkWork.Allowance.unlimited
      return try store.entries(in: range, limit: limit, order: order, in: $0.transaction, during: .entries, &allowance)
    }
  }

  /// Returns the first keys of a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of keys. Defaults to no limit.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - store: A store of this environment.
  /// - Throws: `StoreError`: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func keys<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: LMDBStore<Value>
  ) throws -> [StoreKey] {
    try reading(store, for: .keys) {
      try store.information.check(limit: limit, for: .keys)
      return try $0.keys(in: range, limit: limit, order: order)
    }
  }

  /// Returns the number of entries in a range.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - store: A store of this environment.
  /// - Throws: `StoreError`: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func count<Value>(in range: KeyRange = .all, of store: LMDBStore<Value>) throws -> Int {
    try reading(store, for: .count) { try $0.count(in: range) }
  }

  /// Calls a closure with a cursor that moves over a store in both directions, without copying keys or values.
  ///
  /// - Parameters:
  ///   - store: A store of this environment.
  ///   - body: A closure that moves the cursor and reads entries. The cursor cannot escape the closure.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws. `StoreError`: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func withCursor<Value, Result>(
    of store: LMDBStore<Value>, _ body: (borrowing LMDBCursor) throws -> Result
  ) throws -> Result {
    let cursor = try reading(store, for: .entries) { try RawCursor($0) }
    defer { cursor.close() }
    var position = LMDBCursor.Position()
    return try withUnsafeMutablePointer(to: &position) { position in
      try body(LMDBCursor(cursor: cursor, store: store.information.name, position: position))
    }
  }
}

/// Writing methods. A transaction cannot write while it exposes bytes of the memory map, because writing moves them.
extension LMDBTransaction {
  /// Sets the value of a key, replacing any existing value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - store: A store of this environment.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another environment;
  ///   `encodingFailed`; `valueTooLarge`; `closed`; `full`; `ioFailed`.
  public mutating func setValue<Value>(_ value: Value, forKey key: StoreKey, in store: LMDBStore<Value>) throws {
    try store.check(key, for: .write)
    let format = store.coder.codecRecord.format
    buffer.removeAll(keepingCapacity: true)
    try store.coder.append(value, forKey: key, to: &buffer, during: .write)
    let bytes = buffer
    try change(store, encodedIn: format) { try $0.setValue(bytes, forKey: key) }
    changes.append(.key(key), in: store.identifier, hasWritten: true)
  }

  /// Removes a key and its value.
  ///
  /// If the key is missing, this is a no-op.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this environment.
  /// - Throws: `StoreError`: `invalidKey`; `invalidArgument` if the store belongs to another environment; `closed`;
  ///   `full`; `ioFailed`.
  public mutating func removeValue<Value>(forKey key: StoreKey, in store: LMDBStore<Value>) throws {
    try store.check(key, for: .write)
    let hasWritten = try change(store) { try $0.removeValue(forKey: key) }
    changes.append(.key(key), in: store.identifier, hasWritten: hasWritten)
  }

  /// Removes all entries in a range.
  ///
  /// ```swift
  /// try await environment.write { transaction in
  ///   try transaction.removeAll(in: .prefix("7/"), of: orders)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to remove. Defaults to all keys.
  ///   - store: A store of this environment.
  /// - Throws: `StoreError`: `invalidArgument` if the store belongs to another environment; `closed`; `full`;
  ///   `ioFailed`.
  public mutating func removeAll<Value>(in range: KeyRange = .all, of store: LMDBStore<Value>) throws {
    let hasWritten = try change(store) { try $0.removeAll(in: range) }
    changes.append(.range(range), in: store.identifier, hasWritten: hasWritten)
  }

  /// Applies several changes to a store, in sequence.
  ///
  /// Unsorted changes are sorted first, because LMDB writes sorted keys fastest.
  ///
  /// - Parameters:
  ///   - batch: The changes.
  ///   - store: A store of this environment.
  /// - Throws: The same errors as ``setValue(_:forKey:in:)``.
  public mutating func apply<Value>(_ batch: ChangeBatch<Value>, to store: LMDBStore<Value>) throws {
    let format = store.coder.codecRecord.format
    var allowance = BulkWork.Allowance.unlimited
    let encoded = try store.coder.encoded(batch, &allowance, for: store.information, during: .write)
    let hasWritten = try change(store, encodedIn: format) { try encoded.write(to: $0) }
    changes.append(batch, in: store.identifier, hasWritten: hasWritten)
  }
}
#endif
