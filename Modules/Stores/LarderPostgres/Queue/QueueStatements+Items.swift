#if Postgres
import Larder

/// Statements that add items and end leases.
extension QueueStatements {
  /// New items, one element for each in every array.
  struct Items: Sendable {
    var keys: [StoreKey] = []
    var payloads: [ArraySlice<UInt8>] = []
    /// In microseconds.
    var delays: [Int64] = []
    var priorities: [Int64] = []
    var groups: [StoreKey?] = []
    /// 1 if the caller gave the key, else 0.
    var named: [Int64] = []

    /// The size of the parameters of each item, in bytes, as ``StoreTable/parts(ofSizes:atMost:)`` takes it.
    var sizes: [Int] {
      // The numbers, and the lengths before all fields but two.
      keys.indices.map { keys[$0].count + payloads[$0].count + (groups[$0]?.count ?? 0) + 40 }
    }

    /// Returns some of the items.
    subscript(_ part: Range<Int>) -> Items {
      Items(
        keys: Array(keys[part]), payloads: Array(payloads[part]), delays: Array(delays[part]),
        priorities: Array(priorities[part]), groups: Array(groups[part]), named: Array(named[part]))
    }
  }

  /// A receipt with what is to happen to its item.
  struct Release: Sendable {
    let receipt: DeliveryReceipt
    /// In microseconds.
    var delay: Int64
    /// A Boolean value that indicates whether the delivery counts.
    var counts: Bool
    /// The reason why the item becomes a dead letter, or `nil` if it is delivered again.
    var deadLetterReason: DeadLetterReason?
  }

  static let columns = "seq, key, payload, priority, group_key, is_named, arrival, state, since, until"

  /// The changes that make a row of a remembered id an item again.
  static let revival = """
    seq = excluded.seq, payload = excluded.payload, priority = excluded.priority, group_key = excluded.group_key,
    is_named = excluded.is_named, arrival = excluded.arrival, state = excluded.state, since = excluded.since,
    until = excluded.until, deliveries = 0, epoch = NULL, is_suspect = false
    """

  // MARK: Adding

  /// Inserts items whose keys are neither in the queue nor remembered, and returns their numbers and keys.
  ///
  /// Items of groups, which are locked, are parked until ``QueueStatements/advance(_:)``.
  ///
  /// - Parameters:
  ///   - items: The items, with different keys.
  ///   - room: The number of items for which ``makeRoom(_:capacity:)`` must have found room, or else nothing is inserted;
  ///     `nil` without a capacity.
  func insert(_ items: Items, needingRoomFor room: Int?) -> Statement {
    let guardSQL = room != nil ? "WHERE (SELECT epoch FROM \(table) WHERE seq = 0) >= $8" : ""
    let statement = Statement(
      """
      \(QueueStatements.clock), given AS MATERIALIZED (
        SELECT \(nextSequence) AS seq, list.*
        FROM (SELECT * FROM unnest(
            $2::bytea[], $3::\(valueType.rawValue)[], $4::int8[], $5::int8[], $6::bytea[], $7::int8[])
          WITH ORDINALITY AS t(key, payload, delay, priority, group_key, named, place) ORDER BY place) AS list
        \(guardSQL))
      INSERT INTO \(table) AS q(\(QueueStatements.columns))
      SELECT seq, key, payload, priority, group_key, named = 1, now,
        CASE WHEN group_key IS NOT NULL THEN 5 WHEN delay > 0 THEN 1 ELSE 0 END, CASE WHEN delay > 0 THEN now END,
        CASE WHEN delay > 0 THEN now + delay * interval '1 microsecond' END
      FROM given CROSS JOIN clock ORDER BY key
      ON CONFLICT (key) DO UPDATE SET \(QueueStatements.revival), remembered = NULL, original = NULL
        WHERE q.state = 4 AND q.until <= \(QueueStatements.present)
      RETURNING seq, key
      """, time, .keys(items.keys), .values(items.payloads, areJSON: valueType == .json),
      QueueStatements.durations(items.delays), .integers(items.priorities),
      .values(items.groups.map { $0.map { $0.bytes[...] } }), .integers(items.named))
    guard let room else { return statement }
    return Statement(statement.sql, statement.parameters + [.integer(Int64(room))])
  }

