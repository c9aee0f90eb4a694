public import Larder

/// A decorator for tests that forwards every requirement to its base by default.
///
/// `DataStore` itself has no such defaults, so that a real decorator that lacks a requirement does not compile.
public protocol ForwardingDecorator<Base>: StoreDecorator where Value == Base.Value {}

extension ForwardingDecorator {
  /// The properties of the base.
  public var information: StoreInformation { base.information }

  /// Forwards; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)
  }

  /// Forwards; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys)
  }

  /// Forwards; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  /// Forwards; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  /// Forwards; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  /// Forwards; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await base.apply(changes)
  }

  /// Forwards; see `DataStore`.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await base.update(deciding: keys, body)
  }

  /// Forwards; see `DataStore`.
  public func synchronize() async throws {
    try await base.synchronize()
  }

  /// Forwards; see `DataStore`.
  public func close() async throws {
    try await base.close()
  }
}
