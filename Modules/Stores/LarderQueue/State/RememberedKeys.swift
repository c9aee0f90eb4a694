import Larder

/// The keys of items that were acknowledged, for as long as they are not to be enqueued again.
struct RememberedKeys: Sendable {
  private(set) var entries: [StoreKey: RememberedKey] = [:]
  private var order: [(deadline: Int64, key: StoreKey)] = []
  private var head = 0

  subscript(key: StoreKey) -> RememberedKey? { entries[key] }

  /// Remembers a key, or forgets it.
  ///
  /// - Returns: What was remembered of it.
  mutating func set(_ new: RememberedKey?, for key: StoreKey) -> RememberedKey? {
    if let new { order.append((new.deadline, key)) }
    let old = entries[key]
    entries[key] = new
    return old
  }

  /// Remembers nothing longer than to a time.
  mutating func bound(to latest: Int64) {
    for (key, entry) in entries where entry.deadline > latest { entries[key]?.deadline = latest }
    order = entries.map { ($1.deadline, $0) }.sorted { $0.deadline < $1.deadline }
    head = 0
  }

  /// A key whose time is over; it is for the caller to forget it.
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
