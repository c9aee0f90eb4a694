/// Changes that a store makes all together or not at all, in sequence.
///
/// ```swift
/// var batch = ChangeBatch<Account>()
/// batch.setValue(payer, forKey: "account:1")
/// batch.setValue(payee, forKey: "account:2")
/// batch.removeValue(forKey: "transfer:17")
/// try await store.apply(batch)
/// ```
///
/// A later change wins over an earlier one to the same key, so removing a range and setting its keys anew replaces
/// everything in it at once.
public struct ChangeBatch<Value> {
  /// The changes, in the order in which they take effect.
  public private(set) var changes: [Change<Value>]

  /// Makes a batch.
  ///
  /// - Parameter changes: The changes, in the order in which they take effect.
  public init(_ changes: [Change<Value>] = []) {
    self.changes = changes
  }

  /// The number of changes.
  @inlinable
  public var count: Int { changes.count }

  /// Whether there is nothing to change.
  @inlinable
  public var isEmpty: Bool { changes.isEmpty }

  /// Adds a change.
  ///
  /// - Parameter change: The change.
  public mutating func append(_ change: Change<Value>) {
    changes.append(change)
  }

  /// Adds the setting of a value, in place of any other under that key.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  public mutating func setValue(_ value: Value, forKey key: StoreKey) {
    changes.append(.set(key, value))
  }

  /// Adds the removal of a key.
  ///
  /// - Parameter key: The key; it may be missing.
  public mutating func removeValue(forKey key: StoreKey) {
    changes.append(.remove(key))
  }

  /// Adds the removal of every key of a range.
  ///
  /// - Parameter range: The keys to remove; every key unless given.
  public mutating func removeAll(in range: KeyRange = .all) {
    changes.append(.removeAll(range))
  }

  /// Makes room for changes to come.
  ///
  /// - Parameter capacity: How many changes the batch will hold in all.
  public mutating func reserveCapacity(_ capacity: Int) {
    changes.reserveCapacity(capacity)
  }
}

extension ChangeBatch: Sendable where Value: Sendable {}
extension ChangeBatch: Equatable where Value: Equatable {}

extension ChangeBatch: ExpressibleByArrayLiteral {
  /// Makes a batch of changes written in brackets.
  ///
  /// - Parameter elements: The changes, in the order in which they take effect.
  public init(arrayLiteral elements: Change<Value>...) {
    self.init(elements)
  }
}
