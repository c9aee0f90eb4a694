#if Postgres
public import Larder

extension PostgresQueue: MaintainableStore {
  /// Returns the number of items in each state, and the size of the table with its indexes on the server.
  ///
  /// - Throws: `StoreError`: `conflict`; `closed`; `timedOut`; `ioFailed`.
  public func storeStatistics() async throws -> StoreStatistics {
    let counts = try await counts()
    let size = try await handle.run(.statistics) {
      try await handle.read(
        Statement("SELECT pg_total_relation_size($1::text::regclass)", .text(statements.table)), for: .statistics)
    }
    let details = [
      ("waiting", counts.waiting), ("delayed", counts.delayed), ("leased", counts.leased), ("dead", counts.dead),
    ]
    return StoreStatistics(
      entryCount: counts.live, bytesOnDisk: size.integer(0, 0),
      details: details.map { StoreStatistics.Detail(name: $0, value: Int64($1)) })
  }

  /// Decodes every item, in one snapshot, and reports those that cannot be decoded.
  ///
  /// - Throws: `StoreError`: `conflict`; `corrupted` if the server finds damage; `closed`; `timedOut`; `ioFailed`.
  public func verify() async throws -> VerificationReport {
    try await handle.run(.verify) {
      try await handle.transaction(for: .verify, isReading: true) { [self] session, _ in
        let (statements, coder, name) = (statements, coder, handle.name)
        var report = VerificationReport(entryCount: 0)
        try await report.addEntries(of: name) { range, limit in
          let page = statements.scan("key, payload", in: range, limit: limit, order: .ascending)
          let rows = try await session.run([page], for: .verify, store: name)[0]
          return (0..<rows.rowCount).map { row in
            let key = rows.key(row, 0)
            return (key, rows.withBytes(row, 1) { $0.flatMap { coder.problem(in: $0, forStoredKey: key) } })
          }
        }
        return TransactionEnd(result: report, commits: false)
      }
    }
  }

  /// Throws `unsupported`, because the server reuses free space by itself (autovacuum).
  public func compact() async throws {
    try handle.checkOpen(for: .compact)
    throw StoreError(
      .unsupported, during: .compact, store: handle.name,
      message: "PostgreSQL reuses free space by itself; see VACUUM in its documentation")
  }

  /// Throws `unsupported`, because the server has tools for it, such as `pg_dump`.
  public func backup(to path: String, compacting: Bool) async throws {
    try handle.checkOpen(for: .backup)
    throw StoreError(
      .unsupported, during: .backup, store: handle.name,
      message: "copy the database with pg_dump or pg_basebackup, or the entries with larder copy")
  }
}
#endif
