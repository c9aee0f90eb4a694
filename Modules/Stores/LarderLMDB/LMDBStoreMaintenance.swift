#if LMDB
import CLMDB
import Larder
import LarderFiles

/// Statistics, verification, compaction and backup of an ``LMDBStore``.
struct LMDBStoreMaintenance<Value: Sendable>: StoreMaintenance {
  /// How many entries are verified in one snapshot: a longer one would keep others from using free space again.
  private static var pageSize: Int { 1000 }

  let lease: EnvironmentLease
  let coder: LMDBValueCoder<Value>
  let identifier: MDB_dbi

  func statistics() async throws -> StoreStatistics {
    let (lease, identifier) = (lease, identifier)
    return try await lease.environment.maintenanceQueue.run {
      try lease.read(for: .statistics) { transaction in
        let tree = try RawDatabase(transaction: transaction, identifier: identifier).statistics()
        let environment = try lease.environment.statistics(in: transaction)
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

  func verify() async throws -> VerificationReport {
    var report = VerificationReport(entryCount: 0)
    var range = KeyRange.all
    while let lastKey = try await verify(range, into: &report) {
      range = range.after(lastKey)
    }
    return report
  }

  /// Verifies the first entries of a range, and returns the key of the last of them, or `nil` where that was the end.
  private func verify(_ range: KeyRange, into report: inout VerificationReport) async throws -> StoreKey? {
    let (lease, identifier, coder) = (lease, identifier, coder)
    let page = try await lease.environment.maintenanceQueue.run {
      try lease.read(for: .verify) { transaction in
        var keys: [StoreKey] = []
        var findings: [VerificationReport.Finding] = []
        var scan = try RawDatabase(transaction: transaction, identifier: identifier).scan(range)
        while keys.count < LMDBStoreMaintenance.pageSize, let (bytes, value) = try scan.next() {
          let key = StoreKey(copying: bytes)
          if let previous = keys.last, previous >= key {
            findings.append(
              VerificationReport.Finding(key: key, place: lease.name, message: "the key is not in order"))
          }
          keys.append(key)
          do {
            _ = try coder.value(of: value, forKey: key, during: .verify)
          } catch {
            findings.append(
              VerificationReport.Finding(key: key, place: lease.name, message: "the value cannot be decoded"))
          }
        }
        return (count: keys.count, lastKey: keys.last, findings: findings)
      }
    }
    report.entryCount += page.count
    report.findings += page.findings
    return page.count < LMDBStoreMaintenance.pageSize ? nil : page.lastKey
  }

  func compact() async throws {
    try lease.checkOpen(for: .compact)
    throw StoreError(
      .unsupported, during: .compact, store: lease.name,
      message:
        "compact is unsupported: LMDB uses free pages again by itself, and cannot give them back while others may have "
        + "the file open; a compacting backup is a copy without them")
  }

  func backup(to path: String, compacting: Bool) async throws {
    try await lease.backup(to: path, compacting: compacting)
  }
}
#endif
