import Larder
import LarderTesting

/// The maintenance of a store, with one fault or none.
struct MutantMaintenance<Store: DataStore>: StoreMaintenance where Store.Value == SampleValue? {
  let base: any StoreMaintenance
  let store: Store
  let fault: Fault

  func statistics() async throws -> StoreStatistics {
    if fault == .maintainsWhenClosed { return StoreStatistics(entryCount: 0, bytesOnDisk: nil) }
    var statistics = try await base.statistics()
    if fault == .countsWronglyInStatistics { statistics.entryCount += 1 }
    return statistics
  }

  func verify() async throws -> VerificationReport {
    fault == .verifiesNothing ? VerificationReport(entryCount: 0) : try await base.verify()
  }

  func compact() async throws {
    try await base.compact()
    guard fault == .compactingLosesAnEntry,
      let key = try await store.keys(in: .all, limit: 1, order: .ascending).first
    else { return }
    try await store.removeValue(forKey: key)
  }

  func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}
