import Larder

/// Maintenance that does nothing but note it.
struct NotedMaintenance: StoreMaintenance {
  let note: @Sendable (String) -> Void

  func statistics() -> StoreStatistics {
    note("statistics")
    return StoreStatistics(entryCount: 0)
  }
  func verify() -> VerificationReport {
    note("verify")
    return VerificationReport(entryCount: 0)
  }
  func compact() { note("compact") }
  func backup(to path: String, compacting: Bool) { note("backup \(path) \(compacting)") }
}
