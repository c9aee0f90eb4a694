import Larder

/// What is accepted and not yet written, as it was at one moment, above what a base holds.
struct PendingView<Value: Sendable>: Sendable {
  typealias Content = PendingChanges<Value>.Content

  /// What is being written.
  let inFlight: PendingChanges<Value>
  /// What waits, and wins over that.
  let pending: PendingChanges<Value>
  /// Changes where something accepted later may have reached the base.
  let epoch: UInt64

  /// What was accepted for a key, or `nil` where the base is to be asked.
  subscript(key: StoreKey) -> Content? { pending[key] ?? inFlight[key] }

  /// Whether any key of a range has something accepted.
  func isEmpty(in range: KeyRange) -> Bool {
    pending.count(in: range) == 0 && inFlight.count(in: range) == 0
  }

  /// What was accepted for the keys of a range, in order.
  func contents(in range: KeyRange, order: ScanOrder) -> [(key: StoreKey, content: Content)] {
    var newer: [(key: StoreKey, content: Content)] = []
    var older: [(key: StoreKey, content: Content)] = []
    pending.forEach(in: range, order: order) { newer.append(($0, $1)) }
    inFlight.forEach(in: range, order: order) { older.append(($0, $1)) }
    return PendingView.merge(newer, over: older, order: order, key: \.key, otherKey: \.key, one: \.self, other: \.self)
  }

  /// How many entries to read of the base so that those which were accepted as removed do not make a page short.
  static func limit(_ limit: Int, beside contents: [(key: StoreKey, content: Content)]) -> Int {
    let removals = contents.count { if case .removed = $0.content { true } else { false } }
    return limit > Int.max - removals ? .max : limit + removals
  }

  /// The first entries of a range.
  static func entries(
    _ base: [StoreEntry<Value>], under contents: [(key: StoreKey, content: Content)], limit: Int, order: ScanOrder
  ) -> [StoreEntry<Value>] {
    func entry(_ item: (key: StoreKey, content: Content)) -> StoreEntry<Value>? {
      if case .set(let value) = item.content { StoreEntry(key: item.key, value: value) } else { nil }
    }
    let merged = merge(
      contents, over: base, order: order, key: \.key, otherKey: \.key, one: entry, other: { $0 })
    return Array(merged.lazy.compactMap { $0 }.prefix(limit))
  }

  /// The first keys of a range.
  static func keys(
    _ base: [StoreKey], under contents: [(key: StoreKey, content: Content)], limit: Int, order: ScanOrder
  ) -> [StoreKey] {
    func key(_ item: (key: StoreKey, content: Content)) -> StoreKey? {
      if case .set = item.content { item.key } else { nil }
    }
    let merged = merge(contents, over: base, order: order, key: \.key, otherKey: \.self, one: key, other: { $0 })
    return Array(merged.lazy.compactMap { $0 }.prefix(limit))
  }

  /// Merges two lists in key order; where both have a key, the first wins.
  private static func merge<First, Second, Result>(
    _ first: [First], over second: [Second], order: ScanOrder, key: (First) -> StoreKey, otherKey: (Second) -> StoreKey,
    one: (First) -> Result, other: (Second) -> Result
  ) -> [Result] {
    var result: [Result] = []
    result.reserveCapacity(first.count + second.count)
    var place = 0
    for item in first {
      let key = key(item)
      while place < second.count {
        let behind = otherKey(second[place])
        if behind == key {
          place += 1
          break
        }
        guard order == .ascending ? behind < key : behind > key else { break }
        result.append(other(second[place]))
        place += 1
      }
      result.append(one(item))
    }
    for item in second[place...] { result.append(other(item)) }
    return result
  }
}
