#if SQLite
import CSQLite
import Larder

/// The kind of the table of a new ``SQLiteStore``.
public enum SQLiteTableLayout: Sendable, Hashable, CaseIterable {
  /// An ordinary table with an index of its keys, for values of any size.
  case ordinary

  /// A table that is itself the tree of its keys (`WITHOUT ROWID`), for values below some 500 bytes.
  ///
  /// Small values are then read faster, above all in a scan of keys that were inserted in random order. Large values
  /// make the file several times as large and slow down reads, writes and counts.
  case clustered
}

/// The table of a store in a database file: its name, its form, and the statements over it.
final class StoreTable: Sendable {
  /// The type of the values in the table.
  enum ValueType: String, Sendable {
    case blob = "BLOB"
    /// Text, for codecs that write JSON.
    case text = "TEXT"
  }

  /// The end of the name of a view that shows keys as text.
  static let viewSuffix = "_text"

  let name: String
  let valueType: ValueType

  /// Reads the value of the key ?1.
  let valueOfKey: String

  /// Sets the value ?2 of the key ?1.
  let settingOfValue: String

  /// Removes the key ?1.
  let removalOfKey: String

  private let quotedName: String

  init(name: String, valueType: ValueType) {
    self.name = name
    self.valueType = valueType
    quotedName = StoreTable.quoted(name)
    valueOfKey = "SELECT value FROM \(quotedName) WHERE key = ?1"
    // An update in place keeps the row, so that triggers of the user see a change and not a removal.
    settingOfValue =
      "INSERT INTO \(quotedName)(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
    removalOfKey = "DELETE FROM \(quotedName) WHERE key = ?1"
  }

  /// The name of the table as SQLite compares it, which tells the stores of a file apart.
  var identifier: String { StoreTable.folded(name) }

  /// Returns why a name cannot be that of a store, or `nil` if it can.
  static func problem(withName name: String) -> String? {
    let folded = folded(name)
    if !(1...StoreKey.maximumLength).contains(name.utf8.count) || name.utf8.contains(0) {
      return "a store name must have 1 to \(StoreKey.maximumLength) bytes without NUL"
    }
    if folded == StoreCatalog.tableName { return "the store name \(name) is reserved" }
    if folded.hasPrefix("sqlite_") { return "store names that begin with sqlite_ are reserved by SQLite" }
    if folded.hasSuffix(viewSuffix) {
      return "store names that end in \(viewSuffix) are reserved for the views that show keys as text"
    }
    return nil
  }

  /// Returns a name with the letters A to Z in lower case, as SQLite compares names.
  static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }, as: UTF8.self)
  }

  /// Returns a name as SQL writes an identifier.
  static func quoted(_ name: String) -> String {
    let doubled = name.utf8.flatMap { $0 == UInt8(ascii: "\"") ? [$0, $0] : [$0] }
    return "\"\(String(decoding: doubled, as: UTF8.self))\""
  }

  /// Returns the statements that create the table and its view.
  func creation(_ layout: SQLiteTableLayout) -> [String] {
    let options =
      switch layout {
      case .ordinary: "STRICT"
      case .clustered: "STRICT, WITHOUT ROWID"
      }
    return [
      "CREATE TABLE \(quotedName)(key BLOB NOT NULL PRIMARY KEY, value \(valueType.rawValue) NOT NULL) \(options)",
      "CREATE VIEW \(StoreTable.quoted(name + StoreTable.viewSuffix)) AS "
        + "SELECT CAST(key AS TEXT) AS key, value FROM \(quotedName)",
    ]
  }

  /// The columns that a scan reads.
  enum Columns: String {
    case keys = "key"
    case entries = "key, value"
  }

  /// Reads columns of a range: from the key ?1, below the key ?2 if there is an upper bound, at most ?3 rows.
  func scan(_ columns: Columns, hasUpperBound: Bool, order: ScanOrder) -> String {
    "SELECT \(columns.rawValue) FROM \(quotedName) WHERE \(condition(hasUpperBound)) "
      + "ORDER BY key \(order == .ascending ? "ASC" : "DESC") LIMIT ?3"
  }

  /// Counts the keys of a range; see ``scan(_:hasUpperBound:order:)``.
  func count(hasUpperBound: Bool) -> String {
    "SELECT count(*) FROM \(quotedName) WHERE \(condition(hasUpperBound))"
  }

  /// Removes the keys of a range; see ``scan(_:hasUpperBound:order:)``.
  func removal(hasUpperBound: Bool) -> String {
    "DELETE FROM \(quotedName) WHERE \(condition(hasUpperBound))"
  }

  /// Counts all rows.
  ///
  /// SQLite counts the pages of the smallest index, without comparing keys.
  var countOfAll: String { "SELECT count(*) FROM \(quotedName)" }

  /// Removes all rows.
  ///
  /// SQLite then drops whole pages.
  var removalOfAll: String { "DELETE FROM \(quotedName)" }

  private func condition(_ hasUpperBound: Bool) -> String { hasUpperBound ? "key >= ?1 AND key < ?2" : "key >= ?1" }
}