  /// Returns the keys of live items and remembered ids, with the numbers of their items, and 1 if an id was remembered by a
  /// clock that was ahead.
  func sequences(ofKeys keys: [StoreKey]) -> Statement {
    Statement(
      """
      \(QueueStatements.clock)
      SELECT key, CASE WHEN state = 4 THEN coalesce(original, seq) ELSE seq END,
        CASE WHEN state = 4 AND since > \(QueueStatements.present) THEN 1::int8 ELSE 0 END
      FROM \(table) WHERE key = ANY($2)
      """, time, .keys(keys))
  }

  /// Locks the row of the capacity, and counts the items if it does not show that there is room for some more.
  ///
  /// Items that leave make room that the row does not show, so consumers need not change it.
  func makeRoom(_ count: Int, capacity: Int) -> [Statement] {
    [
      lockRoom,
      Statement(
        """
        UPDATE \(table) SET epoch = $2 - (\(itemCount.sql)) WHERE seq = 0 AND (epoch < $1 OR epoch > $2)
        """, .integer(Int64(count)), .integer(Int64(capacity))),
    ]
  }

  /// Locks the row of the capacity, which it creates if it is missing.
  var lockRoom: Statement {
    Statement(
      "INSERT INTO \(table) AS q(seq, state, epoch) VALUES(0, 7, 0) ON CONFLICT (seq) DO UPDATE SET epoch = 0 WHERE false"
    )
  }

  /// Counts the items, dead letters included.
  var itemCount: Statement { Statement("SELECT count(*) FROM \(table) WHERE state IN (0, 1, 2, 3, 5)") }

  /// Takes the room of items from the row of the capacity, unless there is too little.
  func takeRoom(_ count: Int) -> Statement {
    Statement("UPDATE \(table) SET epoch = epoch - $1 WHERE seq = 0 AND epoch >= $1", .integer(Int64(count)))
  }

  /// Causes the next call that needs room to count the items.
  var forgetRoom: Statement { Statement("UPDATE \(table) SET epoch = 0 WHERE seq = 0") }

  // MARK: Replacing and removing

  /// Replaces the items of keys, and adds those that are missing at the end of the queue.
  func set(_ keys: [StoreKey], to payloads: [ArraySlice<UInt8>]) -> Statement {
    Statement(
      """
      \(QueueStatements.clock), given AS MATERIALIZED (
        SELECT \(nextSequence) AS seq, list.*
        FROM (SELECT * FROM unnest($2::bytea[], $3::\(valueType.rawValue)[])
          WITH ORDINALITY AS t(key, payload, place) ORDER BY place) AS list)
      INSERT INTO \(table) AS q(\(QueueStatements.columns))
      SELECT seq, key, payload, 0, NULL, true, now, 0, NULL, NULL FROM given CROSS JOIN clock ORDER BY key
      ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, deliveries = 0, epoch = NULL, is_suspect = false,
        seq = CASE WHEN q.state = 4 THEN excluded.seq ELSE q.seq END,
        state = CASE WHEN q.state IN (1, 5) THEN q.state ELSE 0 END,
        since = CASE WHEN q.state IN (1, 5) THEN q.since END, until = CASE WHEN q.state IN (1, 5) THEN q.until END,
        arrival = CASE WHEN q.state = 4 THEN excluded.arrival ELSE q.arrival END,
        priority = CASE WHEN q.state = 4 THEN 0 ELSE q.priority END,
        group_key = CASE WHEN q.state = 4 THEN NULL ELSE q.group_key END,
        remembered = CASE WHEN q.state = 4 THEN q.until ELSE q.remembered END,
        original = CASE WHEN q.state = 4 THEN coalesce(q.original, q.seq) ELSE q.original END
      """, time, .keys(keys), .values(payloads, areJSON: valueType == .json))
  }

