import LarderLMDB
import RawLMDB

/// An LMDB environment as in a C program, for one thread at a time.
final class RawEnvironment: @unchecked Sendable {
  // Proof for @unchecked: a workload runs its rounds one after another and does not share the environment.
  private let pointer: OpaquePointer

  /// Creates an environment in a new folder.
  init(_ folder: String) throws {
    var pointer: OpaquePointer?
    try RawEnvironment.check(raw_lmdb_open(folder, &pointer))
    guard let pointer else { throw LMDBError(code: -1) }
    self.pointer = pointer
  }

  deinit {
    raw_lmdb_close(pointer)
  }

  /// Puts a value under several keys, in one transaction.
  func put(_ keys: FixedSizeKeys, value: [UInt8]) throws {
    try RawEnvironment.check(raw_lmdb_put(pointer, keys.bytes, keys.size, keys.count, value, value.count))
  }

  /// Reads keys, each in a transaction of its own, and copies the values.
  func getCopies(_ keys: FixedSizeKeys) throws -> UInt64 {
    var sum: UInt64 = 0
    try RawEnvironment.check(raw_lmdb_get_copies(pointer, keys.bytes, keys.size, keys.count, &sum))
    return sum
  }

  /// Reads keys in one transaction, without copying the values.
  func getInPlace(_ keys: FixedSizeKeys) throws -> UInt64 {
    var sum: UInt64 = 0
    try RawEnvironment.check(raw_lmdb_get_in_place(pointer, keys.bytes, keys.size, keys.count, &sum))
    return sum
  }

  /// Reads all entries, and copies each key and value into memory of its own.
  func scanCopies() throws -> UInt64 {
    var sum: UInt64 = 0
    try RawEnvironment.check(raw_lmdb_scan_copies(pointer, &sum))
    return sum
  }

  /// Reads all entries, and copies each key and value into one buffer.
  func scanIntoBuffer() throws -> UInt64 {
    var sum: UInt64 = 0
    try RawEnvironment.check(raw_lmdb_scan_into_buffer(pointer, &sum))
    return sum
  }

  private static func check(_ code: Int32) throws {
    if code != 0 { throw LMDBError(code: code) }
  }
}
