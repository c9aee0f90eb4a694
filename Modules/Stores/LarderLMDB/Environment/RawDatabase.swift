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

/// A named database inside a transaction: reading and writing bytes.
///
/// What it hands out points into the memory map: it is good until the transaction writes or ends.
struct RawDatabase {
  let transaction: OpaquePointer
  let identifier: MDB_dbi

  // MARK: Reading

  /// The bytes of a value, or `nil` where the key is missing.
  ///
  /// - Parameter key: 1 to 511 bytes.
  @inline(__always)
  func value(forKey key: UnsafeRawBufferPointer) throws(LMDBError) -> UnsafeRawBufferPointer? {
    var name = MDB_val(key)
    var data = MDB_val()
    let code = mdb_get(transaction, identifier, &name, &data)
    if code == MDB_NOTFOUND { return nil }
    try LMDBError.check(code)
    return UnsafeRawBufferPointer(data)
  }

  /// The bytes of a value, or `nil` where the key is missing.
  ///
  /// Apart from the decoding, which is generic: closures that return a generic type are called through tables.
  func value(forKey key: StoreKey) throws(LMDBError) -> UnsafeRawBufferPointer? {
    try key.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) throws(LMDBError) in try value(forKey: bytes) }
  }

  /// The number of all entries.
  func entryCount() throws(LMDBError) -> Int {
    Int(try statistics().ms_entries)
  }

  /// The sizes of the tree.
  func statistics() throws(LMDBError) -> MDB_stat {
    var statistics = MDB_stat()
    try LMDBError.check(mdb_stat(transaction, identifier, &statistics))
    return statistics
  }

  /// Begins a walk over the entries of a range.
  func scan(_ range: KeyRange, order: ScanOrder = .ascending) throws(LMDBError) -> RawScan {
    try RawScan(self, in: range, order: order)
  }

  // MARK: Writing

  /// Puts a value under a key, in place of any other.
  func setValue(_ value: UnsafeRawBufferPointer, forKey key: UnsafeRawBufferPointer) throws(LMDBError) {
    var name = MDB_val(key)
    var data = MDB_val(value)
    try LMDBError.check(mdb_put(transaction, identifier, &name, &data, 0))
  }

  /// Removes a key, where it is there.
  func removeValue(forKey key: UnsafeRawBufferPointer) throws(LMDBError) {
    var name = MDB_val(key)
    let code = mdb_del(transaction, identifier, &name, nil)
    if code != MDB_NOTFOUND { try LMDBError.check(code) }
  }

  /// Removes every key of a range.
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
  /// Points to bytes that LMDB reads and does not write.
  init(_ bytes: UnsafeRawBufferPointer) {
    self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes that LMDB points to.
  @inline(__always)
  init(_ value: MDB_val) {
    self.init(start: value.mv_data, count: value.mv_size)
  }

  /// Returns whether these bytes are the same as others.
  func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count else { return false }
    guard let left = baseAddress, let right = other.baseAddress else { return true }
    return memcmp(left, right, count) == 0
  }

  /// Whether these bytes come before others in the order of keys: byte by byte, unsigned, a prefix first.
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