  func remove(_ keys: [StoreKey], window: Int64) -> Statement { remove("key = ANY($3)", [.keys(keys)], window) }

  func remove(_ range: KeyRange, window: Int64) -> Statement {
    let (condition, bounds) = StoreTable.condition(range, from: 3)
    return remove(condition, bounds, window)
  }

  /// Removes items.
  ///
  /// An id that was remembered before stays so, for the time that ids are remembered at most, because the clock may have been
  /// ahead.
  private func remove(_ condition: String, _ parameters: [Parameter], _ window: Int64) -> Statement {
    Statement(
      """
      \(QueueStatements.clock), kept AS (
        UPDATE \(table) SET state = 4, payload = NULL, group_key = NULL, epoch = NULL, since = \(QueueStatements.present),
          until = least(remembered, \(QueueStatements.present) + $2::int8 * interval '1 microsecond')
        WHERE \(condition) AND \(QueueStatements.isLive) AND remembered > \(QueueStatements.present))
      DELETE FROM \(table) WHERE \(condition) AND \(QueueStatements.isLive)
        AND (remembered IS NULL OR remembered <= \(QueueStatements.present))
      """, [time, QueueStatements.duration(window)] + parameters)
  }

  // MARK: Leasing

  /// Puts back the items whose delays or leases have ended, and removes what is no longer needed.
  ///
  /// The result has one row: whether there may be more to do; whether the lease of an item has ended that was delivered as
  /// often as the queue allows; and the time of the server. Such an item is left to
  /// ``buryExhausted(_:maximumDeliveries:window:retention:)``.
  func settle(maximumDeliveries: Int64) -> Statement {
    Statement(
      """
      \(QueueStatements.clock), due AS MATERIALIZED (
        SELECT seq, state = 2 AND deliveries >= $2 AS is_exhausted FROM \(table)
        WHERE state IN (1, 2) AND until <= \(QueueStatements.present)
        ORDER BY until LIMIT \(QueueStatements.dueLimit) FOR UPDATE SKIP LOCKED),
      old AS MATERIALIZED (
        SELECT seq FROM \(table) WHERE state IN (3, 4) AND until <= \(QueueStatements.present)
        ORDER BY until LIMIT \(QueueStatements.dueLimit) FOR UPDATE SKIP LOCKED),
      freed AS (
        UPDATE \(table) AS q SET state = 0, since = NULL, until = NULL, epoch = NULL,
          is_suspect = q.is_suspect OR q.state = 2
        WHERE seq = ANY(ARRAY(SELECT seq FROM due WHERE NOT is_exhausted))),
      removed AS (DELETE FROM \(table) WHERE seq = ANY(ARRAY(SELECT seq FROM old)))
      SELECT CASE WHEN count(*) = \(QueueStatements.dueLimit) THEN 1::int8 ELSE 0 END,
        CASE WHEN bool_or(is_exhausted) THEN 1::int8 ELSE 0 END,
        \(QueueStatements.microseconds(QueueStatements.present))
      FROM due
      """, time, .integer(maximumDeliveries))
  }

