import Larder

/// What a batch touches, and what it leaves under the keys that it names.
struct WrittenKeys<Value> {
  /// The keys that are named, each once.
  private(set) var keys: [StoreKey] = []

  /// What each of them has in the end; `nil` where it is removed.
  private(set) var values: [Value?] = []

  /// The ranges that are removed.
  private(set) var ranges: [KeyRange] = []

  /// Looks at a batch.
  ///
  /// - Parameter changes: The batch.
  init(_ changes: ChangeBatch<Value>) {
    guard changes.count > 1 else {
      for change in changes.changes { append(change) }
      return
    }
    var places: [StoreKey: Int] = [:]
    for change in changes.changes {
      if let key = change.key {
        if let place = places[key] {
          if case .set(_, let value) = change { values[place] = value } else { values[place] = nil }
          continue
        }
        places[key] = keys.count
      } else if case .removeAll(let range) = change {
        for place in keys.indices where range.contains(keys[place]) { values[place] = nil }
      }
      append(change)
    }
  }

  private mutating func append(_ change: Change<Value>) {
    switch change {
    case .set(let key, let value):
      keys.append(key)
      values.append(value)
    case .remove(let key):
      keys.append(key)
      values.append(nil)
    case .removeAll(let range):
      if !range.isEmpty { ranges.append(range) }
    }
  }
}
