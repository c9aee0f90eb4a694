import Larder

/// The maintenance of a base below a ``WriteBehindStore``, which first gets what was accepted.
struct WriteBehindMaintenance: StoreMaintenance {
  let base: any StoreMaintenance
  let drain: @Sendable () async -> Void

  init(base: any StoreMaintenance, drain: @escaping @Sendable () async -> Void) {
    self.base = base
    self.drain = drain
  }

  func statistics() async throws -> StoreStatistics {
    await drain()
    return try await base.statistics()
  }

  func verify() async throws -> VerificationReport {
    await drain()
    return try await base.verify()
  }

  func compact() async throws {
    await drain()
    try await base.compact()
  }

  func backup(to path: String, compacting: Bool) async throws {
    await drain()
    try await base.backup(to: path, compacting: compacting)
  }
}
