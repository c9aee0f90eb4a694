#if SQLite
import CSQLite
import LarderSQLite

/// A connection to a database that is not Larder's, as another library in the process would have one.
final class OtherConnection {
  private var pointer: OpaquePointer?

  init(_ path: String) async throws {
    let code = sqlite3_open(path, &pointer)
    guard code == SQLITE_OK else { throw SQLiteError(code: code, message: "the connection cannot be opened") }
  }

  func run(_ sql: String) throws {
    let code = sqlite3_exec(pointer, sql, nil, nil, nil)
    guard code == SQLITE_OK else {
      throw SQLiteError(code: code, message: String(cString: sqlite3_errmsg(pointer)))
    }
  }

  func close() {
    sqlite3_close(pointer)
    pointer = nil
  }
}
#endif