/// The table of a store on a connection.
struct RawTable {
  let connection: SQLiteConnection
  let table: StoreTable

  /// Calls a closure with the bytes of a value, or `nil` if the key is missing.
  ///
  /// The bytes are valid until the closure returns.
  ///
  /// - Throws: `SQLiteError`; the error that `body` throws.
  @inline(__always)
  func withValue<Result>(
    forKey key: StoreKey, _ body: (UnsafeRawBufferPointer?) throws -> Result
  ) throws -> Result {
    try connection.withStatement(table.valueOfKey) { statement in
      try key.withUnsafeBytes { key in
        try statement.bind(key, at: 1)
        return try body(statement.step() ? statement.bytes(at: 0) : nil)
      }
    }
  }

  /// Calls a closure with the columns of each row of a range.
  ///
  /// - Throws: `SQLiteError`; the error that `body` throws.
  func scan(
    _ columns: StoreTable.Columns, in range: KeyRange, limit: Int, order: ScanOrder,
    _ body: (SQLiteStatement) throws -> Void
  ) throws {
    guard limit > 0 else { return }
    let sql = table.scan(columns, hasUpperBound: range.upperBound != nil, order: order)
    try connection.withStatement(sql) { statement in
      try binding(range, to: statement) {
        try statement.bind(Int64(limit), at: 3)
        while try statement.step() { try body(statement) }
      }
    }
  }

  /// Returns the first keys of a range.
  ///
  /// - Throws: `SQLiteError`.
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    var keys: [StoreKey] = []
    try scan(.keys, in: range, limit: limit, order: order) { keys.append(StoreKey(copying: try $0.bytes(at: 0))) }
    return keys
  }

  /// Returns the number of rows in a range.
  ///
  /// - Throws: `SQLiteError`.
  func count(in range: KeyRange) throws -> Int {
    if range == .all { return Int(try connection.integer(table.countOfAll)) }
    return try connection.withStatement(table.count(hasUpperBound: range.upperBound != nil)) { statement in
      try binding(range, to: statement) { try statement.step() ? Int(statement.integer(at: 0)) : 0 }
    }
  }

  /// Sets the value of a key.
  ///
  /// - Throws: `SQLiteError`.
  func setValue(_ value: UnsafeRawBufferPointer, forKey key: StoreKey) throws {
    try connection.withStatement(table.settingOfValue) { statement in
      try set(value, forKey: key, with: statement)
    }
  }

  /// Removes a key and its value, if it is there.
  ///
  /// - Throws: `SQLiteError`.
  func removeValue(forKey key: StoreKey) throws {
    try connection.withStatement(table.removalOfKey) { try remove(key, with: $0) }
  }

  /// Removes the rows of a range.
  ///
  /// - Throws: `SQLiteError`.
  func removeAll(in range: KeyRange) throws {
    if range == .all {
      return try connection.withStatement(table.removalOfAll) { _ = try $0.step() }
    }
    try connection.withStatement(table.removal(hasUpperBound: range.upperBound != nil)) { statement in
      try binding(range, to: statement) { _ = try statement.step() }
    }
  }

  /// Writes the changes of a batch.
  ///
  /// - Throws: `SQLiteError`.
  func write(_ changes: EncodedChanges) throws {
    for step in changes.steps {
      switch step {
      case .removeAll(let range):
        try removeAll(in: range)
      case .items(let items):
        try connection.withStatement(table.settingOfValue) { setting in
          try connection.withStatement(table.removalOfKey) { removal in
            for item in items {
              guard let location = item.value else {
                try remove(item.key, with: removal)
                continue
              }
              try changes.bytes[location.part].withUnsafeBytes {
                try set(UnsafeRawBufferPointer(rebasing: $0[location.range]), forKey: item.key, with: setting)
              }
            }
          }
        }
      }
    }
  }

  private func set(
    _ value: UnsafeRawBufferPointer, forKey key: StoreKey, with statement: SQLiteStatement
  ) throws {
    try key.withUnsafeBytes { key in
      try statement.bind(key, at: 1)
      try statement.bind(value, at: 2, isText: table.valueType == .text)
      _ = try statement.step()
      statement.reset()
    }
  }

  private func remove(_ key: StoreKey, with statement: SQLiteStatement) throws {
    try key.withUnsafeBytes { key in
      try statement.bind(key, at: 1)
      _ = try statement.step()
      statement.reset()
    }
  }

  private func binding<Result>(
    _ range: KeyRange, to statement: SQLiteStatement, _ body: () throws -> Result
  ) throws -> Result {
    try range.lowerBound.withUnsafeBytes { lowerBound in
      try statement.bind(lowerBound, at: 1)
      guard let upperBound = range.upperBound else { return try body() }
      return try upperBound.withUnsafeBytes {
        try statement.bind($0, at: 2)
        return try body()
      }
    }
  }
}
#endif
