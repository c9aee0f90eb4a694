#if Postgres
public import Larder

/// The maintenance that stores and queues share.
extension PostgresHandle {
  /// Decodes every entry, in one snapshot, and reports those that cannot be decoded.
  ///
  /// - Parameters:
  ///   - coder: The coder of the values.
  ///   - page: A closure that returns a statement for the keys and values of a range.
  /// - Throws: ``StoreError``.
  func verify(
    with coder: ValueCoder<some Sendable>, page: @escaping @Sendable (_ range: KeyRange, _ limit: Int) -> Statement
  ) async throws -> VerificationReport {
    try await running(.verify) {
      try await transaction(for: .verify, isReading: true) { [name] session, _ in
        var report = VerificationReport(entryCount: 0)
        try await report.addEntries(of: name) { range, limit in
          let rows = try await session.run([page(range, limit)], for: .verify, store: name)[0]
          return (0..<rows.rowCount).map { row in
            let key = rows.key(row, 0)
            return (key, rows.withBytes(row, 1) { $0.flatMap { coder.problem(in: $0, forStoredKey: key) } })
          }
        }
        return TransactionEnd(result: report, commits: false)
      }
    }
  }

  /// Returns the size of a table with its indexes, in bytes.
  ///
  /// - Throws: ``StoreError``.
  func size(ofTable quotedName: String) async throws -> Int64? {
    let statement = Statement("SELECT pg_total_relation_size($1::text::regclass)", .text(quotedName))
    return try await read(statement, for: .statistics).integer(0, 0)
  }

  /// Waits until all previous writes are durable, by a small transaction that waits for the disk of the server.
  ///
  /// - Throws: ``StoreError``.
  func synchronize() async throws {
    try await running(.synchronize) {
      // Each write was durable when it returned.
      guard pool.configuration.durability != .synced, information.access == .readWrite else { return }
      try await write(
        [Statement("SET LOCAL synchronous_commit = on"), TransactionStatus.replicatedMessage], for: .synchronize)
    }
  }

  /// Throws `unsupported`, because the server reuses free space by itself.
  func refuseCompaction() throws {
    try refuse(.compact, "PostgreSQL reuses free space by itself; see VACUUM in its documentation")
  }

  /// Throws `unsupported`, because the server has tools for backups.
  func refuseBackup() throws {
    try refuse(.backup, "copy the database with pg_dump or pg_basebackup, or the entries with larder copy")
  }

  private func refuse(_ operation: StoreOperation, _ message: String) throws {
    try checkOpen(for: operation)
    throw StoreError(.unsupported, during: operation, store: name, message: message)
  }
}

extension PostgresStore: MaintainableStore {
  /// Returns the number of entries, and the size of the table with its index on the server.
  ///
  /// - Throws: `StoreError`: `conflict`; `closed`; `timedOut`; `ioFailed`.
  public func storeStatistics() async throws -> StoreStatistics {
    try await handle.running(.statistics) {
      let count = try await handle.read(table.count(in: .all), for: .statistics)
      return StoreStatistics(
        entryCount: Int(count.integer(0, 0) ?? 0), bytesOnDisk: try await handle.size(ofTable: table.quotedName))
    }
  }

  /// Decodes every entry, in one snapshot, and reports those that cannot be decoded.
  ///
  /// - Throws: `StoreError`: `conflict`; `corrupted` if the server finds damage; `closed`; `timedOut`; `ioFailed`.
  public func verify() async throws -> VerificationReport {
    try await handle.verify(with: coder) { [table] in table.entries(in: $0, limit: $1, order: .ascending) }
  }

  /// Throws `unsupported`, because the server reuses free space by itself (autovacuum).
  public func compact() async throws {
    try handle.refuseCompaction()
  }

  /// Throws `unsupported`, because the server has tools for it, such as `pg_dump`.
  public func backup(to path: String, compacting: Bool) async throws {
    try handle.refuseBackup()
  }
}
#endif
