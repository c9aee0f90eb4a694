import Larder

/// What a batch touches, and what it leaves under the keys that it names.
struct WrittenKeys {
  /// The keys that are named, each once.
  private(set) var keys: [StoreKey] = []

  /// What each of them has in the end; `nil` where it is removed.
  private(set) var values: [(any CachedValue)?] = []

  /// The ranges that are removed.
  private(set) var ranges: [KeyRange] = []

  // Where the keys are; `nil` where there is but one change.
  private var places: [StoreKey: Int]?

  /// Looks at a batch.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - box: Puts a value in a box for the cache.
  init<Value>(_ changes: ChangeBatch<Value>, box: (Value) -> any CachedValue) {
    places = changes.count > 1 ? [:] : nil
    for change in changes.changes {
      switch change {
      case .set(let key, let value): set(box(value), forKey: key)
      case .remove(let key): set(nil, forKey: key)
      case .removeAll(let range): removeAll(in: range)
      }
    }
  }

  private mutating func set(_ value: (any CachedValue)?, forKey key: StoreKey) {
    if let place = places?[key] {
      values[place] = value
      return
    }
    places?[key] = keys.count
    keys.append(key)
    values.append(value)
  }

  private mutating func removeAll(in range: KeyRange) {
    guard !range.isEmpty else { return }
    for place in keys.indices where range.contains(keys[place]) { values[place] = nil }
    ranges.append(range)
  }
}
