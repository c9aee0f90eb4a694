import Larder

/// What a batch touches, and what it leaves under the keys that it names.
struct WrittenKeys {
  /// The keys that are named, each once.
  private(set) var keys: [StoreKey] = []

  /// What each of them has in the end; `nil` where it is removed.
  private(set) var values: [(any CachedValue)?] = []

  /// The ranges that are removed: no more than ``highestRangeCount``, of which the last covers all that would be too
  /// many.
  ///
  /// Every range is noted in every shard, and asked by every key that is written meanwhile. To take a key for removed
  /// that is not costs a read.
  private(set) var ranges: [KeyRange] = []

  /// The most ranges that are told apart.
  static let highestRangeCount = 16

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
    if ranges.count == WrittenKeys.highestRangeCount, let last = ranges.popLast() {
      ranges.append(last.covering(range))
    } else {
      ranges.append(range)
    }
  }
}

extension KeyRange {
  /// The range from where the first of two begins to where the last of them ends.
  fileprivate func covering(_ other: KeyRange) -> KeyRange {
    var end: StoreKey?
    if let upperBound, let otherBound = other.upperBound { end = max(upperBound, otherBound) }
    return KeyRange(from: min(lowerBound, other.lowerBound), upTo: end)
  }
}
