import Larder

/// Looking up items.
extension QueueLedger {
  /// Returns the live item of a key.
  func item(forKey key: StoreKey) -> QueueItem? {
    keys[key].flatMap { items[$0] }
  }

  /// Returns the first live items of a range of keys.
  func items(in range: KeyRange, limit: Int, order: ScanOrder) -> [QueueItem] {
    var found: [QueueItem] = []
    keys.forEach(in: range, limit: limit, order: order) { _, sequence in
      if let item = items[sequence] { found.append(item) }
    }
    return found
  }

  /// Returns the first items that would be delivered, in order of arrival.
  mutating func firstDeliverable(_ limit: Int) -> [QueueItem] {
    let rules = rules
    return items.firstWaiting(limit) { !rules.isExhausted($0) }
  }

  /// The time of arrival of the oldest live item, in microseconds.
  var oldestArrival: Int64? { items.first?.arrival }

  /// Returns the dead letters in order of arrival.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of dead letters.
  ///   - sequence: The sequence number to start after. Defaults to 0.
  func deadLetters(_ limit: Int, after sequence: UInt64 = 0) -> [ItemState] {
    guard sequence < .max else { return [] }
    return deadItems.items(from: sequence + 1).prefix(limit).map(state(of:))
  }

  /// The most leased and delayed items that ``leasedItems(_:after:)`` looks at.
  private static var lookLimit: Int { 4096 }

  /// Returns leased items in order of arrival.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of items.
  ///   - sequence: The sequence number to start after. Defaults to 0.
  /// - Returns: The items, and the sequence number after which there may be more, or `nil`.
  func leasedItems(_ limit: Int, after sequence: UInt64 = 0) -> (found: [ItemState], next: UInt64?) {
    guard sequence < .max else { return ([], nil) }
    var found: [ItemState] = []
    var (lookCount, last) = (0, sequence)
    for item in items.heldItems(from: sequence + 1) {
      guard found.count < limit, lookCount < Self.lookLimit else { return (found, last) }
      if item.phase == .leased { found.append(state(of: item)) }
      (lookCount, last) = (lookCount + 1, item.sequence)
    }
    return (found, nil)
  }
}
