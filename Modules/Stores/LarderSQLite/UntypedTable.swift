#if SQLite
import Larder
import LarderFiles
import LarderSQLiteFormat

/// A store whose type of values is not chosen yet.
///
/// A new table is created when the type is chosen, because the codec determines whether it holds text.
struct UntypedTable: UntypedStore {
  /// The codec of a new store, unless another one is chosen.
  static let defaultCodecName = "cbor"

  let handle: DatabaseHandle
  let codecName: String

  /// The database, if it is closed together with the store.
  let ownDatabase: SQLiteDatabase?

  private let name: String
  private let layout: SQLiteTableLayout

  /// The table and the codec in its record, if the table exists.
  private var found: (table: StoreTable, codecName: String?)?

  /// Finds the table of a store; see ``SQLiteStore``.
  ///
  /// - Parameters:
  ///   - database: The database.
  ///   - isOwned: A Boolean value that indicates whether the database is closed together with the store.
  ///   - name: The name of the store.
  ///   - layout: The kind of a new table.
  ///   - createsIfMissing: A Boolean value that indicates whether the store may be created.
  ///   - newCodecName: The codec of a new store, or of the table of another program, which has no record; `nil` for the
  ///     default.
  /// - Throws: ``StoreError``, with `invalidArgument` if the table of another program holds blobs and no codec is chosen.
  init(
    in database: SQLiteDatabase, isOwned: Bool, name: String, layout: SQLiteTableLayout, createsIfMissing: Bool,
    newCodecName: String?
  ) async throws {
    let root = database.handle
    let fullName = UntypedTable.fullName(of: name, in: root.name)
    self.name = name
    self.layout = layout
    let handle = DatabaseHandle(of: root.database, dependingOn: root, name: fullName)
    self.handle = handle
    ownDatabase = isOwned ? database : nil
    do {
      try UntypedTable.check(name, in: root.name)
      found = try await handle.running(.open) {
        try await root.database.writer.findTable(for: handle, named: name, until: handle.deadline)
      }
      codecName =
        try found.map { try UntypedTable.codecName(of: $0, chosen: newCodecName, store: fullName) }
        ?? newCodecName ?? UntypedTable.defaultCodecName
      guard found != nil || (createsIfMissing && root.database.access == .readWrite) else { throw missing }
    } catch {
      // Nothing was written, so there is no error of closing to report.
      if isOwned { try? await database.close() }
      throw error
    }
  }

  private static func fullName(of name: String, in database: String) -> String {
    name.utf8.elementsEqual(SQLiteStore<Never>.defaultName.utf8) ? database : "\(database)#\(name)"
  }

  /// Throws an error if a name cannot be that of a store.
  ///
  /// - Parameters:
  ///   - name: The name of the store.
  ///   - path: The path or the name of the database, for the error.
  /// - Throws: ``StoreError`` with `invalidArgument`.
  static func check(_ name: String, in path: String) throws {
    guard let problem = StoreTable.problem(withName: name) else { return }
    throw StoreError(
      .invalidArgument, during: .open, store: fullName(of: name, in: FilePaths.split(path).name), message: problem)
  }

  /// Returns the name of the codec of a table, as it is recorded or, in the table of another program, chosen.
  private static func codecName(
    of found: (table: StoreTable, codecName: String?), chosen: String?, store: String
  ) throws -> String {
    if let recorded = found.codecName ?? chosen { return recorded }
    if found.table.valueType == .text { return "json" }
    // A wrong record would make programs that read the blobs otherwise refuse the table.
    throw StoreError.unrecordedCodec(of: "table", store: store)
  }

  /// Returns the table.
  ///
  /// It is created if it is missing.
  ///
  /// The table of another program gets a record, except in a database that cannot be written.
  ///
  /// - Throws: ``StoreError``, with `versionMismatch` if the store has another codec, and `unsupported` if its table holds
  ///   text and the codec does not write JSON.
  func table(for codec: some Codec, _ codecRecord: CodecRecord) async throws -> StoreTable {
    var opened = self
    let catalog = StoreCatalog(store: handle.name)
    if found?.codecName == nil, handle.database.access == .readWrite {
      let (handle, codecName) = (handle, codec.name)
      let new = found?.table ?? StoreTable(name: name, codec: codec, isClustered: layout == .clustered)
      // A table that the codec cannot use gets no record.
      try catalog.check(new, suits: codec)
      opened.found = try await handle.running(.open) {
        try await handle.database.writer.createTable(
          for: handle, new, codecName: codecName, until: handle.deadline)
      }
    }
    guard let table = opened.found?.table else { throw missing }
    if let recorded = opened.found?.codecName {
      _ = try codecRecord.name(replacing: recorded, during: .open, store: handle.name)
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
