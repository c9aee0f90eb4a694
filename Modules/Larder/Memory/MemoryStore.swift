import Synchronization

/// A store in memory, sorted by key and bounded by nothing: the reference for the others.
///
/// ```swift
/// let store = MemoryStore<User>()
/// try store.apply([.set("user:1", User(name: "Ada"))])
/// let user = try store.value(forKey: "user:1")
/// ```
///
/// Its operations are plain synchronous methods; through ``DataStore`` they are called with `await` like any other. It
/// keeps the values themselves, without encoding them, so a value of a class is shared with whoever handed it in.
///
/// What it holds is lost with the process, and with the last reference to it.
public final class MemoryStore<Value: Sendable>: DataStore {
  private struct State: Sendable {
    var map = SortedMap<Value>()
    var isClosed = false
  }

  /// What the store is called, and that its acknowledgement is ``Acknowledgement/volatile``.
  public let information: StoreInformation

  private let state = Mutex(State())

  /// Makes an empty store.
  ///
  /// - Parameter name: What the store is called in errors, reports and logs; `memory` unless given.
  public init(name: String = "memory") {
    information = StoreInformation(name: name, acknowledgement: .volatile, sharing: .exclusive)
  }

  /// Reads the value of one key.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `closed`.
  public func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    return try snapshot(for: .value) { $0[key] }
  }

  /// Reads the values of several keys as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `closed`.
  public func values(forKeys keys: [StoreKey]) throws -> [Value?] {
    try information.check(keys, for: .values)
    return try snapshot(for: .values) { map in keys.map { map[$0] } }
  }

  /// Reads the first entries of a range as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `closed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try snapshot(for: .entries) { $0.entries(in: range, limit: limit, order: order) }
  }

  /// Reads the first keys of a range as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` where the limit is negative; `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try snapshot(for: .keys) { $0.keys(in: range, limit: limit, order: order) }
  }

  /// Counts the entries of a range.
  ///
  /// - Throws: ``StoreError``: `closed`.
  public func count(in range: KeyRange) throws -> Int {
    try snapshot(for: .count) { $0.count(in: range) }
  }

  /// Makes several changes, all or none of them.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `closed`. `CancellationError` where the task was cancelled before.
  public func apply(_ changes: ChangeBatch<Value>) throws {
    try information.check(changes)
    // Displaced values are released here, outside the lock: their deinitializers may call the store.
    var displaced: [Value] = []
    try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: .apply) }
      try Task.checkCancellation()
      for change in changes.changes {
        state.map.apply(change, displacing: &displaced)
      }
    }
  }

  /// Reads, changes and writes back the values of some keys as one step.
  ///
  /// - Throws: What `body` throws; ``StoreError``: `invalidKey`, `invalidArgument`, `closed`. `CancellationError` where
  ///   the task was cancelled before.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) throws -> Result {
    try information.check(updateOf: keys)
    var displaced: [Value] = []
    var slots: [Value?] = []
    return try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: .update) }
      try Task.checkCancellation()
      slots = keys.map { state.map[$0] }
      let result = try body(&slots)
      try information.check(slotCount: slots.count, forUpdateOf: keys)
      for (key, slot) in zip(keys, slots) {
        state.map.apply(slot.map { .set(key, $0) } ?? .remove(key), displacing: &displaced)
      }
      return result
    }
  }

  /// Does nothing: there is nothing beyond the process.
  ///
  /// - Throws: ``StoreError``: `closed`.
  public func synchronize() throws {
    try snapshot(for: .synchronize) { _ in }
  }

  /// Forgets what the store holds, and refuses every later operation.
  public func close() {
    let map = state.withLock { state in
      state.isClosed = true
      defer { state.map = SortedMap() }
      return state.map
    }
    // The values are released here, outside the lock.
    withExtendedLifetime(map) {}
  }

  private func snapshot<Result: Sendable>(
    for operation: StoreOperation, _ body: (SortedMap<Value>) throws -> Result
  ) throws -> Result {
    try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: operation) }
      return try body(state.map)
    }
  }
}

extension MemoryStore: CustomStringConvertible {
  /// The store's kind and name.
  public var description: String { "MemoryStore(\(information.name))" }
}
