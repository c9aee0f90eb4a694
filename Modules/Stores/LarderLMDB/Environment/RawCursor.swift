#if LMDB
import CLMDB
import Larder

/// A place in a named database, inside a transaction.
struct RawCursor {
  private let pointer: OpaquePointer

  /// Makes a cursor that stands nowhere; `close()` it before the transaction ends.
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

  /// Moves, and returns the entry that the cursor stands on then, or `nil` where there is none.
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

  /// Moves to the first entry whose key is not before a place.
  ///
  /// - Parameter bound: The place; it may be empty, or longer than a key can be.
  func moveUp(
    to bound: UnsafeRawBufferPointer
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    if bound.isEmpty { return try move(MDB_FIRST) }
    // LMDB takes no longer key. Of all keys only the beginning itself can lie between it and the place.
    let isTooLong = bound.count > StoreKey.maximumLength
    var key = MDB_val(UnsafeRawBufferPointer(rebasing: bound.prefix(StoreKey.maximumLength)))
    var value = MDB_val()
    let code = mdb_cursor_get(pointer, &key, &value, MDB_SET_RANGE)
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    if isTooLong && UnsafeRawBufferPointer(key).precedes(bound) { return try move(MDB_NEXT) }
    return (UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value))
  }

  /// Moves to the last entry whose key is before a place.
  ///
  /// - Parameter bound: The place; it may be empty, or longer than a key can be. `nil` for the end.
  func moveDown(
    to bound: UnsafeRawBufferPointer?
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    guard let bound else { return try move(MDB_LAST) }
    if bound.isEmpty { return nil }
    return try moveUp(to: bound) == nil ? move(MDB_LAST) : move(MDB_PREV)
  }

  // MARK: Writing

  /// Puts a value under a key, in place of any other.
  ///
  /// - Parameter isLast: Whether the key is known to come after all that are there.
  @inline(__always)
  func setValue(
    _ value: UnsafeRawBufferPointer, forKey key: UnsafeRawBufferPointer, isLast: Bool
  ) throws(LMDBError) {
    var name = MDB_val(key)
    var data = MDB_val(value)
    try LMDBError.check(mdb_cursor_put(pointer, &name, &data, isLast ? UInt32(MDB_APPEND) : 0))
  }

  /// Removes a key, where it is there.
  func removeValue(forKey key: UnsafeRawBufferPointer) throws(LMDBError) {
    var name = MDB_val(key)
    var data = MDB_val()
    let code = mdb_cursor_get(pointer, &name, &data, MDB_SET)
    if code == MDB_NOTFOUND { return }
    try LMDBError.check(code)
    try LMDBError.check(mdb_cursor_del(pointer, 0))
  }

  /// Removes every key of a range.
  func removeAll(from lower: UnsafeRawBufferPointer, upTo upper: UnsafeRawBufferPointer?) throws(LMDBError) {
    var entry = try moveUp(to: lower)
    while let (key, _) = entry {
      if let upper, !key.precedes(upper) { return }
      try LMDBError.check(mdb_cursor_del(pointer, 0))
      // After a removal the cursor stands on the entry that followed, which "next" then gives without skipping it.
      entry = try move(MDB_NEXT)
    }
  }
}
#endif
