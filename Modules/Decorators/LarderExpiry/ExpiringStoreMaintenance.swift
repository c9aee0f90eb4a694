import Larder

/// The maintenance of an ``ExpiringStore``: that of its base, whose statistics it completes.
struct ExpiringStoreMaintenance<Base: DataStore, Value: Sendable>: StoreMaintenance
where Base.Value == Expiring<Value> {
  let store: ExpiringStore<Base, Value>
  let base: any StoreMaintenance

  /// Counts the live entries, those included that cannot be decoded, and the expired ones, slice by slice.
  func statistics() async throws -> StoreStatistics {
    var statistics = try await base.statistics()
    let (now, renewals) = (store.now(), store.allRenewals())
    var (present, expired) = (0, 0)
    var remaining: KeyRange? = .all
    while let range = remaining {
      let slice = try await reporting(.statistics) {
        try await store.decodableEntries(in: range, limit: ExpiringStore<Base, Value>.sliceSize)
      }
      let liveCount = slice.entries.count { $0.value.isLive(at: now, with: renewals[$0.key]) }
      present += liveCount + (slice.isDamaged ? 1 : 0)
      expired += slice.entries.count - liveCount
      remaining = slice.remaining
    }
    statistics.entryCount = present
    statistics.details.insert(StoreStatistics.Detail(name: "expiredEntries", value: Int64(expired)), at: 0)
    return statistics
  }

  func verify() async throws -> VerificationReport {
    try await base.verify()
  }

  func compact() async throws {
    try await base.compact()
  }

  func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}
