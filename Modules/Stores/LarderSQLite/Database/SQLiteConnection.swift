#if SQLite
import CSQLite
import Foundation
import Larder
import LarderSQLiteFormat

/// A connection to a database file, which one thread at a time uses.
///
/// It is opened without SQLite's own locks (`SQLITE_OPEN_NOMUTEX`).
final class SQLiteConnection: @unchecked Sendable {
  // Proof for @unchecked: SQLite lets a connection move between threads if only one uses it at a time and the library was
  // built for threads, which `SharedDatabase` verifies. The writer is an actor and keeps its connection to itself;
  // `ReaderPool` gives a connection to one reader at a time, under a lock.

  /// The maximum number of prepared statements that are kept.
  ///
  /// A statement takes some 3 KB, and a database may have any number of stores.
  private static let statementCapacity = 256

  let pointer: OpaquePointer

  /// The prepared statements, by their text.
  private var statements: [StatementText: SQLiteStatement] = [:]

  /// The text of a statement, which is compared by its bytes, as SQLite does.
  ///
  /// Two strings are equal even if one has composed and the other has decomposed letters, which name two tables.
  private struct StatementText: Hashable {
    let sql: String

    static func == (one: StatementText, other: StatementText) -> Bool {
      one.sql.withUTF8Bytes { one in
        other.sql.withUTF8Bytes { other in
          guard one.count == other.count else { return false }
          guard let first = one.baseAddress, let second = other.baseAddress else { return true }
          return memcmp(first, second, one.count) == 0
        }
      }
    }

    func hash(into hasher: inout Hasher) {
      sql.withUTF8Bytes { hasher.combine(bytes: $0) }
    }
  }

  /// The commits of a connection to the log.
  private struct LogState {
    /// The number of frames in the log after the latest commit.
    var frameCount: Int32 = 0
    /// The number of commits that have written frames.
    var commitCount = 0
  }

  /// The commits of this connection, in a place that does not move.
  private let log: UnsafeMutablePointer<LogState>

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - path: The path, or a URI if `flags` has `SQLITE_OPEN_URI`.
  ///   - flags: The flags of `sqlite3_open_v2`, beside those for extended codes and against locks.
  ///   - fileSystem: The name of SQLite's interface to the files. Defaults to `nil`, for the usual one.
  /// - Throws: `SQLiteError`.
  init(path: String, flags: Int32, fileSystem: String? = nil) throws(SQLiteError) {
    var opened: OpaquePointer?
    let code = sqlite3_open_v2(path, &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, fileSystem)
    guard code == SQLITE_OK, let pointer = opened else {
      let error = opened.map { SQLiteError(code: code, on: $0) }
      // A connection that failed to open must be closed too.
      sqlite3_close_v2(opened)
      throw error ?? SQLiteError(code: code)
    }
    self.pointer = pointer
    log = .allocate(capacity: 1)
    log.initialize(to: LogState())
    // In place of the checkpoints that SQLite would make inside a commit.
    sqlite3_wal_hook(
      pointer,
      { context, _, _, count in
        if let log = context?.assumingMemoryBound(to: LogState.self) {
          log.pointee.frameCount = count
          log.pointee.commitCount += 1
        }
        return SQLITE_OK
      }, log)
  }

  deinit {
    statements = [:]
    sqlite3_close_v2(pointer)
    log.deallocate()
  }

  /// The error of the latest call that failed.
  func latestError(_ code: Int32) -> SQLiteError { SQLiteError(code: code, on: pointer) }

