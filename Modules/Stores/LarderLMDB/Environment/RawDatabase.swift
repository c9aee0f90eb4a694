#if LMDB
import CLMDB
import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// A named database inside a transaction, with access to its bytes.
///
/// Returned bytes point into the memory map. They are valid until the transaction writes or ends.
struct RawDatabase {
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

  /// Returns the number of entries in the database.
  func entryCount() throws(LMDBError) -> Int {
    Int(try statistics().ms_entries)
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
  func setValue(_ value: UnsafeRawBufferPointer, forKey key: UnsafeRawBufferPointer) throws(LMDBError) {
    var name = MDB_val(key)
    var data = MDB_val(value)
    try LMDBError.check(mdb_put(transaction, identifier, &name, &data, 0))
  }

  /// Removes a key and its value.
  ///
  /// If the key is missing, this is a no-op.
  func removeValue(forKey key: UnsafeRawBufferPointer) throws(LMDBError) {
    var name = MDB_val(key)
    let code = mdb_del(transaction, identifier, &name, nil)
    if code != MDB_NOTFOUND { try LMDBError.check(code) }
  }

  /// Removes all entries in a range.
  func removeAll(in range: KeyRange) throws {
    guard !range.isEmpty else { return }
    if range.lowerBound.isEmpty && range.upperBound == nil {
      try LMDBError.check(mdb_drop(transaction, identifier, 0))
      return
    }
    let cursor = try RawCursor(self)
    defer { cursor.close() }
    try range.lowerBound.withUnsafeBytes { lower in
      guard let upperBound = range.upperBound else { return try cursor.removeAll(from: lower, upTo: nil) }
      try upperBound.withUnsafeBytes { try cursor.removeAll(from: lower, upTo: $0) }
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

extension RawDatabase {
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
    if range.lowerBound.isEmpty && range.upperBound == nil { return try entryCount() }
    var count = 0
    var scan = try scan(range)
    while try scan.next() != nil {
      count += 1
    }
    return count
  }
}
#endif
