/// A store that keeps its entries in memory, sorted by key and without a size limit.
///
/// ```swift
/// let store = MemoryStore<User>()
/// try store.apply([.set("user:1", User(name: "Ada"))])
/// let user = try store.value(forKey: "user:1")
/// ```
///
/// It is the reference for the behavior of other stores. Its operations are synchronous methods. Through ``DataStore``
/// you call them with `await`, as with any other store.
///
/// The store keeps the values themselves and does not encode them, so a value of a class is shared with the caller that
/// stored it. All entries are lost when the process ends, and when the last reference to the store is released.
public final class MemoryStore<Value: Sendable>: DataStore {
  private struct State: Sendable {
    var map = SortedEntries<Value>()
    var isClosed = false
  }

  /// The name of the store, and its durability, which is ``Durability/volatile``.
  public let information: StoreInformation

  private let state = Locked(State())

  /// Creates an empty store.
  ///
  /// - Parameter name: The name of the store in errors, reports and logs. Defaults to `memory`.
  public init(name: String = "memory") {
    var information = StoreInformation(
      name: name, durability: .volatile, sharing: .exclusive, entryLifetime: .untilRemoved,
      identity: StoreIdentity(), readsMayBeCopies: false)
    information.valuesAtRest = .absent
    self.information = information
  }

  /// Returns the value of a key.
  ///
  /// - Throws: ``StoreError`` with `invalidKey`; `closed`.
  public func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    return try snapshot(for: .value) { $0[key] }
  }

  /// Returns the values of several keys as they are at one moment.
  ///
  /// - Throws: ``StoreError`` with `invalidKey`; `closed`.
  public func values(forKeys keys: [StoreKey]) throws -> [Value?] {
    try information.check(keys, for: .values)
    return try snapshot(for: .values) { map in keys.map { map[$0] } }
  }

  /// Returns the first entries of a range as they are at one moment.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if the limit is negative; `closed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try snapshot(for: .entries) { $0.entries(in: range, limit: limit, order: order) }
  }

  /// Returns the first keys of a range as they are at one moment.
  ///
  /// - Throws: ``StoreError`` with `invalidArgument` if the limit is negative; `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try snapshot(for: .keys) { $0.keys(in: range, limit: limit, order: order) }
  }

  /// Returns the number of entries in a range.
  ///
  /// - Throws: ``StoreError`` with `closed`.
  public func count(in range: KeyRange) throws -> Int {
    try snapshot(for: .count) { $0.count(in: range) }
  }

  /// Applies several changes atomically.
  ///
  /// - Throws: ``StoreError`` with `invalidKey`; `closed`. `CancellationError` if the task was cancelled before.
  public func apply(_ changes: ChangeBatch<Value>) throws {
    try information.check(changes)
    // The displaced values are released outside the lock, because their deinitializers may call the store.
    var displaced: [Value] = []
    try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: .apply) }
      try Task.checkCancellation()
      for change in changes.changes {
        state.map.apply(change, displacing: &displaced)
      }
    }
  }

  /// Reads, changes and writes back the values of several keys as one step.
  ///
  /// - Throws: ``StoreError`` with `invalidKey`; `invalidArgument`; `closed`. `CancellationError` if the task was cancelled
  ///   before.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) throws -> Result {
    try information.check(updateOf: keys)
    var displaced: [Value] = []
    var slots = UpdateSlots<Value>(stored: [])
    return try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: .update) }
      try Task.checkCancellation()
      slots = UpdateSlots(stored: keys.map { state.map[$0] })
      let decision = body(&slots)
      guard decision.isCommit else { return decision.result }
      for change in slots.changes(of: keys) {
        state.map.apply(change, displacing: &displaced)
      }
      return decision.result
    }
  }

  /// Does nothing, because the store keeps its entries in memory only.
  ///
  /// - Throws: ``StoreError`` with `closed`.
  public func synchronize() throws {
    try snapshot(for: .synchronize) { _ in }
  }

  /// Removes all entries, and rejects every later operation.
  public func close() {
    let map = state.withLock { state in
      state.isClosed = true
      defer { state.map = SortedEntries() }
      return state.map
    }
    // The values are released outside the lock.
    withExtendedLifetime(map) {}
  }

  private func snapshot<Result: Sendable>(
    for operation: StoreOperation, _ body: (SortedEntries<Value>) throws -> Result
  ) throws -> Result {
    try state.withLock { state in
      guard !state.isClosed else { throw information.closedError(for: operation) }
      return try body(state.map)
    }
  }
}

/// A provider of ``MemoryStore``s for ``StoreRegistry``, for URLs such as `memory:`.
public struct MemoryStoreProvider: StoreProvider {
  /// Creates the provider.
  public init() {}

  /// `memory`.
  public var scheme: String { "memory" }

  /// A description of the stores, in one line.
  public var summary: String { "in memory; initially empty, lost when the process ends" }

  /// `json`, although the stores do not encode their values.
  public var codecName: String { "json" }

  /// Returns a new, empty store, whose name is the location in the URL.
  ///
  /// - Throws: ``StoreError`` with `notFound` if `options` do not allow a store to be created, as with any access other than
  ///   ``StoreAccess/readWrite``.
  public func open(_ url: StoreURL, options: StoreOptions, newCodecName: String?) throws -> some UntypedStore {
    guard options.createsIfMissing, options.access == .readWrite else {
      throw StoreError(
        .notFound, during: .open, store: url.description,
        message:
          "a memory store does not outlive its process, so there is nothing to open; create a new one, with the access "
          + "readWrite")
    }
    return UntypedMemory(name: url.location.isEmpty ? scheme : url.location, codecName: newCodecName ?? codecName)
  }
}

/// A memory store whose type of values is not chosen yet.
private struct UntypedMemory: UntypedStore {
  let name: String
  let codecName: String

  func typed<Value: Sendable>(codec: some Codec<Value>) -> AnyDataStore<Value> {
    AnyDataStore(MemoryStore<Value>(name: name))
  }
}
