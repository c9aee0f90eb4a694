#if Postgres
import Larder

/// Statements that list leased items and groups.
extension QueueStatements {
  /// The most leased and delayed items that one statement looks at.
  static let lookLimit = 512

  /// Looks at the next leased and delayed items, and returns the leased ones, up to one more than the limit, and the last one of
  /// those that it has looked at.
  ///
  /// The columns are the number, the key, the group, the deliveries, the deadline in microseconds, the state, and the number of
  /// items that it has looked at.
  ///
  /// - Parameters:
  ///   - limit: The number of leased items.
  ///   - position: The position after which to begin, or `nil`.
  func leasedItems(limit: Int, after position: LeasePosition?) -> Statement {
    let rest = """
      FROM \(table) WHERE state IN (1, 2) AND until > \(QueueStatements.present)
        AND (until, seq) > (timestamptz 'epoch' + $3::int8 * interval '1 microsecond', $4::int8)
      """
    // The index has only the deadlines. The inner query finds the last one of the page in it, so that no more rows are sorted,
    // whatever the planner knows about the table.
    return Statement(
      """
      \(QueueStatements.clock), looked AS MATERIALIZED (
        SELECT seq, key, group_key, deliveries, until, state \(rest) AND until <= coalesce(
          (SELECT until \(rest) ORDER BY until LIMIT 1 OFFSET \(QueueStatements.lookLimit - 1)), 'infinity')
        ORDER BY until, seq LIMIT \(QueueStatements.lookLimit))
      SELECT seq, key, group_key, deliveries, \(QueueStatements.microseconds("until")), state, (SELECT count(*) FROM looked)
      FROM looked
      WHERE state = 2 OR seq = (SELECT seq FROM looked ORDER BY until DESC, seq DESC LIMIT 1)
      ORDER BY until, seq LIMIT $2
      """, time, .integer(Int64(limit) + 1), .integer(position?.until ?? 0), .integer(position?.sequence ?? 0))
  }

  /// Returns the next groups with the numbers of their items, and the first item of each if it holds back the others.
  ///
  /// The columns are the group, the number of items up to the limit, and the number, the key, the group, the deliveries, the
  /// deadline in microseconds and the state of the item, or NULL. The row of a group can outlive its items for a moment, with the number 0.
  func groups(limit: Int, after group: StoreKey) -> Statement {
    let members = "FROM \(table) AS item WHERE item.group_key = looked.name AND item.\(QueueStatements.isLive)"
    return Statement(
      """
      \(QueueStatements.clock), looked AS MATERIALIZED (
        SELECT group_key AS name FROM \(table) WHERE state = 6 AND group_key > $2 ORDER BY group_key LIMIT $3)
      SELECT looked.name, (SELECT count(*) FROM (SELECT \(members) LIMIT \(QueueGroup.countLimit)) AS counted),
        first.seq, first.key, first.group_key, first.deliveries, \(QueueStatements.microseconds("first.until")), first.state
      FROM looked LEFT JOIN LATERAL (
        SELECT item.seq, item.key, item.group_key, item.deliveries, item.until, item.state \(members)
        ORDER BY item.seq LIMIT 1) AS first ON first.state IN (1, 2) AND first.until > \(QueueStatements.present)
      ORDER BY looked.name
      """, time, .key(group), .integer(Int64(limit)))
  }
}
#endif