  /// Leases the first items that are due.
  ///
  /// An item that may have crashed its consumer is leased alone. The constant limit only tells the planner that there are
  /// few rows; no more than `max` are locked.
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at most 1000.
  ///   - lease: The duration of the leases, in microseconds.
  ///   - epoch: A random even number, to which 1 is added for items of groups.
  ///   - mayBeSuspect: A Boolean value that indicates whether an item that may have crashed its consumer is leased.
  ///   - skipped: The numbers of items that are passed over.
  func lease(
    _ max: Int, _ lease: Int64, epoch: Int64, mayBeSuspect: Bool, skipping skipped: some Collection<Int64>
  ) -> Statement {
    let skip = skipped.isEmpty ? "" : "AND seq <> ALL($6)"
    let statement = Statement(
      """
      \(QueueStatements.clock), found AS MATERIALIZED (
        SELECT * FROM (
          SELECT seq, priority, is_suspect AND deliveries >= 2 AS is_alone FROM \(table)
          WHERE state = 0 AND NOT \(isPaused) \(skip)
          ORDER BY priority DESC, seq LIMIT 1000 FOR UPDATE SKIP LOCKED) AS head LIMIT $2),
      placed AS (
        SELECT seq, row_number() OVER places AS place, count(*) FILTER (WHERE is_alone) OVER places AS alone_count
        FROM found WINDOW places AS (ORDER BY priority DESC, seq ROWS UNBOUNDED PRECEDING))
      UPDATE \(table) AS q SET state = 2, since = \(QueueStatements.present),
        until = \(QueueStatements.present) + $3::int8 * interval '1 microsecond', deliveries = q.deliveries + 1,
        epoch = $4::int8 | CASE WHEN q.group_key IS NULL THEN 0 ELSE 1 END
      WHERE q.seq = ANY(ARRAY(SELECT seq FROM placed WHERE alone_count = 0 OR place = 1 AND $5::int8 = 1))
      RETURNING q.seq, q.deliveries, q.epoch, q.key, q.payload, \(QueueStatements.microseconds("q.arrival")), q.priority,
        q.group_key, CASE WHEN q.is_suspect AND q.deliveries > 2 THEN 1::int8 ELSE 0 END
      """, time, .integer(Int64(max)), QueueStatements.duration(lease), .integer(epoch), .integer(mayBeSuspect ? 1 : 0))
    guard !skipped.isEmpty else { return statement }
    return Statement(statement.sql, statement.parameters + [.integers(skipped.map { $0 })])
  }

  /// Looks for work of ``settle(maximumDeliveries:)`` and ``lease(_:_:epoch:mayBeSuspect:skipping:)`` without changing
  /// anything.
  ///
  /// The result has one row: whether there may be any; the time until the next end of a delay or lease, in microseconds; and
  /// the time of the server.
  var look: Statement {
    let present = QueueStatements.present
    let end = "SELECT min(until) FROM \(table) WHERE state IN (1, 2) AND until > \(present)"
    return Statement(
      """
      \(QueueStatements.clock)
      SELECT CASE WHEN EXISTS (SELECT FROM \(table) WHERE state = 0) AND NOT \(isPaused)
          OR EXISTS (SELECT FROM \(table) WHERE state IN (1, 2) AND until <= \(present))
          OR EXISTS (SELECT FROM \(table) WHERE state IN (3, 4) AND until <= \(present))
        THEN 1::int8 ELSE 0 END,
        \(QueueStatements.microseconds("(\(end)) - \(present)")),
        \(QueueStatements.microseconds(present))
      """, time)
  }

  /// Returns the time until the next end of a delay or lease, in microseconds, if there is any.
  var nextEnd: Statement {
    Statement(
      """
      \(QueueStatements.clock)
      SELECT \(QueueStatements.microseconds("until - \(QueueStatements.present)")) FROM \(table)
      WHERE state IN (1, 2) AND until > \(QueueStatements.present) ORDER BY until LIMIT 1
      """, time)
  }

  // MARK: Receipts

  /// Columns and arrays of receipts, from the second parameter on.
  private static let receipts = "unnest($2::int8[], $3::int8[], $4::int8[]"

  private static func parameters(_ receipts: [DeliveryReceipt]) -> [Parameter] {
    [
      .integers(receipts.map { Int64(clamping: $0.sequence) }), .integers(receipts.map { Int64($0.attempt) }),
      .integers(receipts.map { Int64(bitPattern: $0.epoch) }),
    ]
  }

