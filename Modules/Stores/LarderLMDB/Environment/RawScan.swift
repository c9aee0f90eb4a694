#if LMDB
import CLMDB
import Larder

/// A walk over the entries of a range, in order.
///
/// It is a loop's own variable, without closures: so the compiler sees the whole of a loop that makes values of a generic
/// type, and looks for the type once and not for each entry.
struct RawScan: ~Copyable {
  private let cursor: RawCursor
  private let order: ScanOrder
  private let range: KeyRange
  /// The bytes of the bound at which the walk ends, the upper or, downwards, the lower one; empty for none.
  private let end: [UInt8]
  private var isAtStart = true

  /// Begins a walk, in a transaction that outlives it.
  init(_ database: RawDatabase, in range: KeyRange, order: ScanOrder) throws(LMDBError) {
    cursor = try RawCursor(database)
    self.order = order
    self.range = range
    end = order == .ascending ? range.upperBound?.bytes ?? [] : range.lowerBound.bytes
  }

  deinit {
    cursor.close()
  }

  /// The next entry, or `nil` behind the last.
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
    // One whose upper bound is the empty key has no end to stop at.
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
