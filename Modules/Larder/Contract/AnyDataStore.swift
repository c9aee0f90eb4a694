/// A store whose kind is known only at run time.
///
/// It is a store like any other: it can be decorated, paged and passed on. A call costs some tens of nanoseconds more
/// than on the store itself.
public struct AnyDataStore<Value: Sendable>: DataStore {
  /// The store inside.
  public let base: any DataStore<Value>

  /// Hides the kind of a store.
  ///
  /// - Parameter base: The store.
  public init(_ base: some DataStore<Value>) {
    self.base = base
  }

  /// What the store inside says of itself.
  public var information: StoreInformation { base.information }

  /// Reads the value of one key; see ``DataStore/value(forKey:)``.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)
  }

  /// Reads the values of several keys as they are at one moment; see ``DataStore/values(forKeys:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys)
  }

  /// Reads the first entries of a range; see ``DataStore/entries(in:limit:order:)``.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  /// Reads the first keys of a range; see ``DataStore/keys(in:limit:order:)``.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  /// Counts the entries of a range; see ``DataStore/count(in:)``.
  public func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  /// Makes several changes, all or none of them; see ``DataStore/apply(_:)``.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await base.apply(changes)
  }

  /// Reads, changes and writes back the values of some keys as one step; see ``DataStore/update(_:_:)``.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await base.update(keys, body)
  }

  /// Makes everything written before durable; see ``DataStore/synchronize()``.
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
