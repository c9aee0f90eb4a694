#if Postgres
public import Larder

extension PostgresQueue: MaintainableStore {
  /// Returns the number of items in each state, and the size of the table with its indexes on the server.
  ///
  /// - Throws: `StoreError`: `conflict`; `closed`; `timedOut`; `ioFailed`.
  public func storeStatistics() async throws -> StoreStatistics {
    let counts = try await counts()
    let size = try await handle.running(.statistics) { try await handle.size(ofTable: statements.table) }
    return StoreStatistics(entryCount: counts.live, bytesOnDisk: size, details: counts.details)
  }

  /// Decodes every item, in one snapshot, and reports those that cannot be decoded.
  ///
  /// - Throws: `StoreError`: `conflict`; `corrupted` if the server finds damage; `closed`; `timedOut`; `ioFailed`.
  public func verify() async throws -> VerificationReport {
    try await handle.verify(with: coder) { [statements] in
      statements.scan("key, payload", in: $0, limit: $1, order: .ascending)
    }
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
