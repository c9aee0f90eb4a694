extension SortedMap {
  /// Makes one change of a batch.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - displaced: Gets the values that were there before, so that the caller can release them outside a lock.
  package mutating func apply(_ change: Change<Value>, displacing displaced: inout [Value]) {
    switch change {
    case .set(let key, let value):
      if let old = setValue(value, forKey: key) { displaced.append(old) }
    case .remove(let key):
      if let old = removeValue(forKey: key) { displaced.append(old) }
    case .removeAll(let range):
      displaced.append(contentsOf: removeAll(in: range))
    }
  }
}
