#if Postgres
import CPostgres
import Larder

/// An SQL statement with its parameters.
struct Statement: Sendable {
  let sql: String
  var parameters: [Parameter]

  /// A Boolean value that indicates whether it is one of Larder's own statements, which a session prepares once, and
  /// whose results are binary.
  ///
  /// Those of a user are not prepared, and their results are text.
  var isPrepared: Bool

  /// The number of bytes of the parameters.
  var size: Int { parameters.reduce(0) { $0 + ($1.bytes?.count ?? 0) } }

  /// A Boolean value that indicates whether the bytes should be on their way before those of the next statement are
  /// copied.
  var isLarge: Bool { size > 1 << 20 }

  /// Creates one of Larder's own statements.
  init(_ sql: String, _ parameters: Parameter...) {
    self.init(sql, parameters)
  }

  /// Creates a statement without parameters that is not prepared, such as a command that runs seldom.
  static func command(_ sql: String) -> Statement { Statement(sql, [], isPrepared: false) }

  /// Creates a statement.
  init(_ sql: String, _ parameters: [Parameter], isPrepared: Bool = true) {
    self.sql = sql
    self.parameters = parameters
    self.isPrepared = isPrepared
  }
}

/// A parameter of a statement, in the [binary format](https://www.postgresql.org/docs/current/protocol-overview.html) of
/// its type, or as text of a type that the server infers.
struct Parameter: Sendable {
  /// The identifier of the type in the catalog `pg_type`, or 0 if the server infers it.
  let type: UInt32
  let isText: Bool

  /// The bytes, or `nil` for NULL.
  let bytes: [UInt8]?

  private init(_ type: ParameterType, _ bytes: [UInt8]?) {
    self.type = type.rawValue
    isText = false
    self.bytes = bytes
  }

  private init(inferred bytes: [UInt8]?) {
    type = 0
    isText = true
    self.bytes = bytes
  }

  /// Text, or NULL, of a type that the server infers.
  static func inferred(_ text: String?) -> Parameter {
    // The library wants text that ends with NUL.
    Parameter(inferred: text.map { Array($0.utf8) + [0] })
  }

  static func bytes(_ bytes: [UInt8]?) -> Parameter { Parameter(.bytes, bytes) }
  static func key(_ key: StoreKey) -> Parameter { Parameter(.bytes, key.bytes) }
  /// A value as `bytea`, or as `json` if it is text.
  static func value(_ value: ArraySlice<UInt8>?, isJSON: Bool) -> Parameter {
    Parameter(isJSON ? .json : .bytes, value.map { Array($0) })
  }

  static func text(_ text: String?) -> Parameter { Parameter(.text, text.map { Array($0.utf8) }) }

  static func integer(_ value: Int64?) -> Parameter {
    Parameter(.integer, value.map { BinaryArray.bigEndian($0) })
  }

  /// Keys as `bytea[]`.
  static func keys(_ keys: some Collection<StoreKey>) -> Parameter {
    var array = BinaryArray(of: .bytes, count: keys.count)
    for key in keys { key.withUnsafeBytes { array.append($0) } }
    return Parameter(.bytesArray, array.finished)
  }

  /// Values as `bytea[]`, or as `json[]` if they are text, in which `nil` is NULL.
  static func values(_ values: some Collection<ArraySlice<UInt8>?>, areJSON: Bool = false) -> Parameter {
    var array = BinaryArray(of: areJSON ? .json : .bytes, count: values.count)
    for value in values {
      if let value { value.withUnsafeBytes { array.append($0) } } else { array.append(nil) }
    }
    return Parameter(areJSON ? .jsonArray : .bytesArray, array.finished)
  }

  /// Integers as `int8[]`, in which `nil` is NULL.
  static func integers(_ values: some Collection<Int64?>) -> Parameter {
    var array = BinaryArray(of: .integer, count: values.count)
    for value in values {
      if let value { BinaryArray.bigEndian(value).withUnsafeBytes { array.append($0) } } else { array.append(nil) }
    }
    return Parameter(.integerArray, array.finished)
  }
}

/// The identifiers of types, which are fixed in
/// [PostgreSQL's catalog](https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat).
private enum ParameterType: UInt32 {
  case bytes = 17
  case integer = 20
  case text = 25
  case json = 114
  case jsonArray = 199
  case bytesArray = 1001
  case integerArray = 1016
}

/// An array of one dimension in PostgreSQL's binary format: the number of dimensions, whether it holds NULL, the type of
/// the elements, their number, the first index, and for each element its length and bytes.
private struct BinaryArray {
  private var bytes: [UInt8] = []
  private var hasNull = false

  init(of type: ParameterType, count: Int) {
    // An empty array has no dimension.
    append(count == 0 ? 0 : 1)
    append(0)
    append(Int32(type.rawValue))
    guard count > 0 else { return }
    append(Int32(clamping: count))
    append(1)
  }

  /// The array, with its flag for NULL.
  var finished: [UInt8] {
    var bytes = bytes
    if hasNull { bytes[7] = 1 }
    return bytes
  }

  mutating func append(_ element: UnsafeRawBufferPointer?) {
    guard let element else {
      hasNull = true
      append(-1)
      return
    }
    append(Int32(clamping: element.count))
    bytes += element
  }

  private mutating func append(_ number: Int32) {
    bytes += BinaryArray.bigEndian(number)
  }

  static func bigEndian(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }
}

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

/// Rows of entries, which have the key in the first column and the value in the second one.
extension QueryResult {
  /// The keys, in the order of the rows.
  var keys: [StoreKey] { (0..<rowCount).map { key($0, 0) } }

  /// The numbers of the rows by their keys.
  var rowsByKey: [StoreKey: Int] {
    Dictionary((0..<rowCount).map { (key($0, 0), $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Returns the values of keys, decoded where the number of their bytes allows it.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - decode: A closure that returns the value in a row, or `nil` if the row has none.
  func values<Value: Sendable>(
    forKeys keys: [StoreKey], _ decode: @escaping @Sendable (_ row: Int, _ key: StoreKey) throws -> Value?
  ) async throws -> [Value?] {
    try await BulkWork.run(atMost: rowCount) { allowance in
      let rows = rowsByKey
      return try keys.map { key in
        guard let row = rows[key] else { return nil }
        try allowance.take(withBytes(row, 1) { $0?.count ?? 0 })
        return try decode(row, key)
      }
    }
  }

  /// Returns the entries, decoded where the number of their bytes allows it.
  ///
  /// - Parameter decode: A closure that returns the value in a row, or `nil` if the row has none.
  func entries<Value: Sendable>(
    _ decode: @escaping @Sendable (_ row: Int, _ key: StoreKey) throws -> Value?
  ) async throws -> [StoreEntry<Value>] {
    try await BulkWork.run(atMost: rowCount) { allowance in
      try (0..<rowCount).compactMap { row in
        try allowance.take(withBytes(row, 1) { $0?.count ?? 0 })
        let key = key(row, 0)
        return try decode(row, key).map { StoreEntry(key: key, value: $0) }
      }
    }
  }
}
#endif
