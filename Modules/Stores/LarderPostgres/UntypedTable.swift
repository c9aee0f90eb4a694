#if Postgres
import Larder

/// A store whose type of values is not chosen yet.
///
/// A new table is created when the type is chosen, because the codec determines whether it holds JSON.
struct UntypedTable: UntypedStore {
  /// The codec of a new store, unless another one is chosen.
  static let defaultCodecName = "cbor"

  let handle: PostgresHandle
  let codecName: String

  /// The database, if it is closed together with the store.
  let ownDatabase: PostgresDatabase?

  private let name: String

  /// A Boolean value that indicates whether the store must report the changes of all hosts.
  private let reportsChanges: Bool

  /// The table and its record, as far as they exist.
  private let found: (table: StoreTable?, record: StoreCatalog.Record?)

  /// Finds the table of a store; see ``PostgresStore``.
  ///
  /// - Parameters:
  ///   - database: The database.
  ///   - isOwned: A Boolean value that indicates whether the database is closed together with the store.
  ///   - name: The name of the store.
  ///   - createsIfMissing: A Boolean value that indicates whether the store may be created.
  ///   - newCodecName: The codec of a new store, or of the table of another program, which has no record; `nil` for the
  ///     default. A new store records the codec that is chosen later.
  ///   - reportsChanges: A Boolean value that indicates whether the store must report the changes of all hosts.
  /// - Throws: ``StoreError``, with `invalidArgument` if the table of another program holds bytes and no codec is chosen.
  init(
    in database: PostgresDatabase, isOwned: Bool, name: String, createsIfMissing: Bool, newCodecName: String?,
    reportsChanges: Bool
  ) async throws {
    let root = database.handle
    var information = root.information
    information.identity = StoreIdentity()
    if name != PostgresStore<Never>.defaultName { information.name += "#\(name)" }
    let handle = PostgresHandle(root.pool, dependingOn: root, information: information)
    self.handle = handle
    self.name = name
    self.reportsChanges = reportsChanges
    ownDatabase = isOwned ? database : nil
    do {
      if let problem = StoreCatalog.problem(withName: name) {
        throw StoreError(.invalidArgument, during: .open, store: handle.name, message: problem)
      }
      found = try await handle.running(.open) {
        let catalog = StoreCatalog(handle, store: handle.name)
        return (try await catalog.findTable(name), try await catalog.record(of: name))
      }
      codecName =
        if let name = found.record?.codecName ?? newCodecName {
          name
        } else if let table = found.table {
          try UntypedTable.codecName(ofUnrecorded: table, store: handle.name)
        } else {
          UntypedTable.defaultCodecName
        }
      guard found.table != nil || (createsIfMissing && information.access == .readWrite) else { throw missing }
    } catch {
      if isOwned { await database.close() }
      throw error
    }
  }

  /// Returns the name of the codec of another program's table, for which no codec is chosen.
  private static func codecName(ofUnrecorded table: StoreTable, store: String) throws -> String {
    if table.valueType == .json { return "json" }
    // A wrong record would make programs that read the values otherwise refuse the table.
    throw StoreError.unrecordedCodec(of: "table", store: store)
  }

  /// Returns the table, which is created if it is missing, and the statement with which the first write records a codec
  /// that adopts the recorded one.
  ///
  /// - Throws: ``StoreError``, with `versionMismatch` if the store has another codec, and `unsupported` if its table holds
  ///   JSON and the codec does not write it, or if it exists and does not report its changes although they are wanted.
  func table(
    for codec: some Codec, _ codecRecord: CodecRecord
  ) async throws -> (table: StoreTable, recordedCodec: RecordedCodec) {
    try await handle.running(.open) {
      let catalog = StoreCatalog(handle, store: handle.name)
      var (table, record) = found
      if let table { try check(table, suits: codec) }
      if let table, record == nil, reportsChanges, try await !catalog.hasRecordingTriggers(table) {
        throw StoreError(
          .unsupported, during: .open, store: handle.name,
          message: "the table belongs to another program, whose changes are reported only with the triggers that are "
            + "described with the change feed; create them first")
      }
      if table == nil || record == nil, handle.information.access == .readWrite {
        let isJSON = codec.format == .json && handle.pool.keepsText
        let new = StoreTable(name: name, schema: handle.quotedSchema, valueType: isJSON ? .json : .bytes)
        try await catalog.create(table ?? new, codecName: codec.name, reportsChanges: reportsChanges)
        // Another process may have created it at the same moment.
        (table, record) = (try await catalog.findTable(name), try await catalog.record(of: name))
      }
      guard var table else { throw missing }
      try check(table, suits: codec)
      if let record, record.reportsChanges {
        table.feed = FeedTable(schema: handle.quotedSchema)
        if handle.information.access == .readWrite { try await catalog.createFeed() }
      } else if reportsChanges {
        throw StoreError(
          .unsupported, during: .open, store: handle.name,
          message:
            "the store exists and does not report its changes; create another one that does, and copy the entries")
      }
      if handle.information.access == .readWrite { try await catalog.checkAcceptsLocks(table) }
      if let record {
        _ = try codecRecord.name(replacing: record.codecName, during: .open, store: handle.name)
      }
      let recordedCodec = RecordedCodec(
        codecRecord, recordedName: record?.codecName, format: record?.format, of: name,
        in: (catalog.table, table.quotedName), handle: handle)
      return (table, recordedCodec)
    }
  }

  private func check(_ table: StoreTable, suits codec: some Codec) throws {
    guard table.valueType == .json else { return }
    guard codec.format == .json else {
      throw StoreError(
        .unsupported, during: .open, store: handle.name,
        message: "the table holds JSON, which the codec \(codec.name) does not write")
    }
    guard handle.pool.keepsText else {
      throw StoreError(
        .unsupported, during: .open, store: handle.name,
        message:
          "the encoding of the database changes some characters of a column of JSON; let its type be bytea, or use "
          + "a database in UTF8")
    }
  }

  private var missing: StoreError {
    StoreError(.notFound, during: .open, store: handle.name, message: "the database has no store of this name")
  }

  func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try await PostgresStore(self, codec: codec))
  }
}
#endif
