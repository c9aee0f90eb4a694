/// A decorator that forwards every operation to its base, except for those that it implements itself.
///
/// Use it for a decorator that does something before or after operations and leaves keys and values as they are. All
/// asynchronous operations, also those of capabilities, pass through ``StoreDecorator/forward(_:of:_:)``, the only method
/// that it must have:
///
/// ```swift
/// struct LoggedStore<Base: DataStore>: ForwardingStore {
///   let base: Base
///   let log: @Sendable (StoreOperation) -> Void
///
///   func forward<Result>(
///     _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
///   ) async throws -> Result {
///     log(operation)
///     return try await body()
///   }
/// }
///
/// extension LoggedStore: ExpirableStore where Base: ExpirableStore {}
/// extension LoggedStore: MaintainableStore where Base: MaintainableStore {}
/// ```
///
/// Declare each capability that the decorator has, as for any ``StoreDecorator``. If a later version of ``DataStore`` gets
/// another requirement, the decorator forwards it without being asked. If that could be wrong, because the decorator
/// checks, counts or changes what passes through it, conform to ``StoreDecorator`` instead, and let the compiler name each
/// requirement. For a decorator that changes keys, see ``KeyMappingStore``.
public protocol ForwardingStore<Base>: StoreDecorator where Value == Base.Value {}

extension ForwardingStore {
  /// The information of the base.
  public var information: StoreInformation { base.information }

  /// Returns the value of a key in the base; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await forward(.value, of: key) { try await base.value(forKey: key) }
  }

  /// Returns the values of several keys in the base; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await forward(.values, of: nil) { try await base.values(forKeys: keys) }
  }

  /// Returns the first entries of a range of the base; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await forward(.entries, of: nil) { try await base.entries(in: range, limit: limit, order: order) }
  }

  /// Returns the first keys of a range of the base; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await forward(.keys, of: nil) { try await base.keys(in: range, limit: limit, order: order) }
  }

  /// Returns the number of entries in a range of the base; see ``DataStore/count(in:)``.
  public func count(in range: KeyRange) async throws -> Int {
    try await forward(.count, of: nil) { try await base.count(in: range) }
  }

  /// Applies several changes to the base; see ``DataStore/apply(_:)``.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await forward(.apply, of: nil) { try await base.apply(changes) }
  }

  /// Reads, changes and writes back several values of the base; see ``DataStore/update(deciding:_:)``.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await forward(.update, of: nil) { try await base.update(deciding: keys, body) }
  }

  /// Ensures that every earlier write to the base survives a power failure; see ``DataStore/synchronize()``.
  public func synchronize() async throws {
    try await forward(.synchronize, of: nil) { try await base.synchronize() }
  }

  /// Closes the base; see ``DataStore/close()``.
  public func close() async throws {
    try await forward(.close, of: nil) { try await base.close() }
  }
}

/// A decorator that reads from its base, except for those reads that it implements itself.
///
/// It suits a decorator that changes how entries are written, and reads as the base does. The compiler still names each
/// requirement that writes. Reads don't pass through ``StoreDecorator/forward(_:of:_:)``.
///
/// ```swift
/// struct AuditedStore<Base: DataStore>: ReadForwardingStore {
///   let base: Base
///   let log: AuditLog
///   var information: StoreInformation { base.information }
///
///   func apply(_ changes: ChangeBatch<Base.Value>) async throws {
///     try await base.apply(changes)
///     log.record(changes.changes.count)
///   }
///
///   func update<Result: Sendable>(
///     deciding keys: [StoreKey],
///     _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
///   ) async throws -> Result {
///     try await base.update(deciding: keys, body)
///   }
///
///   func synchronize() async throws { try await base.synchronize() }
///   func close() async throws { try await base.close() }
///
///   func forward<Result>(
///     _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
///   ) async throws -> Result {
///     try await body()
///   }
/// }
/// ```
public protocol ReadForwardingStore<Base>: StoreDecorator where Value == Base.Value {}

// Inlinable, because a decorator costs nearly nothing only if its reads are specialized for its base.
extension ReadForwardingStore {
  /// Returns the value of a key from the base; see ``DataStore/value(forKey:)``.
  @inlinable
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)
  }

  /// Returns the values of several keys from the base; see ``DataStore/values(forKeys:)``.
  @inlinable
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys)
  }

  /// Returns the first entries of a range from the base; see ``DataStore/entries(in:limit:order:)``.
  @inlinable
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  /// Returns the first keys of a range from the base; see ``DataStore/keys(in:limit:order:)``.
  @inlinable
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  /// Returns the number of entries in a range of the base; see ``DataStore/count(in:)``.
  @inlinable
  public func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }
}
