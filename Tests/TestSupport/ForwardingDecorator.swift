public import Larder

/// A decorator for tests that forwards every requirement to its base by default.
///
/// `DataStore` itself has no such defaults, so that a real decorator that lacks a requirement does not compile.
public protocol ForwardingDecorator<Base>: DataStore where Value == Base.Value {
  /// The type of the store below.
  associatedtype Base: DataStore

  /// The store below.
  var base: Base { get }
}

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
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await base.update(keys, body)
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

/// The default implementations of `MaintainableStore` over a base that conforms to it.
extension ForwardingDecorator where Base: MaintainableStore {
  /// Forwards; see `MaintainableStore`.
  public func storeStatistics() async throws -> StoreStatistics { try await base.storeStatistics() }

  /// Forwards; see `MaintainableStore`.
  public func verify() async throws -> VerificationReport { try await base.verify() }

  /// Forwards; see `MaintainableStore`.
  public func compact() async throws { try await base.compact() }

  /// Forwards; see `MaintainableStore`.
  public func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}
