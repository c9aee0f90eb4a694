/// A sequence of changes that a store applies all together or not at all.
///
/// ```swift
/// var batch = ChangeBatch<Account>()
/// batch.setValue(payer, forKey: "account:1")
/// batch.setValue(payee, forKey: "account:2")
/// batch.removeValue(forKey: "transfer:17")
/// try await accounts.apply(batch)
/// ```
///
/// A later change to a key replaces an earlier one. If you remove a range and then set its keys, the batch therefore
/// replaces everything in the range in one step.
public struct ChangeBatch<Value> {
  /// The changes, in the order they take effect.
  public private(set) var changes: [BatchChange<Value>]

  /// Creates a batch.
  ///
  /// ```swift
  /// let batch = ChangeBatch(imported.map { .set("user:\($0.name)", $0) })
  /// try await store.apply(batch)
  /// ```
  ///
  /// - Parameter changes: The changes, in the order they take effect. Defaults to an empty list.
  public init(_ changes: [BatchChange<Value>] = []) {
    self.changes = changes
  }

  /// The number of changes.
  @inlinable
  public var count: Int { changes.count }

  /// A Boolean value that indicates whether the batch has no changes.
  @inlinable
  public var isEmpty: Bool { changes.isEmpty }

  /// Appends a change.
  ///
  /// - Parameter change: The change.
  public mutating func append(_ change: BatchChange<Value>) {
    changes.append(change)
  }

  /// Appends a change that stores a value under a key, replacing any other.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  public mutating func setValue(_ value: Value, forKey key: StoreKey) {
    changes.append(.set(key, value))
  }

  /// Appends a change that removes a key.
  ///
  /// - Parameter key: The key. It may be missing.
  public mutating func removeValue(forKey key: StoreKey) {
    changes.append(.remove(key))
  }

  /// Appends a change that removes every key of a range.
  ///
  /// ```swift
  /// var batch = ChangeBatch<User>()
  /// batch.removeAll(in: .prefix("user:"))  // replaces all users in one step
  /// for user in imported { batch.setValue(user, forKey: "user:\(user.name)") }
  /// try await store.apply(batch)
  /// ```
  ///
  /// - Parameter range: The keys to remove. Defaults to all keys.
  public mutating func removeAll(in range: KeyRange = .all) {
    changes.append(.removeAll(range))
  }

  /// Reserves enough space to hold a number of changes.
  ///
  /// - Parameter capacity: The total number of changes that the batch will hold.
  public mutating func reserveCapacity(_ capacity: Int) {
    changes.reserveCapacity(capacity)
  }
}

extension ChangeBatch: Sendable where Value: Sendable {}
extension ChangeBatch: Equatable where Value: Equatable {}

extension ChangeBatch: ExpressibleByArrayLiteral {
  /// Creates a batch from an array literal.
  ///
  /// ```swift
  /// try await store.apply([.set("user:1", ada), .remove("user:2"), .removeAll(.prefix("guest:"))])
  /// ```
  ///
  /// - Parameter elements: The changes, in the order they take effect.
  public init(arrayLiteral elements: BatchChange<Value>...) {
    self.init(elements)
  }
}

/// A single change to a store, as part of a ``ChangeBatch``.
public enum BatchChange<Value> {
  /// Stores a value under a key, replacing any other.
  case set(StoreKey, Value)
  /// Removes a key, if it exists.
  case remove(StoreKey)
  /// Removes every key of a range.
  case removeAll(KeyRange)

  /// The key that is set or removed, or `nil` for a range.
  @inlinable
  public var key: StoreKey? {
    switch self {
    case .set(let key, _), .remove(let key): key
    case .removeAll: nil
    }
  }

  /// Returns the same change with a transformed value.
  ///
  /// ```swift
  /// let encoded = try change.mapValue { key, user in try JSONEncoder().encode(user) }
  /// ```
  ///
  /// - Parameter transform: A closure that returns the new value for a key and its value.
  /// - Throws: The error that `transform` throws.
  public func mapValue<NewValue, Failure: Error>(
    _ transform: (_ key: StoreKey, _ value: Value) throws(Failure) -> NewValue
  ) throws(Failure) -> BatchChange<NewValue> {
    switch self {
    case .set(let key, let value): .set(key, try transform(key, value))
    case .remove(let key): .remove(key)
    case .removeAll(let range): .removeAll(range)
    }
  }
}

extension BatchChange: Sendable where Value: Sendable {}
extension BatchChange: Equatable where Value: Equatable {}
