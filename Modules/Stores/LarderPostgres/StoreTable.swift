#if Postgres
import Larder

/// The table of a store, and the statements that read and write it.
///
/// A row whose value is NULL is no entry: an update makes one to lock a key that is missing.
struct StoreTable: Sendable {
  /// The type of the column of values.
  enum ValueType: String, Sendable, CaseIterable {
    case bytes = "bytea"

    /// JSON exactly as it was written. The type `jsonb` would refuse `\u0000` and change numbers.
    case json

    /// The identifier of the type in PostgreSQL's catalog.
    var identifier: Int64 {
      switch self {
      case .bytes: 17
      case .json: 114
      }
    }
  }

  /// The number of bytes of parameters of one statement, above which a batch is written by several.
  private static let statementSize = 16 << 20

  let name: String
  let valueType: ValueType

  /// The name with its schema for SQL.
  let quotedName: String

  /// The change feed, if every write records its changes there, as the record of the store says.
  var feed: FeedTable?

  /// A Boolean value that indicates whether the changes of all hosts are reported.
  var reportsChanges: Bool { feed != nil }

  /// Creates the table of a name.
  init(name: String, schema: String, valueType: ValueType) {
    self.name = name
    self.valueType = valueType
    quotedName = "\(schema).\(SessionConfiguration.quoted(name))"
  }

  // MARK: Reading

  func value(forKey key: StoreKey) -> Statement {
    Statement("SELECT value FROM \(quotedName) WHERE key = $1", .key(key))
  }

