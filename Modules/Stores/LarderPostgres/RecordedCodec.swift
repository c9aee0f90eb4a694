#if Postgres
import Larder

/// The codec of an open store or queue, which each write compares with the record, or records.
///
/// A program on another host may record a newer codec at any time. A write takes its lock of the table before it compares the
/// two, and a program that records another codec excludes all others from the table. So no write of an older program can
/// follow the first one of a newer program. The comparison costs a statement, and no round trip.
final class RecordedCodec: Sendable {
  private let codec: CodecRecord
  private let handle: PostgresHandle

  /// The table of the records, and the table of the store or queue, for SQL.
  private let (records, table): (String, String)

  /// The name of the store or queue.
  private let name: String

  /// The format of the store or queue, which decides what a write must do.
  private let recordedFormat: Int64?

  /// The name in the record, when it was last known, or `nil` if there is no record.
  private let recordedName: Locked<String?>

  /// Creates the value, after the codec was compared with the record at opening.
  ///
  /// - Parameters:
  ///   - codec: The codec.
  ///   - recordedName: The name in the record, or `nil` if there isn't one.
  ///   - format: The format in the record, or `nil` if there isn't one.
  ///   - name: The name of the store or queue.
  ///   - tables: The table of the records, and that of the store or queue, for SQL.
  ///   - handle: The handle of the store or queue.
  init(
    _ codec: CodecRecord, recordedName: String?, format: Int?, of name: String,
    in tables: (records: String, own: String),
    handle: PostgresHandle
  ) {
    self.codec = codec
    self.recordedName = Locked(recordedName)
    recordedFormat = format.map(Int64.init)
    self.name = name
    (records, table) = (tables.records, tables.own)
    self.handle = handle
  }

  /// Returns the statements that begin a write.
  ///
  /// - Parameters:
  ///   - lock: The lock of the table.
  ///   - compares: A Boolean value that indicates whether the write is refused if another program has recorded another
  ///     codec. Defaults to `true`.
  ///   - format: The format of the values that are encoded already. Defaults to `nil`.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with a retryable `conflict` if the format has changed since.
  func beginning(
    _ lock: TableLock, compares: Bool = true, encodedIn format: CodecRecord.Format? = nil,
    during operation: StoreOperation
  ) throws -> [Statement] {
    let recordedName = recordedName.withLock(\.self)
    // Afterward, because what was recorded changes the format first.
    if let format { try codec.checkUnchanged(since: format, during: operation, store: handle.name) }
    guard let recordedName else { return locks(lock) }
    if codec.adoptedNames.contains(recordedName) {
      // The record is locked first by all, so that two objects that adopt it don't deadlock. A division by zero is the only
      // error that an expression can cause.
      return [
        Statement(
          """
          UPDATE \(records) SET codec = CASE 1 / (codec IN ($2, $3) AND format = $4)::int WHEN 1 THEN $2 END WHERE name = $1
          """, .text(name), .text(codec.name), .text(recordedName), .integer(recordedFormat ?? 0))
      ] + locks(.exclusive)
    }
    guard compares else { return locks(lock) }
    // A statement of its own, because one that waits for the lock would compare what was recorded before.
    let comparison = Statement(
      "SELECT 1 / (codec = $2 AND format = $3)::int FROM \(records) WHERE name = $1", .text(name), .text(recordedName),
      .integer(recordedFormat ?? 0))
    return locks(lock) + [comparison]
  }

  /// Returns the statement that locks the table, or none if the server orders transactions by itself.
  func locks(_ lock: TableLock) -> [Statement] {
    handle.pool.configuration.isolation == .readCommitted ? [lock.statement(of: table)] : []
  }

  /// Notes that a write was committed.
  func noteCommit() {
    recordedName.withLock { if let name = $0, codec.adoptedNames.contains(name) { $0 = codec.name } }
  }

  /// Runs a write, and throws what the record says if the server has found another codec there.
  ///
  /// - Throws: ``StoreError``: `versionMismatch` if another codec is recorded; a retryable `conflict` if the record has changed
  ///   to one beside which this codec writes. The errors of the closure.
  func comparing<Result>(for operation: StoreOperation, _ write: () async throws -> Result) async throws -> Result {
    let known = recordedName.withLock(\.self)
    do {
      return try await write()
    } catch let error as StoreError where (error.underlying as? PostgresError)?.sqlState == "22012" {
      let rows = try await handle.read(
        Statement("SELECT codec, format::int8 FROM \(records) WHERE name = $1", .text(name)), for: operation)
      if rows.rowCount == 1, let recorded = rows.integer(0, 1), let recordedFormat, recorded != recordedFormat {
        throw StoreError(
          .versionMismatch, during: operation, store: handle.name,
          message: "the format version has changed from \(recordedFormat) to \(recorded); open the store again")
      }
      // Otherwise, a trigger of the user's has divided by zero.
      guard rows.rowCount == 1, let recorded = rows.text(0, 0), recorded != known else { throw error }
      _ = try codec.name(replacing: recorded, during: operation, store: handle.name)
      recordedName.withLock { $0 = recorded }
      throw StoreError(
        .conflict, during: operation, store: handle.name,
        message: "another program now writes with the codec \(recorded); try again", isRetryable: true)
    }
  }
}
#endif
