/// A store that wraps another one, its base, and forwards the capabilities of the base.
///
/// A decorator declares each capability that it forwards. The requirements of the capability then have default
/// implementations that call the base through ``forward(_:of:_:)``:
///
/// ```swift
/// extension AuditedStore: MaintainableStore where Base: MaintainableStore {}
/// ```
///
/// Implement a requirement yourself if the decorator does more than that. The defaults leave keys and values as they are. A
/// decorator that changes keys in some operations and not in those of a capability leads its users to other entries, so put it
/// over a ``KeyMappingStore``, or implement every requirement that has a key, a range, a report or a finding.
/// A decorator that only does something before or after operations can be a ``ForwardingStore``.
///
/// The requirements of ``DataStore`` have no defaults, so a decorator that forgets to forward one of them does not compile.
public protocol StoreDecorator: DataStore {
  /// The type of the base.
  associatedtype Base: DataStore

  /// The store that is decorated.
  var base: Base { get }

  /// Performs an operation of a capability on the base.
  ///
  /// A decorator that does nothing before or after such an operation returns the result of `body`. The method is not called
  /// for the operations of ``InvalidatableStore``, because they are synchronous. Write the type of `body` as it is here,
  /// with `nonisolated(nonsending)`: without it, the type is another one unless your package has the feature
  /// `NonisolatedNonsendingByDefault` of Swift.
  ///
  /// - Parameters:
  ///   - operation: The operation. It is ``StoreOperation/apply`` for
  ///     ``ExpirableStore/setValue(_:forKey:timeToLive:)`` and ``StoreOperation/value`` for
  ///     ``ExpirableStore/peekValue(forKey:)``.
  ///   - key: The key of the operation, or `nil` if it concerns the whole store.
  ///   - body: A closure that calls the base.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws.
  func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result
}

extension StoreDecorator {
  /// The name of the type, and the description of the base in brackets, such as `CachedStore[LMDBStore(photos)]`.
  public var description: String { "\(String(describing: Self.self).prefix { $0 != "<" })[\(base)]" }
}

/// A decorator whose entries have a prefix in the base, beside records of its own.
///
/// Operations of capabilities then name the keys of the decorator in their errors, and its observers and
/// ``InvalidatableStore/invalidate(_:)`` concern its entries only. Call the base through ``callingBase(_:_:)`` in your own
/// methods, too:
///
/// ```swift
/// func total<Store: PrefixedStoreDecorator>(of store: Store) async throws -> [UInt8]? where Store.Base.Value == [UInt8] {
///   try await store.callingBase(.statistics) { try await store.base.value(forKey: "total") }
/// }
/// ```
public protocol PrefixedStoreDecorator: StoreDecorator {
  /// The prefix of the keys of entries in the base.
  var keyPrefix: StoreKey { get }
}

extension PrefixedStoreDecorator {
  /// Calls the base, and translates its errors, which then have the name of the decorator and keys without the prefix.
  ///
  /// - Parameters:
  ///   - operation: The operation of the decorator.
  ///   - body: A closure that calls the base.
  /// - Returns: The result of `body`.
  /// - Throws: The error that `body` throws, translated if it is a ``StoreError``.
  @inlinable @inline(__always)
  public func callingBase<Result>(
    _ operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    try await KeyPrefix(keyPrefix).translating(operation, of: information.name, body)
  }

  /// Performs an operation of a capability on the base, and translates its errors.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await callingBase(operation, body)
  }
}

extension PrefixedStoreDecorator where Base: ObservableStore {
  /// Observes entries of the decorator, and not its other records; see ``ObservableStore/observe(_:_:)``.
  public func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    base.prefixed(by: keyPrefix).observe(range, observer)
  }
}

extension PrefixedStoreDecorator where Base: InvalidatableStore {
  /// Removes the cached entry of a key from the base; see ``InvalidatableStore/invalidate(_:)``.
  public func invalidate(_ key: StoreKey) throws {
    try base.prefixed(by: keyPrefix).invalidate(key)
  }
}

