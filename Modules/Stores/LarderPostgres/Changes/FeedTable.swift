#if Postgres
import Larder

/// The tables of the change feed of a schema, and the statements that write, read and trim it.
///
/// Both tables are unlogged. This saves the log of the server a record for each write. After a crash they are empty, and
/// on another server that takes over as well. The row of `larder_feed` with its random number shows it to every reader.
struct FeedTable: Sendable {
  /// The table of the changes, and that of the feed's own state, in each schema.
  static let names = (changes: "larder_changes", state: "larder_feed")

  /// The number of keys of a write, above which it is recorded as a range.
  static let maximumKeyCount = 1000

  /// The number of rows that a reader takes at most, above which it reports that anything may have changed.
  static let maximumRowCount = 10_000

  /// The minimum time for which changes are kept.
  ///
  /// They are removed after at most twice this time if there is a reader.
  static let retention = Duration.seconds(600)

  /// The number of rows that one transaction removes at most.
  private static let removalCount: Int64 = 10_000

  private let (changes, state): (String, String)

  /// - Parameter schema: The name of the schema for SQL.
  init(schema: String) {
    (changes, state) = ("\(schema).\(FeedTable.names.changes)", "\(schema).\(FeedTable.names.state)")
  }

  /// The statements that create the tables, unless they exist.
  ///
  /// The number of a transaction is assigned before its changes are made, and does not depend on a clock.
  var creation: [Statement] {
    [
      Statement.command(
        """
        CREATE UNLOGGED TABLE IF NOT EXISTS \(changes)(
          xid xid8 NOT NULL DEFAULT pg_current_xact_id(), origin bigint, store text NOT NULL,
          keys bytea[], lower bytea, upper bytea)
        """),
      Statement.command("CREATE INDEX IF NOT EXISTS larder_changes_xid ON \(changes)(xid)"),
      Statement.command(
        """
        CREATE UNLOGGED TABLE IF NOT EXISTS \(state)(
          id boolean PRIMARY KEY DEFAULT true CHECK (id), epoch bigint NOT NULL, trimmed xid8 NOT NULL,
          horizon xid8 NOT NULL, noted timestamptz NOT NULL)
        """),
    ]
  }

  /// A statement for the channel of the notifications, which has the number of the table, because a name with its schema
  /// can be too long.
  var channel: Statement { Statement("SELECT 'larder_' || $1::text::regclass::oid", .text(changes)) }

  // MARK: Writing

  /// Returns a statement that also records changes of a store.
  ///
  /// - Parameters:
  ///   - recorded: The changes.
  ///   - store: The name of the store.
  ///   - origin: The number by which the writer's own reader leaves them out.
  ///   - statement: A statement that writes in the same transaction.
  func recording(
    _ recorded: BoundedChanges, of store: String, from origin: Int64, in statement: Statement
  ) -> Statement {
    var (keys, range): ([StoreKey], KeyRange?) = ([], nil)
    for change in recorded.changes {
      switch change {
      case .key(let key): keys.append(key)
      case .range(let changed): range = range?.covering(changed) ?? changed
      }
    }
    if keys.count > FeedTable.maximumKeyCount {
      range = keys.reduce(range ?? .only(keys[0])) { $0.covering(.only($1)) }
      keys = []
    }
    let count = statement.parameters.count
    let values = (1...5).map { "$\(count + $0)" }.joined(separator: ", ")
    return Statement(
      """
      WITH larder_change AS (INSERT INTO \(changes)(origin, store, keys, lower, upper) VALUES(\(values))) \(statement.sql)
      """,
      statement.parameters + [
        .integer(origin), .text(store), .keys(keys), .bytes(range?.lowerBound.bytes), .bytes(range?.upperBound?.bytes),
      ])
  }

  // MARK: Reading

