/// A store whose type is known only at run time.
///
/// It is a store like any other: you can decorate it, page through it and pass it on. A call costs some tens of
/// nanoseconds more than on the store itself. The capabilities of the store inside are optional properties:
///
/// ```swift
/// if let maintenance = store.maintenance { try await maintenance.compact() }
/// ```
public struct AnyDataStore<Value: Sendable>: DataStore {
  /// The store inside.
  public let base: any DataStore<Value>

  /// The store inside as a ``MaintainableStore``, or `nil` if it does not conform.
  ///
  /// A decorator of an erased store is one in any case: it then counts and reads entries, and cannot compact or back up.
  public let maintenance: (any MaintainableStore<Value>)?

  /// The store inside as an ``ExpirableStore``, or `nil` if it does not conform.
  public let expiry: (any ExpirableStore<Value>)?

  /// A Boolean value that indicates whether the entries of the store inside expire, also below a decorator that is no
  /// ``ExpirableStore``.
  public var expires: Bool { expiry != nil || information.entryLifetime == .untilDeadline }

  /// The store inside as an ``InvalidatableStore``, or `nil` if it does not conform.
  public let invalidation: (any InvalidatableStore<Value>)?

  /// The store inside as a ``FlushableStore``, or `nil` if it does not conform.
  public let flushing: (any FlushableStore<Value>)?

  /// The store inside as an ``ObservableStore``, or `nil` if it does not conform.
  public let observation: (any ObservableStore<Value>)?

  /// The store inside as a ``DurableQueue``, or `nil` if it does not conform.
  public let queue: (any DurableQueue<Value>)?

  /// The store inside as a ``PausableQueue``, or `nil` if it does not conform.
  public let pausableQueue: (any PausableQueue<Value>)?

  /// The store inside as an ``InspectableQueue``, or `nil` if it does not conform.
  public let inspectableQueue: (any InspectableQueue<Value>)?

  /// Wraps a store, hiding its type and keeping its capabilities.
  ///
  /// ```swift
  /// let stores: [AnyDataStore<User>] = [AnyDataStore(MemoryStore()), AnyDataStore(try await JSONFileStore(path: "users.json"))]
  /// ```
  ///
  /// - Parameter base: The store.
  public init(_ base: some DataStore<Value>) {
    if let erased = base as? AnyDataStore<Value> {
      self = erased
      return
    }
    self.base = base
    maintenance = base as? any MaintainableStore<Value>
    expiry = base as? any ExpirableStore<Value>
    invalidation = base as? any InvalidatableStore<Value>
    flushing = base as? any FlushableStore<Value>
    observation = base as? any ObservableStore<Value>
    queue = base as? any DurableQueue<Value>
    pausableQueue = base as? any PausableQueue<Value>
    inspectableQueue = base as? any InspectableQueue<Value>
  }

  /// The name, the limits and the durability of the store inside.
  public var information: StoreInformation { base.information }

  /// Returns the value of a key; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)
  }

  /// Returns the values of several keys as they are at one moment; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys)
  }

  /// Returns the first entries of a range; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  /// Returns the first keys of a range; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  /// Returns the number of entries in a range; see ``DataStore/count(in:)``.
  public func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  /// Applies several changes atomically; see ``DataStore/apply(_:)``.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await base.apply(changes)
  }

  /// Reads, changes and writes back the values of several keys as one step; see ``DataStore/update(deciding:_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await base.update(deciding: keys, body)
  }

  /// Ensures that every earlier write survives a power failure; see ``DataStore/synchronize()``.
  public func synchronize() async throws {
    try await base.synchronize()
  }

  /// Closes the store inside; see ``DataStore/close()``.
  public func close() async throws {
    try await base.close()
  }
}

extension AnyDataStore: CustomStringConvertible {
  /// The store inside, in brackets.
  public var description: String { "AnyDataStore[\(base)]" }
}

/// An erased store can be maintained through any decorator above it, also if the store inside cannot maintain itself.
extension AnyDataStore: MaintainableStore {
  /// Measures the store inside, or counts its entries if it is not a ``MaintainableStore``.
  public func storeStatistics() async throws -> StoreStatistics {
    if let maintenance { return try await maintenance.storeStatistics() }
    return StoreStatistics(entryCount: try await count(in: .all))
  }

  /// Verifies the store inside, or reads every value if it is not a ``MaintainableStore``.
  public func verify() async throws -> VerificationReport {
    if let maintenance { return try await maintenance.verify() }
    return try await verifyEachEntry()
  }

  /// Compacts the store inside; see ``MaintainableStore/compact()``.
  ///
  /// ```swift
  /// let anyStore = AnyDataStore(stores[1])
  /// if let maintenance = anyStore.maintenance {
  ///   try await maintenance.compact()
  /// }
  /// ```
  ///
  /// - Throws: ``StoreError`` with `unsupported` if the store inside is not a ``MaintainableStore``; its errors.
  public func compact() async throws {
    guard let maintenance else {
      throw try await unsupported(.compact, "compact is unsupported: this kind of store has no space to reclaim")
    }
    try await maintenance.compact()
  }

  /// Backs up the store inside; see ``MaintainableStore/backup(to:compacting:)``.
  ///
  /// - Throws: ``StoreError`` with `unsupported` if the store inside is not a ``MaintainableStore``; its errors.
  public func backup(to path: String, compacting: Bool) async throws {
    guard let maintenance else {
      throw try await unsupported(.backup, "this kind of store has no backup; copy its entries to another store")
    }
    try await maintenance.backup(to: path, compacting: compacting)
  }

  private func unsupported(_ operation: StoreOperation, _ message: String) async throws -> StoreError {
    // A closed store says that it is closed, not that it could not do this anyway.
    _ = try await count(in: KeyRange(from: "", upTo: ""))
    return StoreError(.unsupported, during: operation, store: information.name, message: message)
  }
}
