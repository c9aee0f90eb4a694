#if LMDB
internal import CLMDB
public import Larder

/// A place in a store, inside a transaction; see ``LMDBTransaction/withCursor(of:_:)``.
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
  /// Where a cursor stands: beside it, since a closure that could change the cursor itself could exchange it for another,
  /// which lives longer.
  @usableFromInline
  struct Place {
    /// Whether the cursor stands on an entry, and its bytes in the memory map.
    @usableFromInline var isOnEntry = false
    @usableFromInline var keyBytes = UnsafeRawBufferPointer(start: nil, count: 0)
    @usableFromInline var valueBytes = UnsafeRawBufferPointer(start: nil, count: 0)
  }

  private let cursor: RawCursor
  private let store: String
  @usableFromInline let place: UnsafeMutablePointer<Place>

  /// - Parameter place: It outlives the cursor.
  init(cursor: RawCursor, store: String, place: UnsafeMutablePointer<Place>) {
    self.cursor = cursor
    self.store = store
    self.place = place
  }

  // MARK: Moving

  /// Moves to the lowest key.
  ///
  /// - Returns: Whether there is one.
  /// - Throws: ``StoreError`` with `ioFailed`.
  public borrowing func moveToFirst() throws -> Bool {
    try move(MDB_FIRST)
  }

  /// Moves to the highest key.
  ///
  /// - Returns: Whether there is one.
  /// - Throws: ``StoreError`` with `ioFailed`.
  public borrowing func moveToLast() throws -> Bool {
    try move(MDB_LAST)
  }

  /// Moves to the next higher key; from nowhere, to the lowest.
  ///
  /// - Returns: Whether there is one.
  /// - Throws: ``StoreError`` with `ioFailed`.
  public borrowing func moveToNext() throws -> Bool {
    try move(MDB_NEXT)
  }

  /// Moves to the next lower key; from nowhere, to the highest.
  ///
  /// - Returns: Whether there is one.
  /// - Throws: ``StoreError`` with `ioFailed`.
  public borrowing func moveToPrevious() throws -> Bool {
    try move(MDB_PREV)
  }

  /// Moves to the lowest key that is not below a bound.
  ///
  /// - Parameter bound: The bound; a key or the beginning of one.
  /// - Returns: Whether there is one.
  /// - Throws: ``StoreError`` with `ioFailed`.
  public borrowing func move(upTo bound: StoreKey) throws -> Bool {
    do throws(LMDBError) {
      return stand(on: try bound.withUnsafeBytes { bytes throws(LMDBError) in try cursor.moveUp(to: bytes) })
    } catch {
      throw failure(error)
    }
  }

  /// Moves to the highest key that is below a bound.
  ///
  /// - Parameter bound: The bound; a key or the beginning of one.
  /// - Returns: Whether there is one.
  /// - Throws: ``StoreError`` with `ioFailed`.
  public borrowing func move(below bound: StoreKey) throws -> Bool {
    do throws(LMDBError) {
      return stand(on: try bound.withUnsafeBytes { bytes throws(LMDBError) in try cursor.moveDown(to: bytes) })
    } catch {
      throw failure(error)
    }
  }

  @inline(__always)
  private borrowing func move(_ operation: MDB_cursor_op) throws -> Bool {
    do throws(LMDBError) {
      return stand(on: try cursor.move(operation))
    } catch {
      throw failure(error)
    }
  }

  @inline(__always)
  private borrowing func stand(on entry: (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)?) -> Bool {
    guard let entry else {
      place.pointee.isOnEntry = false
      return false
    }
    place.pointee = Place(isOnEntry: true, keyBytes: entry.key, valueBytes: entry.value)
    return true
  }

  private borrowing func failure(_ error: LMDBError) -> StoreError {
    place.pointee.isOnEntry = false
    return StoreError(error, during: .entries, store: store, message: "the cursor could not be moved")
  }

  // MARK: Looking

  /// The key that the cursor stands on, or `nil` where it stands nowhere.
  public var key: StoreKey? {
    place.pointee.isOnEntry ? StoreKey(copying: place.pointee.keyBytes) : nil
  }

  /// Shows the bytes of the entry that the cursor stands on where they are, without copying them.
  ///
  /// - Parameter body: Gets the bytes of the key and of the value, as the codec made them. They cannot leave it.
  /// - Returns: What `body` returns, or `nil` where the cursor stands nowhere.
  /// - Throws: What `body` throws.
  @inlinable
  public borrowing func withEntryBytes<Result, Failure: Error>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard place.pointee.isOnEntry else { return nil }
    return try body(place.pointee.keyBytes.bytes, place.pointee.valueBytes.bytes)
  }
}
#endif