  /// Sets the time that a statement waits for the lock of another connection.
  ///
  /// It is 0 at first.
  ///
  /// - Parameter milliseconds: The time in milliseconds.
  func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(pointer, milliseconds) }

  /// Runs a closure with the prepared statement of a text, which is prepared at its first use and kept.
  ///
  /// Uses may be nested, also with the same text.
  ///
  /// - Throws: `SQLiteError`; the error that `body` throws.
  @inline(__always)
  func withStatement<Result>(_ sql: String, _ body: (SQLiteStatement) throws -> Result) throws -> Result {
    let statement = try idleStatement(sql)
    statement.isInUse = true
    defer {
      statement.reset()
      statement.isInUse = false
    }
    return try body(statement)
  }

  /// Returns a statement that is not in use.
  private func idleStatement(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    let text = StatementText(sql: sql)
    let kept = statements[text]
    if let kept, !kept.isInUse { return kept }
    let statement = try SQLiteStatement(sql, on: pointer)
    if kept == nil {
      if statements.count >= SQLiteConnection.statementCapacity { statements = [:] }
      statements[text] = statement
    }
    return statement
  }

  /// Returns the integer in the first column of the first row.
  ///
  /// - Throws: `SQLiteError`.
  func integer(_ sql: String) throws -> Int64 {
    try withStatement(sql) { try $0.step() ? $0.integer(at: 0) : 0 }
  }

  /// Runs a closure in a transaction that only reads, so all its statements see one state.
  ///
  /// - Throws: `SQLiteError`; the error that `body` throws.
  func reading<Result>(_ body: () throws -> Result) throws -> Result {
    try withStatement("BEGIN") { _ = try $0.step() }
    // If it fails, the transaction stays open, and `ReaderPool` does not keep the connection.
    defer { try? run("ROLLBACK") }
    return try body()
  }

  /// A Boolean value that indicates whether a transaction is open.
  ///
  /// Some errors, such as a full disk, end the transaction by themselves.
  var isInTransaction: Bool { sqlite3_get_autocommit(pointer) == 0 }

  /// The number of frames in the log after the latest commit of this connection.
  var logFrameCount: Int { Int(log.pointee.frameCount) }

  /// The number of commits of this connection that have written to the log.
  ///
  /// A commit of rows that are equal to those before writes nothing.
  var logCommitCount: Int { log.pointee.commitCount }

  /// Moves commits from the log into the database file.
  ///
  /// - Parameter mode: A mode of `sqlite3_wal_checkpoint_v2`.
  /// - Returns: The error, with `SQLITE_BUSY` if a reader or a writer needs the log, or `nil`.
  func moveLog(_ mode: Int32) -> SQLiteError? {
    let code = sqlite3_wal_checkpoint_v2(pointer, "main", mode, nil, nil)
    return code == SQLITE_OK ? nil : latestError(code)
  }

  /// A number that changes when another connection has committed.
  ///
  /// Commits of this connection leave it.
  ///
  /// - Throws: `SQLiteError`.
  func dataVersion() throws -> Int64 { try integer("PRAGMA data_version") }
}

extension SQLiteConnection: SQLConnection {
  func run(_ sql: String) throws(SQLiteError) {
    let code = sqlite3_exec(pointer, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw latestError(code) }
  }

  func rows(_ sql: String, _ arguments: String...) throws -> [[String]] {
    try withStatement(sql) { statement in
      for (text, index) in zip(arguments, Int32(1)...) { try statement.bind(text, at: index) }
      var rows: [[String]] = []
      while try statement.step() {
        rows.append(
          try (0..<statement.columnCount).map { String(decoding: try statement.bytes(at: $0), as: UTF8.self) })
      }
      return rows
    }
  }
}

/// A prepared statement of a connection, which one thread at a time uses.
final class SQLiteStatement {
  private let connection: OpaquePointer
  private let pointer: OpaquePointer

  /// A Boolean value that indicates whether a caller is between the first step and the reset.
  fileprivate var isInUse = false

  fileprivate init(_ sql: String, on connection: OpaquePointer) throws(SQLiteError) {
    var prepared: OpaquePointer?
    let code = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let pointer = prepared else {
      throw SQLiteError(code: code, on: connection)
    }
    self.connection = connection
    self.pointer = pointer
  }

  deinit {
    sqlite3_finalize(pointer)
  }

