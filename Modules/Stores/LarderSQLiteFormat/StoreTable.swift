public import Larder

/// The table of a store in a database file: its name, its form, and the statements over it.
///
/// ```swift
/// let table = StoreTable(name: "users", codec: codec)
/// let sql = table.scan(.keys, hasUpperBound: true, order: .ascending)
/// ```
public final class StoreTable: Sendable {
  /// The type of the values in the table.
  public enum ValueType: String, Sendable {
    case blob = "BLOB"
    /// Text, for codecs that write JSON.
    case text = "TEXT"
  }

  /// The end of the name of a view that shows keys as text.
  public static let viewSuffix = "_text"

  /// The name of the table.
  public let name: String

  /// The type of the column with the values.
  public let valueType: ValueType

  /// A Boolean value that indicates whether the table is itself the tree of its keys (`WITHOUT ROWID`).
  public let isClustered: Bool

  /// Reads the value of the key ?1.
  public let valueOfKey: String

  /// Sets the value ?2 of the key ?1.
  public let settingOfValue: String

  /// Removes the key ?1.
  public let removalOfKey: String

  /// The name of the table in a statement, with its schema, because a temporary table of the same name would precede it.
  private let quotedName: String

  /// Describes a table.
  ///
  /// - Parameters:
  ///   - name: The name of the table. It is that of the store.
  ///   - valueType: The type of the column of the values.
  ///   - isClustered: A Boolean value that indicates whether the table is itself the tree of its keys. Defaults to
  ///     `false`.
  public init(name: String, valueType: ValueType, isClustered: Bool = false) {
    self.isClustered = isClustered
    self.name = name
    identifier = Array(StoreTable.folded(name).utf8)
    self.valueType = valueType
    quotedName = "main.\(StoreTable.quoted(name))"
    valueOfKey = "SELECT value FROM \(quotedName) WHERE key = ?1"
    // An update in place keeps the row, so that triggers of the user see a change and not a removal.
    settingOfValue =
      "INSERT INTO \(quotedName)(key, value) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value"
    removalOfKey = "DELETE FROM \(quotedName) WHERE key = ?1"
  }

  /// Describes the table of a new store.
  ///
  /// - Parameters:
  ///   - name: The name of the store.
  ///   - codec: The codec. If it writes JSON, the values are text.
  ///   - isClustered: A Boolean value that indicates whether the table is itself the tree of its keys. Defaults to
  ///     `false`.
  public convenience init(name: String, codec: some Codec, isClustered: Bool = false) {
    self.init(name: name, valueType: codec.format == .json ? .text : .blob, isClustered: isClustered)
  }

  /// The bytes of the name as SQLite compares them.
  ///
  /// They tell the stores of a file apart.
  ///
  /// They are no `String`, because two strings of different bytes can be equal (canonical equivalence).
  public let identifier: [UInt8]

  /// Returns the reason why a name is invalid for a store, or `nil` if it is valid.
  ///
  /// ```swift
  /// if let problem = StoreTable.problem(withName: name) {
  ///   throw StoreError(.invalidArgument, during: .open, store: name, message: problem)
  /// }
  /// ```
  public static func problem(withName name: String) -> String? {
    let folded = folded(name)
    if !(1...StoreKey.maximumLength).contains(name.utf8.count) || name.utf8.contains(0) {
      return "a store name must have 1 to \(StoreKey.maximumLength) bytes without NUL"
    }
    if folded == StoreCatalog.tableName { return "the store name \(name) is reserved" }
    // A table of such a name would hide the function of SQLite that describes tables.
    // By bytes, as SQLite compares. A combining mark after the underscore would hide the prefix from `hasPrefix`.
    for prefix in ["sqlite_", "pragma_"] where folded.utf8.starts(with: prefix.utf8) {
      return "store names that begin with \(prefix) are reserved by SQLite"
    }
    if folded.hasSuffix(viewSuffix) {
      return "store names that end in \(viewSuffix) are reserved for the views that show keys as text"
    }
    return nil
  }

  /// Returns a name with the letters A to Z in lower case, as SQLite compares names.
  public static func folded(_ name: String) -> String {
    String(decoding: name.utf8.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }, as: UTF8.self)
  }

  /// Returns a name as SQL writes an identifier.
  ///
  /// ```swift
  /// try connection.run("DROP VIEW IF EXISTS \(StoreTable.quoted(name))")
  /// ```
  public static func quoted(_ name: String) -> String {
    let doubled = name.utf8.flatMap { $0 == UInt8(ascii: "\"") ? [$0, $0] : [$0] }
    return "\"\(String(decoding: doubled, as: UTF8.self))\""
  }

  /// The statements that create the table and its view.
  public var creation: [String] {
    [
      "CREATE TABLE \(quotedName)(key BLOB NOT NULL PRIMARY KEY, value \(valueType.rawValue) NOT NULL) STRICT"
        + (isClustered ? ", WITHOUT ROWID" : ""),
      // Without a schema in its body, so that it works in a file that is attached under another name.
      "CREATE VIEW main.\(StoreTable.quoted(name + StoreTable.viewSuffix)) AS "
        + "SELECT CAST(key AS TEXT) AS key, value FROM \(StoreTable.quoted(name))",
    ]
  }

  /// The columns that a scan reads.
  public enum Columns: String {
    case keys = "key"
    case entries = "key, value"
  }

  /// Reads columns of a range: from the key ?1, below the key ?2 if there is an upper bound, at most ?3 rows.
  public func scan(_ columns: Columns, hasUpperBound: Bool, order: ScanOrder) -> String {
    "SELECT \(columns.rawValue) FROM \(quotedName) WHERE \(condition(hasUpperBound)) "
      + "ORDER BY key \(order == .ascending ? "ASC" : "DESC") LIMIT ?3"
  }

  /// Counts the keys of a range; see ``scan(_:hasUpperBound:order:)``.
  public func count(hasUpperBound: Bool) -> String {
    "SELECT count(*) FROM \(quotedName) WHERE \(condition(hasUpperBound))"
  }

  /// Removes the keys of a range; see ``scan(_:hasUpperBound:order:)``.
  public func removal(hasUpperBound: Bool) -> String {
    "DELETE FROM \(quotedName) WHERE \(condition(hasUpperBound))"
  }

  /// Counts all rows.
  ///
  /// SQLite counts the pages of the smallest index, without comparing keys.
  public var countOfAll: String { "SELECT count(*) FROM \(quotedName)" }

  /// Removes all rows.
  ///
  /// SQLite then drops whole pages, unless something watches the removed rows.
  public var removalOfAll: String { "DELETE FROM \(quotedName)" }

  private func condition(_ hasUpperBound: Bool) -> String { hasUpperBound ? "key >= ?1 AND key < ?2" : "key >= ?1" }
}
