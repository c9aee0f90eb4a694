import Larder
import TestSupport

/// An in-memory store with every capability, which records its calls.
final class CapableStore: PassingStore {
  typealias Value = Int

  let base = MemoryStore<Int>(name: "able")
  private let notes = Locked<[String]>([])

  /// The calls, in order.
  var calls: [String] { notes.withLock { $0 } }

  private func note(_ call: String) { notes.withLock { $0.append(call) } }

  var information: StoreInformation {
    var information = base.information
    information.durability = .synced
    return information
  }
  func apply(_ changes: ChangeBatch<Int>) throws {
    note("apply \(changes.count)")
    try base.apply(changes)
  }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) throws -> Result {
    note("update")
    return try base.update(deciding: keys, body)
  }
  func synchronize() throws {
    note("synchronize")
    try base.synchronize()
  }
  func close() {
    note("close")
    base.close()
  }
}

extension CapableStore: ExpirableStore {
  func setValue(_ value: Int, forKey key: StoreKey, timeToLive: TimeToLive?) throws {
    note("setValue \(key.string ?? "")")
    try base.apply([.set(key, value)])
  }
  func peekValue(forKey key: StoreKey) throws -> Int? {
    note("peekValue \(key.string ?? "")")
    return try base.value(forKey: key)
  }
  func update<Result: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Int?) -> UpdateDecision<Result>
  ) throws -> Result {
    note("update \(key.string ?? "")")
    return try base.update(deciding: [key]) { slots in body(&slots[0]) }
  }
  func touch(_ key: StoreKey, timeToLive: TimeToLive?) throws -> Bool {
    note("touch \(key.string ?? "")")
    return try base.value(forKey: key) != nil
  }
  func remainingTime(forKey key: StoreKey) throws -> TimeToLive? {
    note("remainingTime \(key.string ?? "")")
    return try base.value(forKey: key).map { .after(.seconds($0)) }
  }
  func timeUntilExpiry(ofAny keys: [StoreKey]) throws -> Duration? {
    note("timeUntilExpiry \(keys.count)")
    return try keys.allSatisfy { try base.value(forKey: $0) != nil } ? nil : .zero
  }
  func purgeExpired(limit: Int) -> Int {
    note("purgeExpired \(limit)")
    return 3
  }
}

extension CapableStore: InvalidatableStore {
  func invalidate(_ key: StoreKey) { note("invalidate \(key.string ?? "")") }
  func invalidateAll() { note("invalidateAll") }
}

extension CapableStore: FlushableStore {
  func flush() { note("flush") }
}

extension CapableStore: MaintainableStore {
  func storeStatistics() -> StoreStatistics {
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
