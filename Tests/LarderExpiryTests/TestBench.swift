import Larder
import LarderExpiry
import LarderTesting

/// An expiring store in memory with a manual clock, and its parts.
struct TestBench {
  let clock: ManualClock
  let memory: MemoryStore<Expiring<String>>
  let watched: WatchedStore<MemoryStore<Expiring<String>>>
  let store: ExpiringStore<WatchedStore<MemoryStore<Expiring<String>>>, String>

  init(_ timeToLive: TimeToLive = .never, purgesOnWrite: Bool = false) {
    let clock = ManualClock()
    self.clock = clock
    memory = MemoryStore()
    watched = WatchedStore(memory)
    store = watched.expiring(timeToLive, purgesOnWrite: purgesOnWrite) { clock.date }
  }

  /// The keys in the base, expired or not.
  var storedKeys: [StoreKey] {
    get throws { try memory.keys(in: .all, limit: .max, order: .ascending) }
  }
}

/// A decorator that records the calls to a store, and runs a test's closure before each of them, which may throw.
final class WatchedStore<Base: DataStore>: DataStore, InvalidatableStore, FlushableStore {
  typealias Value = Base.Value

  /// A call: its operation, and the number of entries that it concerns or may return.
  struct Call: Equatable {
    let operation: StoreOperation
    let count: Int

    init(_ operation: StoreOperation, _ count: Int) {
      self.operation = operation
      self.count = count
    }
  }

  let base: Base
  private let noted = Locked<[Call]>([])
  private let intervention = Locked<@Sendable (StoreOperation) async throws -> Void>({ _ in })

  init(_ base: Base) {
    self.base = base
  }

  /// The calls, in order.
  var calls: [Call] { noted.withLock { $0 } }

  /// Returns the number of calls of an operation.
  func count(of operation: StoreOperation) -> Int {
    calls.count { $0.operation == operation }
  }

  func forgetCalls() {
    noted.withLock { $0 = [] }
  }

  /// Runs a closure before each operation from now on.
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
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await note(.update, keys.count)
    return try await base.update(deciding: keys, body)
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
