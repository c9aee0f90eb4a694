/// The maintenance of a ``TypedView``: it counts and verifies what the view sees, and compacts and backs up all of the
/// store below.
struct TypedViewMaintenance<Base: DataStore, Value: Sendable>: StoreMaintenance where Base.Value == [UInt8] {
  let view: TypedView<Base, Value>
  let base: any StoreMaintenance

  func statistics() async throws -> StoreStatistics {
    var statistics = try await base.statistics()
    statistics.entryCount = try await view.count(in: .all)
    return statistics
  }

  func verify() async throws -> VerificationReport {
    var report = VerificationReport(entryCount: 0)
    for try await key in view.keys(in: .all) {
      report.entryCount += 1
      do {
        _ = try await view.value(forKey: key)
      } catch let error as StoreError where error.code == .corrupted {
        report.findings.append(VerificationReport.Finding(key: key, place: error.store, message: error.message))
      }
    }
    return report
  }

  func compact() async throws {
    try await base.compact()
  }

  func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}
