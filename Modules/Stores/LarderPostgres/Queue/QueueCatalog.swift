#if Postgres
import Larder

/// Larder's own records of the queues in a schema, in the table `larder_queues`, and the tables of queues.
struct QueueCatalog: Sendable {
  /// The table that holds the records.
  static let tableName = "larder_queues"

  /// The format version that this code reads and writes.
  static let format = 1

  /// A queue that was found.
  struct Found: Sendable {
    /// The type of the payloads.
    let valueType: StoreTable.ValueType
    /// The name of the sequence that numbers the items, for SQL.
    let sequence: String
    /// The channel of notifications, which has the number of the table, because a name with its schema can be too long.
    let channel: String
    /// The codec, which writes compare with the record.
    let recordedCodec: RecordedCodec
  }

  private let handle: PostgresHandle
  private let name: String

  private var records: String { "\(handle.quotedSchema).\(QueueCatalog.tableName)" }

  /// The name of the queue's table with its schema, for SQL.
  var table: String { "\(handle.quotedSchema).\(SessionConfiguration.quoted(name))" }

  /// Creates the catalog of the schema of a queue.
  init(_ handle: PostgresHandle, queue name: String) {
    self.handle = handle
    self.name = name
  }

  /// Finds the table of the queue, or creates it.
  ///
  /// - Returns: The queue.
  /// - Throws: ``StoreError`` with `notFound` if the queue is missing and must not be created; `versionMismatch` if a newer
  ///   version or another codec wrote it; `unsupported` if the schema has something else of its name, or the queue holds
  ///   JSON and the codec does not write it.
  func open(_ codec: some Codec, _ codecRecord: CodecRecord, createsIfMissing: Bool) async throws -> Found {
    var valueType = try await findTable()
    if valueType == nil {
      guard createsIfMissing, handle.information.access == .readWrite else {
        throw error(.notFound, "the database has no queue of this name")
      }
      try await create(codec)
      valueType = try await findTable()
    }
    guard let valueType else { throw error(.conflict, "the table of the queue was removed while it was opened") }
    guard valueType == .bytes || codec.format == .json else {
      throw error(.unsupported, "the queue holds JSON, which the codec \(codec.name) does not write")
    }
    guard valueType == .bytes || handle.pool.keepsText else {
      throw error(
        .unsupported, "the encoding of the database changes some characters of a column of JSON; use a database in UTF8"
      )
    }
    let record = try await handle.read(
      Statement("SELECT codec, format::int8 FROM \(records) WHERE name = $1", .text(name)), for: .open)
    guard record.rowCount == 1, let codecName = record.text(0, 0), let format = record.integer(0, 1) else {
      throw error(.corrupted, "the queue has no record in \(QueueCatalog.tableName)")
    }
    guard format <= QueueCatalog.format else {
      throw error(
        .versionMismatch,
        "the queue has format version \(format); only versions up to \(QueueCatalog.format) are supported")
    }
    _ = try codecRecord.name(replacing: codecName, during: .open, store: handle.name)
    let names = try await handle.read(
      Statement("SELECT pg_get_serial_sequence($1, 'seq'), 'larder_' || $1::regclass::oid", .text(table)), for: .open)
    let found = Found(
      valueType: valueType, sequence: names.text(0, 0) ?? "", channel: names.text(0, 1) ?? QueueCatalog.tableName,
      recordedCodec: RecordedCodec(
        codecRecord, recordedName: codecName, format: Int(format), of: name, in: (records, table), handle: handle))
    if handle.information.access == .readWrite { try await advance(found.sequence) }
    return found
  }

  /// Advances the sequence of the items beyond those in the table.
  ///
  /// A logical replica has the rows of its original, but not the state of sequences.
  private func advance(_ sequence: String) async throws {
    let isBehind = try await handle.read(
      Statement(
        """
        SELECT CASE WHEN has_sequence_privilege($1, 'UPDATE') AND has_sequence_privilege($1, 'USAGE')
          THEN (SELECT max(seq) FROM \(table)) > coalesce(pg_sequence_last_value($1::regclass), 0) END
        """, .text(sequence)), for: .open)
    guard isBehind.withBytes(0, 0, { $0?.first == 1 }) else { return }
    // Without the lock, another process could take numbers between the two halves of the statement.
    let correction = Statement(
      "SELECT setval($1::regclass, greatest(max(seq), pg_sequence_last_value($1::regclass))) FROM \(table)",
      .text(sequence))
    try await handle.write(
      [TableLock.exclusive.statement(of: table), correction], isReadCommitted: true, for: .open)
  }

  /// Returns the name of the codec that is recorded for the queue, or `nil` if there is no such queue.
  func codecName() async throws -> String? {
    guard try await findTable() != nil else { return nil }
    let record = try await handle.read(
      Statement("SELECT codec FROM \(records) WHERE name = $1", .text(name)), for: .open)
    return record.rowCount == 1 ? record.text(0, 0) : nil
  }

  /// Returns the type of the payloads, or `nil` if nothing has the name of the queue.
  ///
  /// The numbers of types are those of PostgreSQL's catalog: `bigint` is 20, and `smallint` is 21.
  private func findTable() async throws -> StoreTable.ValueType? {
    let columns = try await StoreCatalog(handle, store: handle.name).columns(ofTable: name)
    guard columns.rowCount > 0 else { return nil }
    let types = Dictionary(
      (0..<columns.rowCount).map { (columns.text($0, 0) ?? "", columns.integer($0, 1) ?? 0) },
      uniquingKeysWith: { first, _ in first })
    guard types["seq"] == 20, types["key"] == StoreTable.ValueType.bytes.identifier, types["state"] == 21,
      let valueType = StoreTable.ValueType.allCases.first(where: { $0.identifier == types["payload"] })
    else {
      throw error(.unsupported, "\(name) exists in the schema and is not the table of a queue; choose another name")
    }
    return valueType
  }

  /// Creates the table with its record, unless another process does it at the same moment.
  private func create(_ codec: some Codec) async throws {
    let catalog = StoreCatalog(handle, store: handle.name)
    let table = Statement(
      """
      CREATE TABLE IF NOT EXISTS \(records)(name text PRIMARY KEY, codec text NOT NULL, format integer NOT NULL)
      """, [], isPrepared: false)
    if try await !catalog.exists(QueueCatalog.tableName, for: .open) {
      try await catalog.creating { try await handle.write([table], for: .open) }
    }
    let record = Statement(
      """
      INSERT INTO \(records)(name, codec, format) VALUES($1, $2, \(QueueCatalog.format))
      ON CONFLICT (name) DO UPDATE SET codec = excluded.codec, format = excluded.format
      """, .text(name), .text(codec.name))
    let creation = QueueStatements.creation(
      of: self.table, valueType: codec.format == .json && handle.pool.keepsText ? .json : .bytes)
    try await catalog.creating {
      // Again for each attempt, because the table may be there by now.
      guard try await findTable() == nil else { return }
      try await handle.write([record] + creation, for: .open)
    }
  }

  private func error(_ code: StoreError.Code, _ message: String) -> StoreError {
    StoreError(code, during: .open, store: handle.name, message: message)
  }
}
#endif
