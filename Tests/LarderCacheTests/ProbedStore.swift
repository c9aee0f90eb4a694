import Larder

/// A decorator that records the keys of reads and the calls to extra capabilities, and that describes itself as its
/// test
/// tells it to.
final class ProbedStore<Value: Sendable>: DataStore {
  let base: MemoryStore<Value>
  let information: StoreInformation

  private let noted = Locked<[[StoreKey]]>([])
  private let asked = Locked<[StoreOperation]>([])
  private let times = Locked<[StoreKey: TimeToLive]>([:])

  init(base: MemoryStore<Value>, information: StoreInformation? = nil) {
    self.base = base
    self.information = information ?? base.information
  }

  /// The keys of each read.
  var requests: [[StoreKey]] { noted.withLock { $0 } }

  /// The calls to extra capabilities, in order.
  var capabilities: [StoreOperation] { asked.withLock { $0 } }

  func value(forKey key: StoreKey) async throws -> Value? {
    noted.withLock { $0.append([key]) }
    return try base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    noted.withLock { $0.append(keys) }
    return try base.values(forKeys: keys)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Value>) async throws {
    try base.apply(changes)
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await base.update(deciding: keys, body)
  }

  func synchronize() async throws {
    try base.synchronize()
  }

  func close() async throws {
    base.close()
  }
}

extension ProbedStore: ExpirableStore {
  func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    asked.withLock { $0.append(.apply) }
    times.withLock { $0[key] = timeToLive }
    try base.apply([.set(key, value)])
  }

  func peekValue(forKey key: StoreKey) async throws -> Value? {
    asked.withLock { $0.append(.value) }
    return try base.value(forKey: key)
  }

  func update<Result: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Value?) -> UpdateDecision<Result>
  ) async throws -> Result {
    times.withLock { $0[key] = timeToLive }
    return try await base.update(deciding: [key]) { slots in body(&slots[0]) }
  }

  func touch(_ key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool {
    asked.withLock { $0.append(.touch) }
    times.withLock { $0[key] = timeToLive }
    return try base.value(forKey: key) != nil
  }

  func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    asked.withLock { $0.append(.remainingTime) }
    return times.withLock { $0[key] }
  }

  func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    asked.withLock { $0.append(.remainingTime) }
    return try keys.allSatisfy { try base.value(forKey: $0) != nil } ? nil : .zero
  }

  /// Removes the entries that have a time to live.
  func purgeExpired(limit: Int) async throws -> Int {
    asked.withLock { $0.append(.purgeExpired) }
    let keys = times.withLock { times in times.filter { $0.value != .never }.keys.prefix(limit) }
    try base.apply(ChangeBatch(keys.map { .remove($0) }))
    return keys.count
  }
}

extension ProbedStore: FlushableStore {
  func flush() async throws {
    asked.withLock { $0.append(.flush) }
  }
}