  /// Returns a statement that reads what was committed since a position, without taking a transaction number.
  ///
  /// - Parameters:
  ///   - position: The position, or `nil` to find where the feed is.
  ///   - origin: The number of the rows to leave out. Those of SQL have none.
  func page(after position: FeedPosition?, without origin: Int64) -> Statement {
    let (end, running) = (position?.snapshot.end ?? .max, position?.snapshot.running ?? [])
    let columns = "entry.store, entry.xid::text, k, entry.lower, entry.upper, NULL, NULL, NULL, NULL"
    // The identifiers of the database and the files of the tables tell it from a copy and from one that was restored. One
    // statement, because each has a snapshot of its own. Rows of a database that was restored from a dump can have
    // numbers that this server has not assigned.
    return Statement(
      """
      SELECT NULL::text, NULL::text, NULL::bytea, NULL::bytea, NULL::bytea, pg_current_snapshot()::text,
        concat_ws('/', coalesce(feed.epoch::text, pg_backend_pid()::text), pg_postmaster_start_time()::text,
          (SELECT oid FROM pg_database WHERE datname = current_database()),
          pg_relation_filenode($5::text::regclass), pg_relation_filenode($6::text::regclass)),
        least(feed.trimmed, pg_snapshot_xmin(pg_current_snapshot()))::text,
        (feed.noted < clock_timestamp() - $3 * interval '1 second')::int
      FROM (VALUES(1)) AS one LEFT JOIN \(state) AS feed ON true
      UNION ALL
      (SELECT \(columns) FROM \(changes) AS entry LEFT JOIN LATERAL unnest(entry.keys) AS k ON true
      WHERE entry.xid >= $1::text::xid8 AND entry.xid < pg_snapshot_xmax(pg_current_snapshot())
        AND entry.origin IS DISTINCT FROM $4
      LIMIT \(FeedTable.maximumRowCount + 1))
      UNION ALL
      (SELECT \(columns) FROM \(changes) AS entry LEFT JOIN LATERAL unnest(entry.keys) AS k ON true
      WHERE entry.xid = ANY($2::text::xid8[]) AND entry.origin IS DISTINCT FROM $4
      LIMIT \(FeedTable.maximumRowCount + 1))
      """,
      .text("\(end)"), .text("{\(running.map(String.init).joined(separator: ","))}"),
      .integer(FeedTable.retention.components.seconds), .integer(origin), .text(changes), .text(state))
  }

  // MARK: Trimming

  /// A statement that makes the row of the state, unless there is one.
  var identification: Statement {
    Statement(
      """
      INSERT INTO \(state)(epoch, trimmed, horizon, noted)
      SELECT $1, horizon, horizon, clock_timestamp() FROM pg_snapshot_xmin(pg_current_snapshot()) AS horizon
      ON CONFLICT (id) DO NOTHING
      """, .integer(Int64.random(in: .min ... .max)))
  }

  /// A statement that notes which changes may be removed, if it is time, and returns a row then.
  ///
  /// Changes that were visible to all a retention ago are no longer needed. Another process that does the same is not waited for.
  /// It is committed before any change is removed, so that each reader that misses one sees it.
  var trimming: Statement {
    Statement(
      """
      UPDATE \(state) SET trimmed = least(horizon, pg_snapshot_xmin(pg_current_snapshot())),
        horizon = pg_snapshot_xmin(pg_current_snapshot()), noted = clock_timestamp()
      WHERE id IN (
        SELECT id FROM \(state) WHERE noted < clock_timestamp() - $1 * interval '1 second' FOR UPDATE SKIP LOCKED)
      RETURNING 1
      """, .integer(FeedTable.retention.components.seconds))
  }

  /// A statement that removes some of the changes that ``trimming`` has noted, and returns a row if there may be more.
  ///
  /// The portions keep each transaction short.
  var removal: Statement {
    Statement(
      """
      WITH removed AS (
        DELETE FROM \(changes) WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM \(changes) WHERE xid < (SELECT trimmed FROM \(state)) LIMIT $1))
        RETURNING 1)
      SELECT 1 FROM removed HAVING count(*) = $1
      """, .integer(FeedTable.removalCount))
  }
}

extension FeedPage {
  /// Reads the answer to ``FeedTable/page(after:)``, or returns `nil` if the rows are not one.
  init?(_ rows: QueryResult) {
    var state: (position: FeedPosition, trimmedEnd: UInt64, isIdentified: Bool, isDue: Bool)?
    self.rows = []
    var lastRange: (number: UInt64, range: KeyRange)?
    for row in 0..<rows.rowCount {
      if let text = rows.text(row, 5) {
        // Without a row of the state, any transaction that has ended may have been removed.
        guard let snapshot = ServerSnapshot(text), let identity = rows.text(row, 6),
          let trimmedEnd = rows.text(row, 7).flatMap({ UInt64($0) })
        else { return nil }
        state = (
          FeedPosition(identity: identity, snapshot: snapshot), trimmedEnd, !rows.isNull(row, 8),
          rows.integer(row, 8) == 1
        )
        continue
      }
      guard let store = rows.text(row, 0), let number = rows.text(row, 1).flatMap({ UInt64($0) }) else { return nil }
      if !rows.isNull(row, 2) {
        self.rows.append(Row(number: number, store: store, change: .key(rows.key(row, 2))))
      }
      guard !rows.isNull(row, 3) else { continue }
      let lowerBound = rows.key(row, 3)
      let range = rows.isNull(row, 4) ? lowerBound... : lowerBound..<rows.key(row, 4)
      // It comes with each key of its row.
      if let lastRange, lastRange == (number, range) { continue }
      lastRange = (number, range)
      self.rows.append(Row(number: number, store: store, change: .range(range)))
    }
    guard let state else { return nil }
    (position, trimmedEnd, isIdentified, isDueForTrimming) = state
    isWhole = rows.rowCount <= FeedTable.maximumRowCount
  }
}
#endif
