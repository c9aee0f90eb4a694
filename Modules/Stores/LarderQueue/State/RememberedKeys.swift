import Larder

/// The keys of acknowledged items, remembered until they may be enqueued again.
struct RememberedKeys: Sendable {
  private(set) var entries: [StoreKey: RememberedKey] = [:]
  private var order: [(deadline: Int64, key: StoreKey)] = []
  private var head = 0

  subscript(key: StoreKey) -> RememberedKey? { entries[key] }

  /// Sets or removes the entry of a key.
  ///
  /// - Returns: The previous entry.
  mutating func set(_ new: RememberedKey?, for key: StoreKey) -> RememberedKey? {
    if let new { order.append((new.deadline, key)) }
    let old = entries[key]
    entries[key] = new
    return old
  }

  /// Moves later deadlines to the given time.
  ///
  /// - Returns: The keys whose deadlines were those of a clock that was ahead, in order.
  mutating func bound(to latest: Int64) -> [StoreKey] {
    var wrong: [StoreKey] = []
    for (key, entry) in entries where entry.deadline > latest {
      if WallClock.wasAhead(at: entry.deadline, now: latest) { wrong.append(key) }
      entries[key]?.deadline = latest
    }
    order = entries.map { ($1.deadline, $0) }.sorted { $0.deadline < $1.deadline }
    head = 0
    return wrong.sorted()
  }

  /// Returns the next expired key.
  ///
  /// You must remove its entry.
  mutating func nextExpired(at now: Int64) -> StoreKey? {
    while head < order.count, order[head].deadline <= now {
      let key = order[head].key
      head += 1
      if let entry = entries[key], entry.deadline <= now { return key }
    }
    if head > 1024, head > order.count / 2 {
      order.removeSubrange(..<head)
      head = 0
    }
    return nil
  }
}

/// The entry of a key that must not be enqueued again until a deadline.
struct RememberedKey: Sendable, Hashable {
  /// The sequence number of the item that had the key.
  var sequence: UInt64
  /// The deadline, in microseconds since 1970.
  var deadline: Int64
  /// The segment with the record.
  var segment: UInt32
}
