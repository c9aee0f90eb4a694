#if LMDB
internal import CLMDB
public import Larder

/// A step of an ``LMDBEnvironment`` over several stores; see ``LMDBEnvironment/read(_:)`` and ``LMDBEnvironment/write(_:)``.
///
/// All that one transaction reads is of one moment, with what it has written itself. The compiler lets only a transaction
/// that ``LMDBEnvironment/write(_:)`` has made write.
///
/// A transaction exists only inside the closure that it is handed to: it can be neither kept nor copied.
public struct LMDBTransaction: ~Copyable {
  let pointer: OpaquePointer
  private let lease: EnvironmentLease

  /// What ``setValue(_:forKey:in:)`` encodes into.
  var buffer: [UInt8] = []

  /// Why a change could not be made: then LMDB makes none of them, even where who asked for it has caught the error.
  private(set) var failure: LMDBError?

  /// The named databases that were found fit to be changed.
  private var changed: [MDB_dbi] = []

  init(pointer: OpaquePointer, lease: EnvironmentLease) {
    self.pointer = pointer
    self.lease = lease
  }

  /// Refuses a store of another environment, and one that was closed.
  borrowing func check<Value>(_ store: LMDBStore<Value>, for operation: StoreOperation) throws {
    guard store.lease.environment === lease.environment else {
      throw StoreError(
        .invalidArgument, during: operation, store: store.information.name,
        message: "the store belongs to another environment than the transaction")
    }
    try store.lease.checkOpen(for: operation)
  }

  /// Runs a closure that reads, and makes an error of LMDB that of a store.
  @inline(__always)
  private borrowing func naming<Value, Result>(
    _ store: LMDBStore<Value>, _ operation: StoreOperation, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as LMDBError {
      throw StoreError(error, during: operation, store: store.information.name, message: "the transaction failed")
    }
  }

  /// Runs a closure that writes, notes an error of LMDB, and makes it that of a store.
  mutating func change<Value>(_ store: LMDBStore<Value>, _ body: (RawDatabase) throws -> Void) throws {
    do {
      // LMDB would only say that the transaction has failed.
      if let failure { throw failure }
      if !changed.contains(store.identifier) {
        _ = try store.changeableDatabase(in: pointer, during: .write)
        changed.append(store.identifier)
      }
      try body(store.database(in: pointer))
    } catch let error as LMDBError {
      failure = error
      throw StoreError(error, during: .write, store: store.information.name, message: "the transaction failed")
    }
  }

  // MARK: Reading

  /// Reads the value of one key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this environment.
  /// - Returns: The value, or `nil` where the key is missing.
  /// - Throws: ``StoreError``: `invalidKey`; `invalidArgument` where the store is of another environment; `corrupted` where
  ///   the value cannot be decoded; `closed`; `ioFailed`.
  public borrowing func value<Value>(forKey key: StoreKey, in store: LMDBStore<Value>) throws -> Value? {
    try check(store, for: .value)
    try store.check(key, for: .value)
    return try naming(store, .value) {
      try store.value(forKey: key, in: pointer, during: .value)
    }
  }

  /// Shows the bytes of the value of one key where they are, without copying them.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A store of this environment.
  ///   - body: Gets the bytes, in the memory map, or `nil` where the key is missing. The compiler sees to it that they do
  ///     not leave the closure.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws. ``StoreError``: `invalidKey`; `invalidArgument`; `closed`; `ioFailed`.
  @inlinable
  public borrowing func withBytes<Value, Result>(
    forKey key: StoreKey, in store: LMDBStore<Value>, _ body: (RawSpan?) throws -> Result
  ) throws -> Result {
    try body(bytes(forKey: key, in: store)?.bytes)
  }

  /// The bytes of a value in the memory map, or `nil` where the key is missing.
  @usableFromInline
  borrowing func bytes<Value>(forKey key: StoreKey, in store: LMDBStore<Value>) throws -> UnsafeRawBufferPointer? {
    try check(store, for: .value)
    try store.check(key, for: .value)
    return try naming(store, .value) {
      try store.database(in: pointer).value(forKey: key)
    }
  }

  /// Reads the first entries of a range.
  ///
  /// - Parameters:
  ///   - range: The keys to look at; all of them unless given.
  ///   - limit: The most entries to return; all of them unless given.
  ///   - order: Whether "first" means the lowest or the highest keys; the lowest unless said.
  ///   - store: A store of this environment.
  /// - Throws: ``StoreError``: `invalidArgument`; `corrupted`; `closed`; `ioFailed`.
  public borrowing func entries<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: LMDBStore<Value>
  ) throws -> [StoreEntry<Value>] {
    try check(store, for: .entries)
    try store.information.check(limit: limit, for: .entries)
    return try naming(store, .entries) {
      var allowance = BulkWork.Allowance.unlimited
      return try store.entries(in: range, limit: limit, order: order, in: pointer, during: .entries, &allowance)
    }
  }

  /// Reads the first keys of a range.
  ///
  /// - Parameters:
  ///   - range: The keys to look at; all of them unless given.
  ///   - limit: The most keys to return; all of them unless given.
  ///   - order: Whether "first" means the lowest or the highest keys; the lowest unless said.
  ///   - store: A store of this environment.
  /// - Throws: ``StoreError``: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func keys<Value>(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending, of store: LMDBStore<Value>
  ) throws -> [StoreKey] {
    try check(store, for: .keys)
    try store.information.check(limit: limit, for: .keys)
    return try naming(store, .keys) {
      try store.database(in: pointer).keys(in: range, limit: limit, order: order)
    }
  }

  /// Counts the entries of a range.
  ///
  /// - Parameters:
  ///   - range: The keys to look at; all of them unless given.
  ///   - store: A store of this environment.
  /// - Throws: ``StoreError``: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func count<Value>(in range: KeyRange = .all, of store: LMDBStore<Value>) throws -> Int {
    try check(store, for: .count)
    return try naming(store, .count) { try store.database(in: pointer).count(in: range) }
  }

  /// Walks over a store in both directions, without copying keys or values.
  ///
  /// - Parameters:
  ///   - store: A store of this environment.
  ///   - body: Moves the cursor and looks at the entries that it stands on. The cursor cannot leave it.
  /// - Returns: What `body` returns.
  /// - Throws: What `body` throws. ``StoreError``: `invalidArgument`; `closed`; `ioFailed`.
  public borrowing func withCursor<Value, Result>(
    of store: LMDBStore<Value>, _ body: (borrowing LMDBCursor) throws -> Result
  ) throws -> Result {
    try check(store, for: .entries)
    let cursor = try naming(store, .entries) { try RawCursor(store.database(in: pointer)) }
    defer { cursor.close() }
    var place = LMDBCursor.Place()
    return try withUnsafeMutablePointer(to: &place) { place in
      try body(LMDBCursor(cursor: cursor, store: store.information.name, place: place))
    }
  }
}
#endif
