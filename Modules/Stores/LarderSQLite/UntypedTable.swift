#if SQLite
import Larder
import LarderSQLiteFormat

/// A store whose type of values is not chosen yet.
///
/// A new table is created when the type is chosen, because the codec determines whether it holds text.
struct UntypedTable: UntypedStore {
  /// The codec of a new store, unless another one is chosen.
  static let defaultCodecName = "cbor"

  let handle: DatabaseHandle
  private(set) var codecName: String

  /// The database, if it is closed together with the store.
  let ownDatabase: SQLiteDatabase?

  private let name: String
  private let layout: SQLiteTableLayout

  /// The table and the codec in its record, if the table exists.
  private var found: (table: StoreTable, codecName: String?)?

  /// Finds the table of a store; see ``SQLiteStore``.
  ///
  /// If `newCodecName` is `nil`, a new store records the codec that is chosen later.
  init(
    in database: SQLiteDatabase, isOwned: Bool, name: String, layout: SQLiteTableLayout, createsIfMissing: Bool,
    newCodecName: String?
  ) async throws {
    let root = database.handle
    let fullName = name == SQLiteStore<Never>.defaultName ? root.name : "\(root.name)#\(name)"
    self.name = name
    self.layout = layout
    let handle = DatabaseHandle(of: root.database, dependingOn: root, name: fullName)
    self.handle = handle
    ownDatabase = isOwned ? database : nil
    do {
      if let problem = StoreTable.problem(withName: name) {
        throw StoreError(.invalidArgument, during: .open, store: fullName, message: problem)
      }
      found = try await handle.run(.open) { try await root.database.writer.findTable(for: handle, named: name) }
      codecName = found?.codecName ?? newCodecName ?? UntypedTable.defaultCodecName
      guard found != nil || (createsIfMissing && root.database.access == .readWrite) else { throw missing }
    } catch {
      // Nothing was written, so there is no error of closing to report.
      if isOwned { try? await database.close() }
      throw error
    }
  }

  /// Returns the table, which is created if it is missing.
  ///
  /// The table of another program gets a record, except in a database that cannot be written.
  ///
  /// - Throws: ``StoreError``, with `versionMismatch` if the store has another codec, and `unsupported` if its table holds
  ///   text and the codec does not write JSON.
  func table(for codec: some Codec) async throws -> StoreTable {
    var opened = self
    let catalog = StoreCatalog(store: handle.name)
    if found?.codecName == nil, handle.database.access == .readWrite {
      let (handle, codecName) = (handle, codec.name)
      let new = found?.table ?? StoreTable(name: name, codec: codec, isClustered: layout == .clustered)
      // A table that the codec cannot use gets no record.
      try catalog.check(new, suits: codec)
      opened.found = try await handle.run(.open) {
        try await handle.database.writer.createTable(for: handle, new, codecName: codecName)
      }
    }
    guard let table = opened.found?.table else { throw missing }
    if let recorded = opened.found?.codecName {
      opened.codecName = recorded
      try opened.check(codec, store: handle.name)
    }
    try catalog.check(table, suits: codec)
    return table
  }

  private var missing: StoreError {
    StoreError(.notFound, during: .open, store: handle.name, message: "the database has no store of this name")
  }

  func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await SQLiteStore(self, codec: codec))
  }
}
#endif
