#if LMDB
import CLMDB
public import Larder
import LarderFiles

extension LMDBStore: MaintainableStore {
  /// The number of entries verified in one snapshot.
  ///
  /// A longer snapshot would keep writers from reusing free pages.
  private static var verifiedPageSize: Int { 1000 }

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
    var range = KeyRange.all
    while let lastKey = try await verify(range, into: &report) {
      range = range.after(lastKey)
    }
    return report
  }

  /// Verifies the first entries of a range.
  ///
  /// - Returns: The key of the last verified entry, or `nil` if the end of the range was reached.
  private func verify(_ range: KeyRange, into report: inout VerificationReport) async throws -> StoreKey? {
    let (handle, identifier, coder) = (handle, identifier, coder)
    let page = try await handle.environment.maintenanceQueue.run {
      try handle.read(for: .verify) { transaction in
        var keys: [StoreKey] = []
        var findings: [VerificationReport.Finding] = []
        var scan = try RawDatabase(transaction: transaction, identifier: identifier).scan(range)
        while keys.count < LMDBStore.verifiedPageSize, let (bytes, value) = try scan.next() {
          let key = StoreKey(copying: bytes)
          if let previous = keys.last, previous >= key {
            findings.append(
              VerificationReport.Finding(key: key, place: handle.name, message: "the key is not in order"))
          }
          keys.append(key)
          do {
            _ = try coder.value(of: value, forKey: key, during: .verify)
          } catch {
            findings.append(
              VerificationReport.Finding(key: key, place: handle.name, message: "the value cannot be decoded"))
          }
        }
        return (count: keys.count, lastKey: keys.last, findings: findings)
      }
    }
    report.entryCount += page.count
    report.findings += page.findings
    return page.count < LMDBStore.verifiedPageSize ? nil : page.lastKey
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
