#if Metrics
internal import Larder

/// The maintenance of the base of a ``MeteredStore``, measured.
struct MeteredMaintenance: StoreMaintenance {
  let base: any StoreMaintenance
  let meter: StoreMeter

  func statistics() async throws -> StoreStatistics {
    try await meter.measure(.statistics) { try await base.statistics() }
  }

  func verify() async throws -> VerificationReport {
    try await meter.measure(.verify) { try await base.verify() }
  }

  func compact() async throws {
    try await meter.measure(.compact) { try await base.compact() }
  }

  func backup(to path: String, compacting: Bool) async throws {
    try await meter.measure(.backup) { try await base.backup(to: path, compacting: compacting) }
  }
}
#endif
