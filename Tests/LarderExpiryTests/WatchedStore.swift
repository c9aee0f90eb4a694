import Larder
import Synchronization

/// A decorator that notes what is asked of a store, and lets a test act or throw before it is asked.
final class WatchedStore<Base: DataStore>: DataStore, InvalidatableStore, FlushableStore {
  typealias Value = Base.Value

  /// What was asked: the operation, and how many entries it may return or concerns.
  struct Call: Equatable {
    let operation: StoreOperation
    let count: Int

    init(_ operation: StoreOperation, _ count: Int) {
      self.operation = operation
      self.count = count
    }
  }

  let base: Base
  private let noted = Mutex<[Call]>([])
  private let intervention = Mutex<@Sendable (StoreOperation) async throws -> Void>({ _ in })

  init(_ base: Base) {
    self.base = base
  }

  /// What was asked, in order.
  var calls: [Call] { noted.withLock { $0 } }

  /// How often something was asked.
  func count(of operation: StoreOperation) -> Int {
    calls.count { $0.operation == operation }
  }

  func forgetCalls() {
    noted.withLock { $0 = [] }
  }

  /// Lets something happen before each operation.
  func intervene(_ body: @escaping @Sendable (StoreOperation) async throws -> Void) {
    intervention.withLock { $0 = body }
  }

  private func note(_ operation: StoreOperation, _ count: Int) async throws {
    noted.withLock { $0.append(Call(operation, count)) }
    try await intervention.withLock { $0 }(operation)
  }

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Value? {
    try await note(.value, 1)
    return try await base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await note(.values, keys.count)
    return try await base.values(forKeys: keys)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await note(.entries, limit)
    return try await base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await note(.keys, limit)
    return try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await note(.count, 0)
    return try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Value>) async throws {
    try await note(.apply, changes.count)
    try await base.apply(changes)
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await note(.update, keys.count)
    return try await base.update(keys, body)
  }

  func synchronize() async throws {
    try await note(.synchronize, 0)
    try await base.synchronize()
  }

  func close() async throws {
    try await note(.close, 0)
    try await base.close()
  }

  func invalidate(_ key: StoreKey) throws {
    noted.withLock { $0.append(Call(StoreOperation(rawValue: "invalidate \(key)"), 1)) }
  }

  func invalidateAll() throws {
    noted.withLock { $0.append(Call(StoreOperation(rawValue: "invalidateAll"), 0)) }
  }

  func flush() async throws {
    noted.withLock { $0.append(Call(StoreOperation(rawValue: "flush"), 0)) }
  }
}
