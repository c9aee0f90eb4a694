#if SQLite
import Larder
import LarderSQLiteFormat

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
      try connection.withStatement(table.removalOfAll) { _ = try $0.step() }
    } else {
      try connection.withStatement(table.removal(hasUpperBound: range.upperBound != nil)) { statement in
        try binding(range, to: statement) { _ = try statement.step() }
      }
    }
    guard try keys(in: range, limit: 1, order: .ascending).isEmpty else { throw RawTable.ignoredChange }
  }

  /// The error of a change that SQLite reported as done, and that is not there.
  private static var ignoredChange: SQLiteError {
    SQLiteError(
      code: SQLiteError.refusedByTrigger,
      message: "a trigger or a conflict clause of the table ignored the change, without an error")
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
      guard statement.changedRowCount == 1 else { throw RawTable.ignoredChange }
      statement.reset()
    }
  }

  private func remove(_ key: StoreKey, with statement: SQLiteStatement) throws {
    try key.withUnsafeBytes { bytes in
      try statement.bind(bytes, at: 1)
      _ = try statement.step()
      let isRemoved = statement.changedRowCount == 1
      statement.reset()
      // Either the key was missing, or a trigger kept it.
      guard try isRemoved || withValue(forKey: key, { $0 == nil }) else { throw RawTable.ignoredChange }
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