  func values(forKeys keys: [StoreKey]) -> Statement {
    Statement("SELECT key, value FROM \(quotedName) WHERE key = ANY($1) AND value IS NOT NULL", .keys(keys))
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) -> Statement {
    scan("key, value", in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> Statement {
    scan("key", in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) -> Statement {
    let (condition, bounds) = StoreTable.condition(range)
    return Statement("SELECT count(*) FROM \(quotedName) WHERE \(condition) AND value IS NOT NULL", bounds)
  }

  private func scan(_ columns: String, in range: KeyRange, limit: Int, order: ScanOrder) -> Statement {
    let (condition, bounds) = StoreTable.condition(range)
    let direction = order == .ascending ? "ASC" : "DESC"
    return Statement(
      """
      SELECT \(columns) FROM \(quotedName) WHERE \(condition) AND value IS NOT NULL
      ORDER BY key \(direction) LIMIT $\(bounds.count + 1)
      """, bounds + [.integer(Int64(limit))])
  }

  /// Returns the condition that a key is in a range, and its parameters, which begin with the number `first`.
  static func condition(_ range: KeyRange, from first: Int = 1) -> (sql: String, bounds: [Parameter]) {
    guard let upperBound = range.upperBound else { return ("key >= $\(first)", [.key(range.lowerBound)]) }
    return ("key >= $\(first) AND key < $\(first + 1)", [.key(range.lowerBound), .key(upperBound)])
  }

  // MARK: Writing

  /// Returns statements of a transaction, the last of which also records its changes if the store reports them.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - origin: The number of the writer; see ``ChangeFeed/origin``.
  ///   - statements: The statements, of which there is at least one.
  func recording(_ changes: BoundedChanges, from origin: Int64, in statements: [Statement]) -> [Statement] {
    guard let feed, let last = statements.last, !changes.changes.isEmpty else { return statements }
    return statements.dropLast() + [feed.recording(changes, of: name, from: origin, in: last)]
  }

  /// Locks keys in key order, whether they exist or not.
  ///
  /// Rows that exist are locked and not written. Keys that are missing get a row without a value, which is invisible to others,
  /// and which makes others who want the key wait. `SELECT … FOR UPDATE` would lock nothing where a key is missing.
  func claim(_ keys: [StoreKey]) -> Statement {
    Statement(
      """
      INSERT INTO \(quotedName)(key) SELECT k FROM unnest($1::bytea[]) AS k ORDER BY k
      ON CONFLICT (key) DO UPDATE SET value = NULL WHERE false
      """, .keys(keys))
  }

  /// Sets and removes keys that are already locked.
  func change(setting keys: [StoreKey], to values: [ArraySlice<UInt8>], removing removed: [StoreKey]) -> [Statement] {
    var statements = StoreTable.parts(ofSizes: zip(keys, values).map { $0.count + $1.count }).map { part in
      set(Array(keys[part]), to: Array(values[part]))
    }
    if !removed.isEmpty {
      statements.append(Statement("DELETE FROM \(quotedName) WHERE key = ANY($1)", .keys(removed)))
    }
    return statements
  }

  /// Returns the statements for the changes of a batch.
  ///
  /// Each statement locks its rows in key order, so batches with the same keys don't deadlock.
  func write(_ changes: EncodedChanges) -> [Statement] {
    changes.steps.flatMap { step -> [Statement] in
      switch step {
      case .removeAll(let range):
        let (condition, bounds) = StoreTable.condition(range)
        return [Statement("DELETE FROM \(quotedName) WHERE \(condition)", bounds)]
      case .items(let items):
        let sizes = items.map { $0.key.count + ($0.value?.range.count ?? 0) }
        return StoreTable.parts(ofSizes: sizes).flatMap { part in
          write(items[part].map { item in (item.key, item.value.map { changes.bytes[$0.part][$0.range] }) })
        }
      }
    }
  }

  /// Splits changes so that the parameters of a statement have at most ``statementSize`` bytes, or those of one change.
  ///
  /// - Parameters:
  ///   - sizes: The size of the key and the value of each change, in bytes.
  ///   - limit: The size of the parameters. Defaults to ``statementSize``.
  /// - Returns: The ranges of the changes of each statement.
  static func parts(ofSizes sizes: [Int], atMost limit: Int = statementSize) -> [Range<Int>] {
    var parts: [Range<Int>] = []
    var (start, size) = (0, 0)
    for (index, ownSize) in sizes.enumerated() {
      // Each key and each value has its length before it.
      let itemSize = ownSize + 8
      if size + itemSize > limit, index > start {
        parts.append(start..<index)
        (start, size) = (index, 0)
      }
      size += itemSize
    }
    if start < sizes.count { parts.append(start..<sizes.count) }
    return parts
  }

  private func write(_ changes: [(key: StoreKey, value: ArraySlice<UInt8>?)]) -> [Statement] {
    let removed = changes.filter { $0.value == nil }.map(\.key)
    if removed.isEmpty { return [set(changes.map(\.key), to: changes.map(\.value))] }
    // A removal alone needs no other key to be locked.
    if changes.count == 1 { return [Statement("DELETE FROM \(quotedName) WHERE key = ANY($1)", .keys(removed))] }
    // One statement locks all keys in order, also those that are missing, which get a row without a value.
    return [
      set(changes.map(\.key), to: changes.map(\.value)),
      Statement("DELETE FROM \(quotedName) WHERE key = ANY($1)", .keys(removed)),
    ]
  }

  private func set(_ keys: [StoreKey], to values: [ArraySlice<UInt8>?]) -> Statement {
    let type = valueType.rawValue
    if keys.count == 1 {
      return Statement(
        """
        INSERT INTO \(quotedName)(key, value) VALUES($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value
        """, .key(keys[0]), .value(values[0], isJSON: valueType == .json))
    }
    return Statement(
      """
      INSERT INTO \(quotedName)(key, value) SELECT k, v FROM unnest($1::bytea[], $2::\(type)[]) AS t(k, v) ORDER BY k
      ON CONFLICT (key) DO UPDATE SET value = excluded.value
      """, .keys(keys), .values(values, areJSON: valueType == .json))
  }
}

/// A lock of a table between Larder's transactions, until the end of the transaction.
///
/// It is an [advisory lock](https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS) of the
/// table's name, so `VACUUM`, `CREATE INDEX CONCURRENTLY` and other programs neither wait for it nor hold it up.
enum TableLock {
  /// Every write takes it.
  case shared
  /// Excludes all other writes, for one that cannot lock each row that it concerns, as the removal of a range, which cannot
  /// lock keys that are missing.
  case exclusive

  /// - Parameter table: The name of the table for SQL.
  func statement(of table: String) -> Statement {
    let name = self == .shared ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock"
    // The number keeps the locks apart from an application's own; it is "larder" in ASCII.
    return Statement("SELECT \(name)(hashtextextended($1, 119165786809714))", .text(table))
  }
}
#endif
