#if LMDB
import CLMDB
import Larder

/// A cursor over a named database, inside a transaction.
struct RawCursor {
  private let pointer: OpaquePointer

  /// Creates a cursor that is not on an entry.
  ///
  /// You must close it before the transaction ends.
  init(_ database: RawDatabase) throws(LMDBError) {
    var pointer: OpaquePointer?
    try LMDBError.check(mdb_cursor_open(database.transaction, database.identifier, &pointer))
    guard let pointer else { throw LMDBError(code: MDB_PANIC) }
    self.pointer = pointer
  }

  func close() {
    mdb_cursor_close(pointer)
  }

  // MARK: Moving

  /// Moves the cursor and returns the new current entry, or `nil` if there is none.
  @inline(__always)
  func move(
    _ operation: MDB_cursor_op
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    var key = MDB_val()
    var value = MDB_val()
    let code = mdb_cursor_get(pointer, &key, &value, operation)
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    return (UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value))
  }

  /// Moves to the first entry whose key is greater than or equal to a bound.
  ///
  /// - Parameter bound: The bound, which may be empty or longer than the longest key.
  func moveUp(
    to bound: UnsafeRawBufferPointer
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    if bound.isEmpty { return try move(MDB_FIRST) }
    // LMDB does not accept a longer key. The only key that can lie between the prefix and the bound is the prefix
    // itself.
    let isTooLong = bound.count > StoreKey.maximumLength
    var key = MDB_val(UnsafeRawBufferPointer(rebasing: bound.prefix(StoreKey.maximumLength)))
    var value = MDB_val()
    let code = mdb_cursor_get(pointer, &key, &value, MDB_SET_RANGE)
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    if isTooLong && UnsafeRawBufferPointer(key).precedes(bound) { return try move(MDB_NEXT) }
    return (UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value))
  }

  /// Moves to the last entry whose key is less than a bound.
  ///
  /// - Parameter bound: The bound, which may be empty or longer than the longest key, or `nil` for the end of the
  ///   database.
  func moveDown(
    to bound: UnsafeRawBufferPointer?
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    guard let bound else { return try move(MDB_LAST) }
    if bound.isEmpty { return nil }
    return try moveUp(to: bound) == nil ? move(MDB_LAST) : move(MDB_PREV)
  }

  // MARK: Writing

  /// Sets the value of a key, replacing any existing value.
  ///
  /// - Parameter isLast: Whether the key is known to come after all existing keys.
  @inline(__always)
  func setValue(
    _ value: UnsafeRawBufferPointer, forKey key: UnsafeRawBufferPointer, isLast: Bool
  ) throws(LMDBError) {
    var name = MDB_val(key)
    var data = MDB_val(value)
    try LMDBError.check(mdb_cursor_put(pointer, &name, &data, isLast ? UInt32(MDB_APPEND) : 0))
  }

  /// Removes a key and its value.
  ///
  /// If the key is missing, this is a no-op.
  func removeValue(forKey key: UnsafeRawBufferPointer) throws(LMDBError) {
    var name = MDB_val(key)
    var data = MDB_val()
    let code = mdb_cursor_get(pointer, &name, &data, MDB_SET)
    if code == MDB_NOTFOUND { return }
    try LMDBError.check(code)
    try LMDBError.check(mdb_cursor_del(pointer, 0))
  }

  /// Removes all entries in a range.
  func removeAll(from lower: UnsafeRawBufferPointer, upTo upper: UnsafeRawBufferPointer?) throws(LMDBError) {
    var entry = try moveUp(to: lower)
    while let (key, _) = entry {
      if let upper, !key.precedes(upper) { return }
      try LMDBError.check(mdb_cursor_del(pointer, 0))
      // After a removal, the cursor is on the following entry, and MDB_NEXT returns that entry without skipping it.
      entry = try move(MDB_NEXT)
    }
  }
}

/// A scan over the entries of a range, in order.
///
/// Use it as a local variable of a loop, without closures. The compiler then sees the whole loop, and generic code that
/// decodes entries looks up its type once instead of once for each entry.
struct RawScan: ~Copyable {
  private let cursor: RawCursor
  private let order: ScanOrder
  private let range: KeyRange
  /// The bytes of the bound at which the scan ends: the upper bound, or the lower bound of a descending scan.
  ///
  /// Empty for none.
  private let end: [UInt8]
  private var isAtStart = true

  /// Begins a scan in a transaction, which must outlive it.
  init(_ database: RawDatabase, in range: KeyRange, order: ScanOrder) throws(LMDBError) {
    cursor = try RawCursor(database)
    self.order = order
    self.range = range
    end = order == .ascending ? range.upperBound?.bytes ?? [] : range.lowerBound.bytes
  }

  deinit {
    cursor.close()
  }

  /// Returns the next entry, or `nil` after the last one.
  @inline(__always)
  mutating func next() throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    guard let entry = isAtStart ? try start() : try cursor.move(order == .ascending ? MDB_NEXT : MDB_PREV) else {
      return nil
    }
    if end.isEmpty { return entry }
    return end.withUnsafeBytes { end in entry.key.precedes(end) == (order == .ascending) ? entry : nil }
  }

  private mutating func start() throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    isAtStart = false
    // A range whose upper bound is the empty key would have no end to stop at.
    if range.isEmpty { return nil }
    switch order {
    case .ascending:
      return try range.lowerBound.withUnsafeBytes { lower throws(LMDBError) in try cursor.moveUp(to: lower) }
    case .descending:
      guard let upper = range.upperBound else { return try cursor.move(MDB_LAST) }
      return try upper.withUnsafeBytes { upper throws(LMDBError) in try cursor.moveDown(to: upper) }
    }
  }
}
#endif
