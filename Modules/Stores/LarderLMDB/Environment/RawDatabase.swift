#if LMDB
import CLMDB
import Foundation
import Larder

/// A named database inside a transaction, with access to its bytes.
///
/// Returned bytes point into the memory map. They are valid until the transaction writes or ends.
struct RawDatabase {
  /// The database that lists the names of all others: `MAIN_DBI` in `mdb.c` of LMDB 0.9.
  static let main: MDB_dbi = 1

  let transaction: OpaquePointer
  let identifier: MDB_dbi

  // MARK: Reading

  /// Returns the bytes of a value, or `nil` if the key is missing.
  ///
  /// - Parameter key: The key, 1 to 511 bytes.
  @inline(__always)
  func value(forKey key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
    var name = MDB_val(key)
    var data = MDB_val()
    let code = mdb_get(transaction, identifier, &name, &data)
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    return UnsafeRawBufferPointer(data)
  }

  /// Returns the bytes of a value, or `nil` if the key is missing.
  ///
  /// The method is separate from decoding, which is generic, because closures with generic results are called
  /// indirectly.
  func value(forKey key: StoreKey) throws(LMDBError) -> UnsafeRawBufferPointer? {
    try key.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) throws(LMDBError) in try value(forKey: bytes) }
  }

  /// Returns LMDB's statistics of the tree.
  func statistics() throws(LMDBError) -> MDB_stat {
    var statistics = MDB_stat()
    try LMDBError.check(mdb_stat(transaction, identifier, &statistics))
    return statistics
  }

  /// Begins a scan over the entries of a range.
  func scan(_ range: KeyRange, order: ScanOrder = .ascending) throws(LMDBError) -> RawScan {
    try RawScan(self, in: range, order: order)
  }

  // MARK: Writing

  /// Sets the value of a key, replacing any existing value.
  func setValue(_ value: [UInt8], forKey key: StoreKey) throws {
    try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { value in
        var (name, data) = (MDB_val(key), MDB_val(value))
        try LMDBError.check(mdb_put(transaction, identifier, &name, &data, 0))
      }
    }
  }

  /// Removes a key and its value.
  ///
  /// - Returns: A Boolean value that indicates whether there was a value.
  func removeValue(forKey key: StoreKey) throws -> Bool {
    let code = key.withUnsafeBytes { key in
      var name = MDB_val(key)
      return mdb_del(transaction, identifier, &name, nil)
    }
    if code == MDB_NOTFOUND { return false }
    try LMDBError.check(code)
    return true
  }

  /// Removes all entries in a range.
  ///
  /// - Returns: A Boolean value that indicates whether there were any.
  func removeAll(in range: KeyRange) throws -> Bool {
    if range.lowerBound.isEmpty && range.upperBound == nil {
      // LMDB would write an empty database again.
      guard try statistics().ms_entries > 0 else { return false }
      try LMDBError.check(mdb_drop(transaction, identifier, 0))
      return true
    }
    var hasRemoved = false
    var scan = try scan(range)
    while try scan.next() != nil {
      try scan.removeCurrent()
      hasRemoved = true
    }
    return hasRemoved
  }

  // MARK: Keys

  /// Returns the first keys of a range.
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    guard limit > 0 else { return [] }
    var keys: [StoreKey] = []
    var scan = try scan(range, order: order)
    while keys.count < limit, let (key, _) = try scan.next() {
      keys.append(StoreKey(copying: key))
    }
    return keys
  }

  /// Returns the number of entries in a range.
  func count(in range: KeyRange) throws -> Int {
    if range.lowerBound.isEmpty && range.upperBound == nil { return Int(try statistics().ms_entries) }
    var count = 0
    var scan = try scan(range)
    while try scan.next() != nil {
      count += 1
    }
    return count
  }
}

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

  /// Moves the cursor and returns the new current entry, or `nil` if there isn't one.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - key: The key, for operations that search for one.
  @inline(__always)
  func move(
    _ operation: MDB_cursor_op, to key: MDB_val = MDB_val()
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    var key = key
    var value = MDB_val()
    let code = mdb_cursor_get(pointer, &key, &value, operation)
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    return (UnsafeRawBufferPointer(key), UnsafeRawBufferPointer(value))
  }

  /// Moves to the first entry whose key is greater than or equal to a bound.
  ///
  /// - Parameter bound: The bound. It may be empty or longer than the longest key.
  func moveUp(
    to bound: UnsafeRawBufferPointer
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    if bound.isEmpty { return try move(MDB_FIRST) }
    // LMDB does not accept a longer key. The only key that can lie between the prefix and the bound is the prefix
    // itself.
    let isTooLong = bound.count > StoreKey.maximumLength
    let prefix = UnsafeRawBufferPointer(rebasing: bound.prefix(StoreKey.maximumLength))
    guard let entry = try move(MDB_SET_RANGE, to: MDB_val(prefix)) else { return nil }
    return isTooLong && entry.key.precedes(bound) ? try move(MDB_NEXT) : entry
  }

  /// Moves to the last entry whose key is less than a bound.
  ///
  /// - Parameter bound: The bound. It may be empty or longer than the longest key.
  func moveDown(
    to bound: UnsafeRawBufferPointer
  ) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
    if bound.isEmpty { return nil }
    return try moveUp(to: bound) == nil ? move(MDB_LAST) : move(MDB_PREV)
  }

  // MARK: Writing

  /// Sets the value of a key, replacing any existing value.
  ///
  /// - Parameter isLast: A Boolean value that indicates whether the key is known to come after all existing keys.
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
  /// - Returns: A Boolean value that indicates whether there was a value.
  func removeValue(forKey key: UnsafeRawBufferPointer) throws(LMDBError) -> Bool {
    guard try move(MDB_SET, to: MDB_val(key)) != nil else { return false }
    try removeCurrent()
    return true
  }

  /// Removes the current entry.
  func removeCurrent() throws(LMDBError) {
    try LMDBError.check(mdb_cursor_del(pointer, 0))
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

  /// Removes the entry that ``next()`` returned last.
  func removeCurrent() throws(LMDBError) {
    // The cursor is then on the following entry, and MDB_NEXT returns that entry without skipping it.
    try cursor.removeCurrent()
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

extension MDB_val {
  /// Points to bytes that LMDB reads but does not write.
  init(_ bytes: UnsafeRawBufferPointer) {
    self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }
}

extension UnsafeRawBufferPointer {
  /// Creates a buffer of the bytes that LMDB points to.
  @inline(__always)
  init(_ value: MDB_val) {
    self.init(start: value.mv_data, count: value.mv_size)
  }

  /// Returns whether two buffers have the same bytes.
  func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let left = baseAddress, let right = other.baseAddress else { return true }
    return memcmp(left, right, count) == 0
  }

  /// Returns whether these bytes precede others in key order: unsigned, byte by byte, with a prefix first.
  @inline(__always)
  func precedes(_ other: UnsafeRawBufferPointer) -> Bool {
    if let left = baseAddress, let right = other.baseAddress {
      let order = memcmp(left, right, Swift.min(count, other.count))
      if order != 0 { return order < 0 }
    }
    return count < other.count
  }
}
#endif
