import Larder

/// Looking up items.
extension QueueLedger {
  /// The live item of a key.
  func item(forKey key: StoreKey) -> QueueItem? {
    keys[key].flatMap { items[$0] }
  }

  /// The first live items of a range, by key.
  func items(in range: KeyRange, limit: Int, order: ScanOrder) -> [QueueItem] {
    var found: [QueueItem] = []
    keys.forEach(in: range, limit: limit, order: order) { _, sequence in
      if let item = items[sequence] { found.append(item) }
    }
    return found
  }

  /// The first keys of live items of a range.
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreKey] {
    keys.keys(in: range, limit: limit, order: order)
  }

  /// Counts the live items of a range.
  func count(in range: KeyRange) -> Int {
    keys.count(in: range)
  }

  /// The first items that wait, in order of arrival.
  mutating func firstWaiting(_ limit: Int) -> [QueueItem] {
    items.firstWaiting(limit)
  }

  /// The first items that would be delivered, in order of arrival.
  mutating func firstDeliverable(_ limit: Int) -> [QueueItem] {
    let rules = rules
    return items.firstWaiting(limit) { !rules.isExhausted($0) }
  }

  /// When the oldest live item came, in microseconds.
  var oldestArrival: Int64? { items.first?.arrival }

  /// The dead letters, in order of arrival.
  ///
  /// - Parameters:
  ///   - limit: The most to give.
  ///   - sequence: Only those behind this number; defaults to all.
  func deadLetters(_ limit: Int, after sequence: UInt64 = 0) -> [ItemState] {
    var found: [ItemState] = []
    guard limit > 0, sequence < .max else { return [] }
    deadItems.forEach(from: sequence + 1) { item in
      found.append(state(of: item))
      return found.count < limit
    }
    return found
  }
}
