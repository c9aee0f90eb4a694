#if LMDB
import CLMDB
public import Larder
import LarderFiles

extension LMDBStore: MaintainableStore {
  /// Returns statistics about the store; see `MaintainableStore/storeStatistics()`.
  public func storeStatistics() async throws -> StoreStatistics {
    let (handle, identifier) = (handle, identifier)
    return try await handle.environment.maintenanceQueue.run {
      try handle.read(for: .statistics) { transaction in
        let tree = try RawDatabase(transaction: transaction, identifier: identifier).statistics()
        let environment = try handle.environment.statistics(in: transaction)
        let details = [
          ("depth", Int(tree.ms_depth)), ("branchPages", tree.ms_branch_pages), ("leafPages", tree.ms_leaf_pages),
          ("overflowPages", tree.ms_overflow_pages), ("pageBytes", environment.pageSize),
          ("environmentPages", environment.pageCount), ("environmentFreePages", environment.freePageCount),
          ("mapBytes", environment.mapSize), ("readers", environment.readerCount),
          ("maximumReaders", environment.maximumReaderCount), ("lastTransaction", environment.lastTransaction),
        ]
        return StoreStatistics(
          entryCount: tree.ms_entries, bytesOnDisk: Int64(environment.pageCount * environment.pageSize),
          details: details.map { StoreStatistics.Detail(name: $0, value: Int64($1)) })
      }
    }
  }

  /// Reads and checks all entries; see `MaintainableStore/verify()`.
  public func verify() async throws -> VerificationReport {
    var report = VerificationReport(entryCount: 0)
    try await report.addEntries(of: handle.name) { [self] in try await verifiedEntries(in: $0, limit: $1) }
    return report
  }

  /// Returns the first keys of a range, each with the problem of its entry, if any.
  private func verifiedEntries(in range: KeyRange, limit: Int) async throws -> [(key: StoreKey, problem: String?)] {
    let (handle, identifier, coder) = (handle, identifier, coder)
    return try await handle.environment.maintenanceQueue.run {
      try handle.read(for: .verify) { transaction in
        var entries: [(key: StoreKey, problem: String?)] = []
        var scan = try RawDatabase(transaction: transaction, identifier: identifier).scan(range)
        while entries.count < limit, let (bytes, value) = try scan.next() {
          let key = StoreKey(copying: bytes)
          let isInOrder = entries.last.map { $0.key < key } ?? true
          entries.append((key, isInOrder ? coder.problem(in: value, forKey: key) : "the key is not in order"))
        }
        return entries
      }
    }
  }

  /// Throws `unsupported`: LMDB reuses free pages but cannot shrink the file; see `MaintainableStore/compact()`.
  public func compact() async throws {
    try handle.checkOpen(for: .compact)
    throw StoreError(
      .unsupported, during: .compact, store: handle.name,
      message:
        "compact is unsupported: LMDB reuses free pages and cannot return them to the file system while others may "
        + "have the file open; to get a smaller file, make a compacting backup")
  }

  /// Writes a complete copy of the environment; see `MaintainableStore/backup(to:compacting:)`.
  public func backup(to path: String, compacting: Bool) async throws {
    try await handle.backup(to: path, compacting: compacting)
  }
}
#endif
