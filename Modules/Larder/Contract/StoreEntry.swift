/// A key and the value that a store keeps under it.
public struct StoreEntry<Value> {
  /// The key.
  public let key: StoreKey

  /// The value.
  public let value: Value

  /// Makes an entry.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - value: The value.
  @inlinable
  public init(key: StoreKey, value: Value) {
    self.key = key
    self.value = value
  }
}

extension StoreEntry: Sendable where Value: Sendable {}
extension StoreEntry: Equatable where Value: Equatable {}
extension StoreEntry: Hashable where Value: Hashable {}