  /// Binds bytes, which must stay in place until the statement is reset.
  ///
  /// - Parameters:
  ///   - bytes: The bytes.
  ///   - index: The number of the parameter, from 1.
  ///   - isText: A Boolean value that indicates whether the bytes are bound as text, which must be valid UTF-8, instead
  ///     of as a blob.
  /// - Throws: `SQLiteError`.
  func bind(_ bytes: UnsafeRawBufferPointer, at index: Int32, isText: Bool = false) throws(SQLiteError) {
    // A null pointer would bind NULL.
    guard let address = bytes.baseAddress, !bytes.isEmpty else {
      return try check(
        isText ? sqlite3_bind_text(pointer, index, "", 0, nil) : sqlite3_bind_zeroblob(pointer, index, 0))
    }
    // No destructor: SQLite does not copy the bytes (`SQLITE_STATIC`).
    try check(
      isText
        ? sqlite3_bind_text64(
          pointer, index, address.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), nil, UInt8(SQLITE_UTF8))
        : sqlite3_bind_blob64(pointer, index, address, UInt64(bytes.count), nil))
  }

  /// Binds text, which SQLite copies.
  ///
  /// - Throws: `SQLiteError`.
  func bind(_ text: String, at index: Int32) throws(SQLiteError) {
    // `SQLITE_TRANSIENT`, a macro that Swift does not import.
    let copies = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    try check(sqlite3_bind_text64(pointer, index, text, UInt64(text.utf8.count), copies, UInt8(SQLITE_UTF8)))
  }

  /// Binds an integer.
  ///
  /// - Throws: `SQLiteError`.
  func bind(_ value: Int64, at index: Int32) throws(SQLiteError) {
    try check(sqlite3_bind_int64(pointer, index, value))
  }

  /// Moves to the next row.
  ///
  /// - Returns: A Boolean value that indicates whether there is one.
  /// - Throws: `SQLiteError`.
  @inline(__always)
  func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(pointer) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw SQLiteError(code: code, on: connection)
    }
  }

  /// Ends the statement, so it holds no snapshot and no lock, and can be bound again.
  func reset() {
    // The result is the error of the last step, which was reported.
    sqlite3_reset(pointer)
    // Without this, the statement would keep addresses of bytes that are gone.
    sqlite3_clear_bindings(pointer)
  }

  /// The number of columns of a row.
  var columnCount: Int32 { sqlite3_column_count(pointer) }

  /// Returns the bytes of a column of the row, a blob or text.
  ///
  /// They are valid until the next step.
  ///
  /// - Parameter column: The number of the column, from 0.
  /// - Returns: The bytes; text is in UTF-8, whatever the encoding of the file. They are empty for NULL.
  /// - Throws: `SQLiteError` if memory is short.
  @inline(__always)
  func bytes(at column: Int32) throws(SQLiteError) -> UnsafeRawBufferPointer {
    // As a blob, text would have the encoding of the file, which may be UTF-16. The address is asked for before the
    // count, because it converts the text.
    let address =
      sqlite3_column_type(pointer, column) == SQLITE_BLOB
      ? sqlite3_column_blob(pointer, column) : UnsafeRawPointer(sqlite3_column_text(pointer, column))
    let count = Int(sqlite3_column_bytes(pointer, column))
    guard let address else {
      // An empty blob has no address either.
      if sqlite3_errcode(connection) & 0xFF == SQLITE_NOMEM { throw SQLiteError(code: SQLITE_NOMEM) }
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return UnsafeRawBufferPointer(start: address, count: count)
  }

  /// The number of rows that the statement has inserted, changed or removed in its last run, without those of triggers.
  var changedRowCount: Int32 { sqlite3_changes(connection) }

  /// Returns the integer in a column of the row.
  func integer(at column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

  private func check(_ code: Int32) throws(SQLiteError) {
    guard code == SQLITE_OK else { throw SQLiteError(code: code, on: connection) }
  }
}

extension String {
  /// Calls a closure with the bytes in UTF-8, without a copy for a native string.
  @inline(__always)
  fileprivate func withUTF8Bytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if let result = utf8.withContiguousStorageIfAvailable({ body(UnsafeRawBufferPointer($0)) }) { return result }
    return Array(utf8).withUnsafeBytes(body)
  }
}
#endif
