import Larder

/// A store in memory that records its use, can refuse writes, and has no maintenance.
final class WatchedStore: DataStore {
  /// The record of the use.
  struct Notes: Sendable {
    /// The largest number of entries that one call returned or wrote.
    var largestCall = 0
    /// The number of batches that were applied.
    var batches = 0
    /// The number of batches after which further ones are refused.
    var mostBatches = Int.max
  }

  private let base = MemoryStore<JSONText>(name: "watched")
  let notes = Locked(Notes())
  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) throws -> JSONText? { try base.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) throws -> [JSONText?] { try noting(base.values(forKeys: keys)) }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<JSONText>] {
    try noting(base.entries(in: range, limit: limit, order: order))
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try noting(base.keys(in: range, limit: limit, order: order))
  }
  func count(in range: KeyRange) throws -> Int { try base.count(in: range) }
  func apply(_ changes: ChangeBatch<JSONText>) throws {
    let isRefused = notes.withLock { notes in
      guard notes.batches < notes.mostBatches else { return true }
      notes.batches += 1
      return false
    }
    guard !isRefused else { throw StoreError(.full, during: .apply, store: "watched", message: "there is no room") }
    _ = noting(changes.changes)
    try base.apply(changes)
  }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<JSONText>) -> UpdateDecision<Result>
  ) throws -> Result { try base.update(deciding: keys, body) }
  func synchronize() throws { try base.synchronize() }
  func close() { base.close() }

  private func noting<Item>(_ items: [Item]) -> [Item] {
    notes.withLock { $0.largestCall = max($0.largestCall, items.count) }
    return items
  }
}
