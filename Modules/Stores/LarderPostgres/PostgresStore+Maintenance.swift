#if Postgres
public import Larder

extension PostgresStore: MaintainableStore {
  /// Returns the number of entries, and the size of the table with its index on the server.
  ///
  /// - Throws: `StoreError`: `conflict`; `closed`; `timedOut`; `ioFailed`.
  public func storeStatistics() async throws -> StoreStatistics {
    try await handle.run(.statistics) {
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
