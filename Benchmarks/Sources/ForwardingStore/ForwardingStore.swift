public import Larder

/// A decorator that adds nothing, to measure the minimum cost of a decorator.
public struct ForwardingStore<Base: DataStore>: DataStore {
  /// The store inside.
  public let base: Base

  /// Creates a layer around a store.
  ///
  /// - Parameter base: The store.
  public init(_ base: Base) {
    self.base = base
  }

  /// The information of the store inside.
  public var information: StoreInformation { base.information }

  /// Forwards; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Base.Value? {
    try await base.value(forKey: key)
  }

  /// Forwards; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Base.Value?] {
    try await base.values(forKeys: keys)
  }

  /// Forwards; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Base.Value>] {
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
  public func apply(_ changes: ChangeBatch<Base.Value>) async throws {
    try await base.apply(changes)
  }

  /// Forwards; see `DataStore`.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey],
    _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
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
