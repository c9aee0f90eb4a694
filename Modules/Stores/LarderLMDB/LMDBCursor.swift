#if LMDB
import CLMDB
public import Larder

/// A cursor over the entries of a store, inside a transaction; see ``LMDBTransaction/withCursor(of:_:)``.
///
/// ```swift
/// try environment.read { transaction in
///   try transaction.withCursor(of: users) { cursor in
///     var isThere = try cursor.move(upTo: "user:")
///     while isThere {
///       cursor.withEntryBytes { key, value in … }
///       isThere = try cursor.moveToNext()
///     }
///   }
/// }
/// ```
public struct LMDBCursor: ~Copyable {
  /// The position of a cursor.
  ///
  /// It is stored outside the cursor. A closure that could mutate the cursor could replace it with another cursor that
  /// lives longer.
  @usableFromInline
  struct Position {
    /// A Boolean value that indicates whether the cursor is on an entry.
    ///
    /// The bytes of the entry, in the memory map, follow.
    @usableFromInline var isOnEntry = false
    @usableFromInline var keyBytes = UnsafeRawBufferPointer(start: nil, count: 0)
    @usableFromInline var valueBytes = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  let cursor: RawCursor
  let store: String

  /// The position, which must outlive the cursor.
  @usableFromInline let position: UnsafeMutablePointer<Position>

  // MARK: Moving

  /// Moves to the first entry.
  ///
  /// - Returns: A Boolean value that indicates whether there is such an entry.
  /// - Throws: `StoreError`: `corrupted` if LMDB finds a damaged page; `ioFailed`.
  public borrowing func moveToFirst() throws -> Bool {
    try stand { cursor throws(LMDBError) in try cursor.move(MDB_FIRST) }
  }

  /// Moves to the last entry.
  ///
  /// - Returns: A Boolean value that indicates whether there is such an entry.
  /// - Throws: `StoreError`: `corrupted` if LMDB finds a damaged page; `ioFailed`.
  public borrowing func moveToLast() throws -> Bool {
    try stand { cursor throws(LMDBError) in try cursor.move(MDB_LAST) }
  }

  /// Moves to the next entry, or to the first entry if the cursor is not on an entry.
  ///
  /// - Returns: A Boolean value that indicates whether there is such an entry.
  /// - Throws: `StoreError`: `corrupted` if LMDB finds a damaged page; `ioFailed`.
  public borrowing func moveToNext() throws -> Bool {
    try stand { cursor throws(LMDBError) in try cursor.move(MDB_NEXT) }
  }

  /// Moves to the previous entry, or to the last entry if the cursor is not on an entry.
  ///
  /// - Returns: A Boolean value that indicates whether there is such an entry.
  /// - Throws: `StoreError`: `corrupted` if LMDB finds a damaged page; `ioFailed`.
  public borrowing func moveToPrevious() throws -> Bool {
    try stand { cursor throws(LMDBError) in try cursor.move(MDB_PREV) }
  }

  /// Moves to the first entry whose key is greater than or equal to a bound.
  ///
  /// ```swift
  /// let oldest = try environment.read { transaction in
  ///   try transaction.withCursor(of: events) { cursor in
  ///     try cursor.move(upTo: "2026-01") ? cursor.key : nil
  ///   }
  /// }
  /// ```
  ///
  /// - Parameter bound: The bound: a key or the beginning of one.
  /// - Returns: A Boolean value that indicates whether there is such an entry.
  /// - Throws: `StoreError`: `corrupted` if LMDB finds a damaged page; `ioFailed`.
  public borrowing func move(upTo bound: StoreKey) throws -> Bool {
    try stand { cursor throws(LMDBError) in
      try bound.withUnsafeBytes { bytes throws(LMDBError) in try cursor.moveUp(to: bytes) }
    }
  }

  /// Moves to the last entry whose key is less than a bound.
  ///
  /// - Parameter bound: The bound: a key or the beginning of one.
  /// - Returns: A Boolean value that indicates whether there is such an entry.
  /// - Throws: `StoreError`: `corrupted` if LMDB finds a damaged page; `ioFailed`.
  public borrowing func move(below bound: StoreKey) throws -> Bool {
    try stand { cursor throws(LMDBError) in
      try bound.withUnsafeBytes { bytes throws(LMDBError) in try cursor.moveDown(to: bytes) }
    }
  }

  /// Moves the cursor and remembers the entry.
  @inline(__always)
  private borrowing func stand(
    on move: (RawCursor) throws(LMDBError) -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)?
  ) throws -> Bool {
    position.pointee.isOnEntry = false
    do throws(LMDBError) {
      guard let entry = try move(cursor) else { return false }
      position.pointee = Position(isOnEntry: true, keyBytes: entry.key, valueBytes: entry.value)
      return true
    } catch {
      throw StoreError(error, during: .entries, store: store, message: "the cursor could not be moved")
    }
  }

  // MARK: Looking

  /// The key of the current entry, or `nil` if the cursor is not on an entry.
  public var key: StoreKey? {
    position.pointee.isOnEntry ? StoreKey(copying: position.pointee.keyBytes) : nil
  }

  /// Calls a closure with the bytes of the current entry in the memory map, without copying them.
  ///
  /// - Parameter body: A closure that receives the bytes of the key and of the encoded value. The bytes cannot escape
  ///   the closure.
  /// - Returns: The result of `body`, or `nil` if the cursor is not on an entry.
  /// - Throws: The error that `body` throws.
  @inlinable
  public borrowing func withEntryBytes<Result, Failure: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard position.pointee.isOnEntry else { return nil }
    return try body(position.pointee.keyBytes.bytes, position.pointee.valueBytes.bytes)
  }
}
#endif
