import Larder
import Synchronization

/// The least that a cache does: it keeps what it has read until that is written through it.
final class RememberingStore<Base: DataStore>: DataStore {
  typealias Value = Base.Value

  let base: Base
  private let values = Mutex<[StoreKey: Value]>([:])
  private let reads = Mutex(0)

  init(_ base: Base) {
    self.base = base
  }

  /// How often a value was read from the base.
  var readCount: Int { reads.withLock { $0 } }

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Value? {
    if let known = values.withLock({ $0[key] }) { return known }
    reads.withLock { $0 += 1 }
    let value = try await base.value(forKey: key)
    values.withLock { $0[key] = value }
    return value
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Value>) async throws {
    values.withLock { $0 = [:] }
    try await base.apply(changes)
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    values.withLock { $0 = [:] }
    return try await base.update(keys, body)
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }
}
