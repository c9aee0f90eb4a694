import Larder

/// Changes to keys that are accepted and not yet written, the last one to each key: plain state.
///
/// Changes that came in one batch are written together or not at all. Where two batches change the same key, neither can
/// go without the other, so that they become one *unit*. Units have no key in common: they may be written in any order.
struct PendingChanges<Value: Sendable>: Sendable {
  /// What is pending for a key.
  enum Content: Sendable {
    case set(Value)
    case removed
  }

  private struct Entry: Sendable {
    let content: Content
    let size: BatchSize
    let unit: Int
  }

  private var entries = SortedMap<Entry>()
  /// For each unit that which it has become part of, or itself.
  private var units: [Int] = []

  /// How large the changes are.
  private(set) var size = BatchSize()

  /// Whether nothing is pending.
  var isEmpty: Bool { entries.count == 0 }

  /// What is pending for a key, or `nil` where nothing is.
  subscript(key: StoreKey) -> Content? { entries[key]?.content }

  /// Adds a batch without removals of ranges.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - bounds: Tells how large a change is.
  /// - Returns: What it displaces, to be released outside a lock.
  mutating func add(_ batch: SizedBatch<Value>) -> [Content] {
    // It would be a unit of nothing, of which any number could pile up.
    if batch.changes.isEmpty { return [] }
    var displaced: [Content] = []
    let unit = joinedUnit(of: batch)
    for (change, size) in batch.changes {
      guard let key = change.key else { continue }
      let content: Content = if case .set(_, let value) = change { .set(value) } else { .removed }
      self.size += size
      if let old = entries.setValue(Entry(content: content, size: size, unit: unit), forKey: key) {
        self.size -= old.size
        displaced.append(old.content)
      }
    }
    return displaced
  }

  /// The unit of a batch: a new one, or all those that it touches, made one.
  private mutating func joinedUnit(of batch: SizedBatch<Value>) -> Int {
    var joined: Int?
    for (change, _) in batch.changes {
      guard let key = change.key, let entry = entries[key] else { continue }
      let unit = root(of: entry.unit)
      if let joined { units[unit] = joined } else { joined = unit }
    }
    if let joined { return joined }
    units.append(units.count)
    return units.count - 1
  }

  private mutating func root(of unit: Int) -> Int {
    var unit = unit
    while units[unit] != unit {
      units[unit] = units[units[unit]]
      unit = units[unit]
    }
    return unit
  }

  /// The changes, unit by unit.
  func changesByUnit() -> [[Change<Value>]] {
    var copy = self
    var places: [Int: Int] = [:]
    var result: [[Change<Value>]] = []
    entries.forEach { key, entry in
      let change: Change<Value> = if case .set(let value) = entry.content { .set(key, value) } else { .remove(key) }
      let unit = copy.root(of: entry.unit)
      if let place = places[unit] {
        result[place].append(change)
      } else {
        places[unit] = result.count
        result.append([change])
      }
    }
    return result
  }

  /// Calls a closure with each key of a range for which something is pending.
  func forEach(in range: KeyRange, order: ScanOrder, _ body: (StoreKey, Content) -> Void) {
    entries.forEach(in: range, order: order) { body($0, $1.content) }
  }

  /// How many keys of a range have something pending.
  func count(in range: KeyRange) -> Int { entries.count(in: range) }
}
