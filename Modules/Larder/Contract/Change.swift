/// One change to a store, as part of a ``ChangeBatch``.
public enum Change<Value> {
  /// Puts a value under a key, in place of any other.
  case set(StoreKey, Value)
  /// Removes a key, where it is there.
  case remove(StoreKey)
  /// Removes every key of a range.
  case removeAll(KeyRange)

  /// The key that is set or removed; `nil` for a range.
  @inlinable
  public var key: StoreKey? {
    switch self {
    case .set(let key, _), .remove(let key): key
    case .removeAll: nil
    }
  }
}

extension Change: Sendable where Value: Sendable {}
extension Change: Equatable where Value: Equatable {}