  /// A part of a statement that locks the leased items of receipts in the order of their keys.
  ///
  /// `IS TRUE` and the concatenation keep the planner from reading all leases, or all keys in order, which it thinks are few when it makes
  /// its plan.
  private func held(_ columns: String, _ arrays: String = "", _ names: String = "") -> String {
    """
    \(QueueStatements.clock), held AS MATERIALIZED (
      SELECT q.seq, q.deliveries, q.epoch\(columns) FROM \(table) AS q
      JOIN \(QueueStatements.receipts)\(arrays)) AS given(seq, deliveries, epoch\(names))
        ON q.seq = given.seq AND q.deliveries = given.deliveries AND q.epoch = given.epoch
      WHERE q.seq = ANY($2) AND (q.state = 2 AND q.until > \(QueueStatements.present)) IS TRUE
      ORDER BY q.key || '' FOR UPDATE OF q)
    """
  }

  /// Removes the items of receipts that are not stale, and returns these receipts.
  ///
  /// - Parameter window: The time that ids are remembered, in microseconds.
  func acknowledge(_ receipts: [DeliveryReceipt], window: Int64) -> Statement {
    Statement(
      """
      \(held(", q.is_named AND $5::int8 > 0 AS is_kept")),
      removed AS (DELETE FROM \(table) WHERE seq = ANY(ARRAY(SELECT seq FROM held WHERE NOT is_kept))),
      kept AS (
        UPDATE \(table) SET state = 4, payload = NULL, group_key = NULL, epoch = NULL, since = \(QueueStatements.present),
          until = \(QueueStatements.present) + $5::int8 * interval '1 microsecond', remembered = NULL, original = NULL
        WHERE seq = ANY(ARRAY(SELECT seq FROM held WHERE is_kept)))
      SELECT seq, deliveries, epoch FROM held
      """, [time] + QueueStatements.parameters(receipts) + [QueueStatements.duration(window)])
  }

  /// Resets leases so that they end some time from now, and returns the receipts that are not stale.
  func extend(_ receipts: [DeliveryReceipt], lease: Int64) -> Statement {
    Statement(
      """
      \(held(""))
      UPDATE \(table) AS q SET since = \(QueueStatements.present),
        until = \(QueueStatements.present) + $5::int8 * interval '1 microsecond'
      WHERE q.seq = ANY(ARRAY(SELECT seq FROM held)) RETURNING q.seq, q.deliveries, q.epoch
      """, [time] + QueueStatements.parameters(receipts) + [QueueStatements.duration(lease)])
  }

  /// Releases items or makes them dead letters, and returns the receipts that are not stale, and of dead letters the key
  /// and the reason.
  func release(_ releases: [Release], window: Int64, retention: Int64?) -> Statement {
    let freed = """
      UPDATE \(table) AS q SET state = CASE WHEN held.delay > 0 THEN 1 ELSE 0 END, epoch = NULL,
        since = CASE WHEN held.delay > 0 THEN \(QueueStatements.present) END,
        until = CASE WHEN held.delay > 0 THEN \(QueueStatements.present) + held.delay * interval '1 microsecond' END,
        deliveries = q.deliveries - (1 - held.counts)::int4, is_suspect = held.counts = 0 AND q.is_suspect
      FROM held WHERE q.seq = ANY(ARRAY(SELECT seq FROM held)) AND q.seq = held.seq AND held.reason IS NULL
      """
    return Statement(
      """
      \(held(
        ", given.delay, given.counts, given.reason", ", $5::int8[], $6::int8[], $7::int8[]", ", delay, counts, reason")),
      freed AS (\(freed)), dying AS (SELECT seq, reason FROM held WHERE reason IS NOT NULL),
      \(burial(window: "$8", retention: "$9"))
      SELECT held.seq, held.deliveries, held.epoch, died.name, died.reason
      FROM held LEFT JOIN died ON died.seq = held.seq ORDER BY held.seq
      """,
      [time] + QueueStatements.parameters(releases.map(\.receipt)) + [
        QueueStatements.durations(releases.map(\.delay)), .integers(releases.map { $0.counts ? 1 : 0 }),
        .integers(releases.map { $0.deadLetterReason.map { Int64($0.rawValue) } }), QueueStatements.duration(window),
        QueueStatements.duration(retention),
      ])
  }
}
#endif
