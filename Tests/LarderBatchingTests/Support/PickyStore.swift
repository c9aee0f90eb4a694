import Larder

/// An in-memory store that records the batches it applies and fails those that match a rule.
final class PickyStore<Value: Sendable>: DataStore {
  typealias Rule = @Sendable (ChangeBatch<Value>, MemoryStore<Value>) throws -> StoreError?

  private struct Notes {
    var applied: [ChangeBatch<Value>] = []
    var attempts = 0
    var scanCount = 0
    var rule: Rule?
  }

  let base = MemoryStore<Value>(name: "picky")
  private let notes = Locked(Notes())

  /// The batches that were applied.
  var applied: [ChangeBatch<Value>] { notes.withLock { $0.applied } }

  /// Forgets the applied batches and their values.
  func forget() { notes.withLock { $0.applied = [] } }

  /// The number of changes of each applied batch.
  var appliedSizes: [Int] { applied.map(\.count) }

  /// The number of attempts to apply a batch.
  var attempts: Int { notes.withLock { $0.attempts } }

  /// The number of scans.
  var scanCount: Int { notes.withLock { $0.scanCount } }

  /// Fails batches from now on.
  ///
  /// - Parameter rule: Returns the error for a batch, or `nil` to apply it.
  func refuse(_ rule: Rule?) { notes.withLock { $0.rule = rule } }

  /// Fails every batch that contains a bad change.
  func refuse(_ code: StoreError.Code, where isBad: @escaping @Sendable (Value) -> Bool) {
    refuse { batch, _ in
      for case .set(let key, let value) in batch.changes where isBad(value) {
        return StoreError(code, during: .apply, store: "picky", key: key, message: "the value is refused")
      }
      return nil
    }
  }

  var information: StoreInformation { base.information }
  func value(forKey key: StoreKey) throws -> Value? { try base.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) throws -> [Value?] { try base.values(forKeys: keys) }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    notes.withLock { $0.scanCount += 1 }
    return try base.entries(in: range, limit: limit, order: order)
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) throws -> Int { try base.count(in: range) }
  func apply(_ changes: ChangeBatch<Value>) throws {
    let rule = notes.withLock { notes in
      notes.attempts += 1
      return notes.rule
    }
    if let error = try rule?(changes, base) { throw error }
    try base.apply(changes)
    notes.withLock { $0.applied.append(changes) }
  }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result { try base.update(deciding: keys, body) }
  func synchronize() throws { try base.synchronize() }
  func close() { base.close() }
}
