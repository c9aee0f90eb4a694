#if Postgres
import Larder

/// Statements that make, move and remove dead letters.
extension QueueStatements {
  /// Turns items that were delivered as often as the queue allows into dead letters when their leases have ended, and
  /// returns them in the columns of ``release(_:window:retention:)``.
  ///
  /// Items whose groups are not locked with the number `call` are left.
  func buryExhausted(_ call: Int64, maximumDeliveries: Int64, window: Int64, retention: Int64?) -> Statement {
    Statement(
      """
      \(QueueStatements.clock), dying AS MATERIALIZED (
        SELECT seq, 1 AS reason FROM \(table) AS q
        WHERE state = 2 AND until <= \(QueueStatements.present) AND deliveries >= $2
          AND (group_key IS NULL OR group_key = ANY(ARRAY(
            SELECT held.group_key FROM \(table) AS held WHERE \(QueueStatements.isLocked("held", with: "$3")))))
        ORDER BY until LIMIT \(QueueStatements.dueLimit) FOR UPDATE SKIP LOCKED),
      \(burial(window: "$4", retention: "$5"))
      SELECT seq, deliveries, 0::int8, name, reason FROM died ORDER BY seq
      """, time, .integer(maximumDeliveries), .integer(call), QueueStatements.duration(window),
      QueueStatements.duration(retention))
  }

  /// A part of a statement that makes dead letters of the items in `dying(seq, reason)`, and remembers their ids.
  ///
  /// A dead letter has no `key`, so its id can be remembered, or enqueued again later.
  func burial(window: String, retention: String) -> String {
    """
    died AS (
      UPDATE \(table) AS q SET state = 3, name = q.key, key = NULL, reason = dying.reason, epoch = NULL,
        since = \(QueueStatements.present),
        until = \(QueueStatements.present) + \(retention)::int8 * interval '1 microsecond'
      FROM dying WHERE q.seq = ANY(ARRAY(SELECT seq FROM dying)) AND q.seq = dying.seq RETURNING q.seq, q.name, q.deliveries, q.reason, q.is_named),
    noted AS (
      INSERT INTO \(table)(state, key, is_named, since, until, original)
      SELECT 4, name, true, \(QueueStatements.present), \(QueueStatements.present) + \(window)::int8 * interval '1 microsecond', seq
      FROM died WHERE is_named AND \(window)::int8 > 0)
    """
  }

  // MARK: Listing and moving

  /// Returns dead letters in the order of arrival.
  func deadLetters(limit: Int, after sequence: Int64) -> Statement {
    Statement(
      """
      \(QueueStatements.clock)
      SELECT seq, name, deliveries, reason, \(QueueStatements.microseconds("since")), payload FROM \(table)
      WHERE state = 3 AND seq > $2 AND (until IS NULL OR until > \(QueueStatements.present)) ORDER BY seq LIMIT $3
      """, time, .integer(sequence), .integer(Int64(limit)))
  }

  func purge(_ keys: [StoreKey]?) -> Statement {
    guard let keys else { return Statement("DELETE FROM \(table) WHERE state = 3") }
    return Statement("DELETE FROM \(table) WHERE name = ANY($1) AND \(QueueStatements.isDead)", .keys(keys))
  }

  /// Moves the latest dead letter of each key to the end of the queue, unless an item in the queue has one of the keys.
  ///
  /// The result has one row: the number of dead letters moved, and such a key.
  func requeue(_ keys: [StoreKey]) -> Statement {
    Statement(
      """
      \(QueueStatements.clock), chosen AS MATERIALIZED (
        SELECT DISTINCT ON (dead.name) dead.*, wanted.place
        FROM unnest($2::bytea[]) WITH ORDINALITY AS wanted(name, place)
        JOIN \(table) AS dead ON dead.name = ANY($2) AND dead.name = wanted.name AND (dead.state = 3) IS TRUE
        ORDER BY dead.name, dead.seq DESC, wanted.place),
      blocking AS MATERIALIZED (
        SELECT key FROM \(table) WHERE key = ANY(ARRAY(SELECT name FROM chosen)) AND \(QueueStatements.isLive)),
      \(requeuing("WHERE NOT EXISTS (SELECT FROM blocking) ORDER BY place"))
      SELECT (SELECT count(*) FROM added), (SELECT key FROM blocking LIMIT 1)
      """, time, .keys(keys))
  }

  /// The greatest number of a dead letter.
  var lastDeadLetter: Statement { Statement("SELECT max(seq) FROM \(table) WHERE state = 3") }

  /// A query for the next dead letters that one statement moves.
  func deadLetterPage(after first: String, upTo last: String) -> String {
    """
    SELECT * FROM \(table) WHERE state = 3 AND seq > \(first) AND seq <= \(last)
    ORDER BY seq LIMIT \(QueueStatements.dueLimit)
    """
  }

  /// Moves dead letters to the end of the queue, except those whose keys are in it.
  ///
  /// The result has one row: the number of dead letters moved, and the last one that was considered.
  func requeue(after first: Int64, upTo last: Int64) -> Statement {
    Statement(
      """
      \(QueueStatements.clock), page AS MATERIALIZED (\(deadLetterPage(after: "$2", upTo: "$3"))),
      chosen AS MATERIALIZED (
        SELECT DISTINCT ON (page.name) page.* FROM page WHERE page.name NOT IN (
          SELECT key FROM \(table) WHERE key = ANY(ARRAY(SELECT name FROM page)) AND \(QueueStatements.isLive))
        ORDER BY page.name, page.seq),
      \(requeuing("ORDER BY seq"))
      SELECT (SELECT count(*) FROM added), (SELECT max(seq) FROM page)
      """, time, .integer(first), .integer(last))
  }

  /// A part of a statement that moves the dead letters in `chosen` to the end of the queue.
  private func requeuing(_ rest: String) -> String {
    """
    numbered AS MATERIALIZED (
      SELECT \(nextSequence) AS seq, list.*
      FROM (SELECT name, payload, priority, group_key, is_named FROM chosen \(rest)) AS list),
    added AS (
      INSERT INTO \(table) AS q(\(QueueStatements.columns))
      SELECT seq, name, payload, priority, group_key, is_named, now, CASE WHEN group_key IS NULL THEN 0 ELSE 5 END, NULL,
        NULL
      FROM numbered CROSS JOIN clock ORDER BY name
      ON CONFLICT (key) DO UPDATE SET \(QueueStatements.revival), remembered = q.until,
        original = coalesce(q.original, q.seq) WHERE q.state = 4
      RETURNING key),
    left_behind AS (
      DELETE FROM \(table) WHERE seq = ANY(ARRAY(
        SELECT chosen.seq FROM chosen JOIN added ON added.key = chosen.name)))
    """
  }
}
#endif
