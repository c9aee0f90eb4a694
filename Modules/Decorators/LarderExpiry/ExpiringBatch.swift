public import Larder

/// Changes to an ``ExpiringStore`` that are made all together or not at all, in sequence, each value with an expiration of
/// its own where it is given one.
///
/// ```swift
/// var batch = ExpiringBatch<Session>()
/// batch.removeAll(in: .prefix("session:7:"))
/// batch.setValue(session, forKey: "session:7:1", expires: .after(.seconds(60)))
/// batch.setValue(profile, forKey: "session:7:2")
/// try await store.apply(batch)
/// ```
public struct ExpiringBatch<Value> {
  /// The changes, in the order in which they take effect.
  public private(set) var changes: ChangeBatch<Value>

  /// The expirations of those changes that were given one, by the place of the change.
  private var expirations: [Int: Expiration] = [:]

  /// Makes a batch.
  ///
  /// - Parameter changes: The first changes, of which none has an expiration of its own; none unless given.
  public init(_ changes: ChangeBatch<Value> = []) {
    self.changes = changes
  }

  /// The expiration of its own that a change was given, by its place.
  func expiration(at index: Int) -> Expiration? {
    expirations.isEmpty ? nil : expirations[index]
  }

  /// Adds the setting of a value, in place of any other under that key.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - expiration: When it expires; `nil`, the default, for what the store gives it.
  public mutating func setValue(_ value: Value, forKey key: StoreKey, expires expiration: Expiration? = nil) {
    expirations[changes.count] = expiration
    changes.setValue(value, forKey: key)
  }

  /// Adds the removal of a key.
  ///
  /// - Parameter key: The key; it may be missing.
  public mutating func removeValue(forKey key: StoreKey) {
    changes.removeValue(forKey: key)
  }

  /// Adds the removal of every key of a range.
  ///
  /// - Parameter range: The keys to remove; every key unless given.
  public mutating func removeAll(in range: KeyRange = .all) {
    changes.removeAll(in: range)
  }
}

extension ExpiringBatch: Sendable where Value: Sendable {}
extension ExpiringBatch: Equatable where Value: Equatable {}
