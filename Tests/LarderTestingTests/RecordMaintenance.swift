import Larder

/// The maintenance of a ``RecordStore``, which has nothing to compact and makes no copies.
struct RecordMaintenance<Value: Codable & Sendable>: StoreMaintenance {
  let store: RecordStore<Value>

  func statistics() throws -> StoreStatistics {
    StoreStatistics(entryCount: try store.count(in: .all), bytesOnDisk: nil)
  }

  func verify() throws -> VerificationReport {
    let keys = try store.keys(in: .all, limit: .max, order: .ascending)
    var report = VerificationReport(entryCount: keys.count)
    for key in keys {
      do {
        _ = try store.value(forKey: key)
      } catch let error as StoreError where error.code == .corrupted {
        report.findings.append(VerificationReport.Finding(key: key, place: "records", message: error.message))
      }
    }
    return report
  }

  func compact() throws {
    try store.synchronize()
  }

  func backup(to path: String, compacting: Bool) throws {
    try store.synchronize()
    throw StoreError(.unsupported, during: .backup, message: "there are no copies")
  }
}