extension StoreDecorator where Base: ExpirableStore, Base.Value == Value {
  /// Stores a value in the base with a time to live; see ``ExpirableStore/setValue(_:forKey:timeToLive:)``.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    try await forward(.apply, of: key) { try await base.setValue(value, forKey: key, timeToLive: timeToLive) }
  }

  /// Updates a key of the base, with a time to live; see ``ExpirableStore/update(deciding:timeToLive:_:)``.
  ///
  /// It passes through ``forward(_:of:_:)`` as the operation `apply` of the key.
  public func update<Result: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Value?) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await forward(.apply, of: key) { try await base.update(deciding: key, timeToLive: timeToLive, body) }
  }

  /// Returns a value of the base without moving a sliding deadline; see ``ExpirableStore/peekValue(forKey:)``.
  public func peekValue(forKey key: StoreKey) async throws -> Value? {
    try await forward(.value, of: key) { try await base.peekValue(forKey: key) }
  }
}

extension StoreDecorator where Base: ExpirableStore {
  /// Gives an entry of the base a new time to live; see ``ExpirableStore/touch(_:timeToLive:)``.
  @discardableResult
  public func touch(_ key: StoreKey, timeToLive: TimeToLive?) async throws -> Bool {
    try await forward(.touch, of: key) { try await base.touch(key, timeToLive: timeToLive) }
  }

  /// Returns the remaining time to live of an entry of the base; see ``ExpirableStore/remainingTime(forKey:)``.
  public func remainingTime(forKey key: StoreKey) async throws -> TimeToLive? {
    try await forward(.remainingTime, of: key) { try await base.remainingTime(forKey: key) }
  }

  /// Returns the time until the first of some entries expires; see ``ExpirableStore/timeUntilExpiry(ofAny:)``.
  public func timeUntilExpiry(ofAny keys: [StoreKey]) async throws -> Duration? {
    try await forward(.remainingTime, of: nil) { try await base.timeUntilExpiry(ofAny: keys) }
  }

  /// Removes expired entries from the base; see ``ExpirableStore/purgeExpired(limit:)``.
  @discardableResult
  public func purgeExpired(limit: Int) async throws -> Int {
    try await forward(.purgeExpired, of: nil) { try await base.purgeExpired(limit: limit) }
  }
}

extension StoreDecorator where Base: InvalidatableStore {
  /// Removes the cached entry of a key from the base; see ``InvalidatableStore/invalidate(_:)``.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
  }

  /// Removes all cached entries from the base; see ``InvalidatableStore/invalidateAll()``.
  public func invalidateAll() throws {
    try base.invalidateAll()
  }
}

extension StoreDecorator where Base: FlushableStore {
  /// Waits until the base has written all accepted changes; see ``FlushableStore/flush()``.
  public func flush() async throws {
    try await forward(.flush, of: nil) { try await base.flush() }
  }
}

extension StoreDecorator where Base: MaintainableStore {
  /// Returns the statistics of the base; see ``MaintainableStore/storeStatistics()``.
  public func storeStatistics() async throws -> StoreStatistics {
    try await forward(.statistics, of: nil) { try await base.storeStatistics() }
  }

  /// Verifies the base; see ``MaintainableStore/verify()``.
  public func verify() async throws -> VerificationReport {
    try await forward(.verify, of: nil) { try await base.verify() }
  }

  /// Compacts the base; see ``MaintainableStore/compact()``.
  public func compact() async throws {
    try await forward(.compact, of: nil) { try await base.compact() }
  }

  /// Backs up the base; see ``MaintainableStore/backup(to:compacting:)``.
  public func backup(to path: String, compacting: Bool) async throws {
    try await forward(.backup, of: nil) { try await base.backup(to: path, compacting: compacting) }
  }
}
