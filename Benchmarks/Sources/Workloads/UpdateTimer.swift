import Larder

/// A store that measures the durations of its updates.
final class UpdateTimer<Base: DataStore>: DataStore {
  typealias Value = Base.Value

  let base: Base
  private let noted = Locked<[Duration]>([])

  init(_ base: Base) {
    self.base = base
  }

  /// The durations, in ascending order.
  var durations: [Duration] { noted.withLock { $0.sorted() } }

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)
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
    try await base.apply(changes)
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    let start = ContinuousClock.now
    let result = try await base.update(deciding: keys, body)
    let duration = ContinuousClock.now - start
    noted.withLock { $0.append(duration) }
    return result
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }
}
