#if GRDB
import Foundation
import GRDB
import Larder
import LarderSQLiteFormat

/// The error of a change that the database has accepted and not made, as after `RAISE(IGNORE)` in a trigger.
struct IgnoredChange: Error {}

/// The table of a store on a connection of GRDB.
struct GRDBTable {
  let db: Database
  let table: StoreTable

  /// A Boolean value that indicates whether texts are stored in UTF-8.
  let isUTF8: Bool

  /// Calls a closure with the bytes of a value, or `nil` if the key is missing.
  func withValue<Result>(forKey key: StoreKey, _ body: (UnsafeRawBufferPointer?) throws -> Result) throws -> Result {
    let rows = try Row.fetchCursor(db.cachedStatement(sql: table.valueOfKey), arguments: [GRDBTable.data(key)])
    // The row is valid for as long as the cursor.
    return try withExtendedLifetime(rows) {
      guard let row = try rows.next() else { return try body(nil) }
      return try withBytes(of: row, at: 0, body)
    }
  }

  /// Calls a closure with the key and the value of each row of a range; without the value if only keys are read.
  func scan(
    _ columns: StoreTable.Columns, in range: KeyRange, limit: Int, order: ScanOrder,
    _ body: (StoreKey, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard limit > 0 else { return }
    let sql = table.scan(columns, hasUpperBound: range.upperBound != nil, order: order)
    let rows = try Row.fetchCursor(
      db.cachedStatement(sql: sql), arguments: GRDBTable.arguments(range, limit: limit))
    while let row = try rows.next() {
      let key = try row.withUnsafeData(atIndex: 0) { StoreKey(bytes: $0 ?? Data()) }
      guard columns == .entries else {
        try body(key, UnsafeRawBufferPointer(start: nil, count: 0))
        continue
      }
      try withBytes(of: row, at: 1) { try body(key, $0 ?? UnsafeRawBufferPointer(start: nil, count: 0)) }
    }
  }

  /// Returns the number of rows in a range.
  func count(in range: KeyRange) throws -> Int {
    if range == .all { return try Int.fetchOne(db.cachedStatement(sql: table.countOfAll)) ?? 0 }
    let statement = try db.cachedStatement(sql: table.count(hasUpperBound: range.upperBound != nil))
    return try Int.fetchOne(statement, arguments: GRDBTable.arguments(range)) ?? 0
  }

  /// Sets the value of a key, or removes it if there isn't one.
  ///
  /// - Returns: The number of changed rows.
  /// - Throws: `IgnoredChange` if the table is unchanged; the errors of the connection.
  func set(_ value: ArraySlice<UInt8>?, forKey key: StoreKey) throws -> Int {
    if let value {
      try db.cachedStatement(sql: table.settingOfValue).execute(arguments: [GRDBTable.data(key), argument(value)])
      guard db.changesCount > 0 else { throw IgnoredChange() }
      return db.changesCount
    }
    try db.cachedStatement(sql: table.removalOfKey).execute(arguments: [GRDBTable.data(key)])
    let count = db.changesCount
    // Only a missing key may remain unchanged.
    guard try count > 0 || !contains(key) else { throw IgnoredChange() }
    return count
  }

  private func contains(_ key: StoreKey) throws -> Bool {
    try Row.fetchCursor(db.cachedStatement(sql: table.valueOfKey), arguments: [GRDBTable.data(key)]).next() != nil
  }

  /// Removes the keys of a range.
  ///
  /// - Returns: The number of changed rows.
  /// - Throws: `IgnoredChange` if some remain; the errors of the connection.
  private func removeAll(in range: KeyRange) throws -> Int {
    if range == .all {
      try db.cachedStatement(sql: table.removalOfAll).execute()
    } else {
      try db.cachedStatement(sql: table.removal(hasUpperBound: range.upperBound != nil))
        .execute(arguments: GRDBTable.arguments(range))
    }
    let count = db.changesCount
    try scan(.keys, in: range, limit: 1, order: .ascending) { _, _ in throw IgnoredChange() }
    return count
  }

  /// Writes the changes of a batch.
  ///
  /// - Returns: The number of changed rows.
  /// - Throws: `IgnoredChange`; the errors of the connection.
  func write(_ changes: EncodedChanges) throws -> Int {
    var count = 0
    for step in changes.steps {
      switch step {
      case .removeAll(let range):
        count += try removeAll(in: range)
      case .items(let items):
        for item in items {
          count += try set(item.value.map { changes.bytes[$0.part][$0.range] }, forKey: item.key)
        }
      }
    }
    return count
  }

  /// Calls a closure with the bytes of a column, or `nil` for NULL.
  private func withBytes<Result>(
    of row: Row, at index: Int, _ body: (UnsafeRawBufferPointer?) throws -> Result
  ) throws -> Result {
    guard table.valueType == .blob || isUTF8 else {
      guard var text = row[index] as String? else { return try body(nil) }
      return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
    }
    // Also a text, because as a string it would end at a NUL, and damaged bytes would be replaced.
    return try row.withUnsafeData(atIndex: index) { data in
      guard let data else { return try body(nil) }
      return try data.withUnsafeBytes(body)
    }
  }

  private func argument(_ value: ArraySlice<UInt8>) -> any DatabaseValueConvertible {
    switch table.valueType {
    case .blob: Data(value)
    case .text: String(decoding: value, as: UTF8.self)
    }
  }

  private static func data(_ key: StoreKey) -> Data { key.withUnsafeBytes { Data($0) } }

  /// Returns the arguments of a statement over a range; see `StoreTable.scan(_:hasUpperBound:order:)`.
  private static func arguments(_ range: KeyRange, limit: Int? = nil) -> StatementArguments {
    let upperBound = range.upperBound.map { data($0) }
    // A statement with a limit counts the parameter ?2 even if it has no upper bound.
    if let limit { return [data(range.lowerBound), upperBound, limit] }
    if let upperBound { return [data(range.lowerBound), upperBound] }
    return [data(range.lowerBound)]
  }
}
#endif
