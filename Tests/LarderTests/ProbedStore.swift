import Larder

/// An in-memory store that records its calls, and runs a test's closure before each result, which may throw.
final class ProbedStore<Value: Sendable>: DataStore {
  /// The store with the entries.
  ///
  /// Direct calls to it are not recorded.
  let base = MemoryStore<Value>(name: "probed")

  private let noted = Locked<[StoreOperation]>([])
  private let intervention: @Sendable (StoreOperation, Int) throws -> Void

  /// Creates an empty store.
  ///
  /// - Parameter intervention: Called before each result, with the operation and the number of earlier calls.
  init(intervention: @escaping @Sendable (StoreOperation, Int) throws -> Void = { _, _ in }) {
    self.intervention = intervention
  }

  /// The calls, in order.
  var operations: [StoreOperation] { noted.withLock { $0 } }

  private func note(_ operation: StoreOperation) throws {
    let index = noted.withLock { noted in
      noted.append(operation)
      return noted.count - 1
    }
    try intervention(operation, index)
  }

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Value? {
    try note(.value)
    return try base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try note(.values)
    return try base.values(forKeys: keys)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try note(.entries)
    return try base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try note(.keys)
    return try base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try note(.count)
    return try base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Value>) async throws {
    try note(.apply)
    try base.apply(changes)
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try note(.update)
    return try await base.update(deciding: keys, body)
  }

  func synchronize() async throws {
    try note(.synchronize)
    try base.synchronize()
  }

  func close() async throws {
    try note(.close)
    base.close()
  }
}

extension ProbedStore where Value == Int {
  /// Fills the store with numbers, under keys with the same order.
  func fill(_ numbers: some Sequence<Int>) throws {
    try base.apply(ChangeBatch(numbers.map { .set(StoreKey(integer: $0), $0) }))
  }
}
