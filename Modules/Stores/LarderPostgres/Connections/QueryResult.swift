#if Postgres
import CPostgres
import Larder

/// The rows that a statement returned.
///
/// Unchecked, because the library never changes a result after it has handed it out, and `deinit` runs after the last use.
final class QueryResult: @unchecked Sendable {
  private let result: OpaquePointer

  /// The number of rows.
  let rowCount: Int

  /// Takes over a result of the library.
  init(_ result: OpaquePointer) {
    self.result = result
    rowCount = Int(PQntuples(result))
  }

  deinit {
    PQclear(result)
  }

  /// The number of columns.
  var columnCount: Int { Int(PQnfields(result)) }

  /// The command that was run, such as `COMMIT` or `SELECT 1`.
  var command: String { String(cString: PQcmdStatus(result)) }

  /// The number of rows that a statement wrote.
  var changedRowCount: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

  /// Returns the name of a column.
  func name(ofColumn column: Int) -> String {
    PQfname(result, Int32(column)).map { String(cString: $0) } ?? ""
  }

  /// Returns whether a field is NULL.
  func isNull(_ row: Int, _ column: Int) -> Bool {
    PQgetisnull(result, Int32(row), Int32(column)) == 1
  }

  /// Calls a closure with the bytes of a field, or with `nil` for NULL.
  func withBytes<Result>(
    _ row: Int, _ column: Int, _ body: (UnsafeRawBufferPointer?) throws -> Result
  ) rethrows -> Result {
    guard !isNull(row, column) else { return try body(nil) }
    let bytes = UnsafeRawBufferPointer(
      start: PQgetvalue(result, Int32(row), Int32(column)), count: Int(PQgetlength(result, Int32(row), Int32(column))))
    return try withExtendedLifetime(self) { try body(bytes) }
  }

  /// Returns a copy of the bytes of a field, or `nil` for NULL.
  func bytes(_ row: Int, _ column: Int) -> [UInt8]? {
    withBytes(row, column) { $0.map { Array($0) } }
  }

  /// Returns a field of the type `bytea` as a key, or an empty key for NULL.
  func key(_ row: Int, _ column: Int) -> StoreKey {
    withBytes(row, column) { $0.map { StoreKey(copying: $0) } ?? "" }
  }

  /// Returns a field of the type `text`, or `nil` for NULL.
  func text(_ row: Int, _ column: Int) -> String? {
    withBytes(row, column) { $0.map { String(decoding: $0, as: UTF8.self) } }
  }

  /// Returns a field of the type `int8`, `int4` or `int2`, or `nil` for NULL.
  func integer(_ row: Int, _ column: Int) -> Int64? {
    withBytes(row, column) { bytes in
      guard let bytes, let first = bytes.first, bytes.count <= 8 else { return nil }
      let sign: Int64 = first & 0x80 == 0 ? 0 : -1
      return bytes.reduce(sign) { $0 << 8 | Int64($1) }
    }
  }
}
#endif
