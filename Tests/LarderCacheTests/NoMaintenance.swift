import Larder

/// A maintenance that does nothing, for telling whether it is handed on.
struct NoMaintenance: StoreMaintenance {
  func statistics() async throws -> StoreStatistics { StoreStatistics(entryCount: 0) }
  func verify() async throws -> VerificationReport { VerificationReport(entryCount: 0) }
  func compact() async throws {}
  func backup(to path: String, compacting: Bool) async throws {}
}
