#if Postgres
import Larder

/// An SQL statement with its parameters.
struct Statement: Sendable {
  let sql: String
  var parameters: [Parameter]

  /// Whether it is one of Larder's own statements, which a session prepares once, and whose results are binary.
  ///
  /// Those of a user are not prepared, and their results are text.
  var isPrepared: Bool

  /// The number of bytes of the parameters.
  var size: Int { parameters.reduce(0) { $0 + ($1.bytes?.count ?? 0) } }

  /// Creates one of Larder's own statements.
  init(_ sql: String, _ parameters: Parameter...) {
    self.init(sql, parameters)
  }

  /// Creates a statement.
  init(_ sql: String, _ parameters: [Parameter], isPrepared: Bool = true) {
    self.sql = sql
    self.parameters = parameters
    self.isPrepared = isPrepared
  }
}

/// A lock of a table between Larder's transactions, until the end of the transaction.
///
/// It is an [advisory lock](https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS) of the table's
/// name, so that `VACUUM`, `CREATE INDEX CONCURRENTLY` and other programs neither wait for it nor hold it up.
enum TableLock {
  /// Every write takes it.
  case shared
  /// Excludes all other writes, for one that cannot lock each row that it concerns.
  case exclusive

  /// - Parameter table: The name of the table for SQL.
  func statement(of table: String) -> Statement {
    let name = self == .shared ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock"
    // The number keeps the locks apart from an application's own; it is "larder" in ASCII.
    return Statement("SELECT \(name)(hashtextextended($1, 119165786809714))", .text(table))
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
#endif
