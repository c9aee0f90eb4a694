import Larder

/// A model of a queue, in seconds and without any I/O.
struct QueueHistoryModel: Sendable {
  enum Phase: Sendable, Equatable {
    case waiting
    case delayed(until: Int)
    case leased(until: Int, number: Int)
  }

  struct Item: Sendable {
    var key: StoreKey
    var number: Int64
    var priority: Int
    var group: StoreKey?
    var isNamed: Bool
    var phase: Phase
    var attempts = 0
  }

  static let maximumDeliveries = 3
  static let window = 60

  var now = 0
  /// In the order of arrival.
  private(set) var items: [Item] = []
  private(set) var dead: [Item] = []
  private var remembered: [StoreKey: Int] = [:]
  private var nextLease = 0

  // MARK: Reading

  var counts: QueueCounts {
    var counts = QueueCounts(dead: dead.count)
    for item in items {
      switch item.phase {
      case .waiting: counts.waiting += 1
      case .delayed: counts.delayed += 1
      case .leased: counts.leased += 1
      }
    }
    return counts
  }

  var entries: [StoreKey: Int64] { Dictionary(uniqueKeysWithValues: items.map { ($0.key, $0.number) }) }

  /// A Boolean value that indicates whether an item must become a dead letter when it would be delivered.
  ///
  /// It is not known when that happens.
  var hasExhausted: Bool {
    items.contains { $0.phase == .waiting && $0.attempts >= QueueHistoryModel.maximumDeliveries }
  }

  /// The indices of the items that are delivered next, in order.
  var deliverable: [Int] {
    var blocked: Set<StoreKey> = []
    for item in items {
      if let group = item.group, case .leased = item.phase { blocked.insert(group) }
    }
    var found: [Int] = []
    for (index, item) in items.enumerated() {
      if let group = item.group, !blocked.insert(group).inserted { continue }
      if item.phase == .waiting { found.append(index) }
    }
    return found.sorted { (-items[$0].priority, $0) < (-items[$1].priority, $1) }
  }

  // MARK: Changing

  /// Returns whether the item is a duplicate.
  mutating func enqueue(_ item: Item) -> Bool {
    if item.isNamed {
      guard !items.contains(where: { $0.key == item.key }), (remembered[item.key] ?? 0) <= now else { return true }
    }
    items.append(item)
    return false
  }

  /// Leases an item and returns the number of the lease.
  mutating func lease(_ index: Int, seconds: Int) -> Int {
    nextLease += 1
    items[index].attempts += 1
    items[index].phase = .leased(until: now + seconds, number: nextLease)
    return nextLease
  }

  private func index(ofLease number: Int) -> Int? {
    items.firstIndex { if case .leased(_, number) = $0.phase { true } else { false } }
  }

  /// Returns whether the receipt is valid.
  mutating func acknowledge(_ lease: Int) -> Bool {
    guard let index = index(ofLease: lease) else { return false }
    leave(index)
    return true
  }

  private mutating func leave(_ index: Int) {
    let item = items.remove(at: index)
    if item.isNamed { remembered[item.key] = now + QueueHistoryModel.window }
  }

  /// Returns whether the receipt is valid.
  mutating func release(_ lease: Int, after delay: Int?, counts: Bool) -> Bool {
    guard let index = index(ofLease: lease) else { return false }
    if counts, items[index].attempts >= QueueHistoryModel.maximumDeliveries {
      bury(index)
      return true
    }
    let seconds = delay ?? (items[index].attempts == 1 ? 10 : 20)
    if !counts { items[index].attempts -= 1 }
    items[index].phase = seconds > 0 ? .delayed(until: now + seconds) : .waiting
    return true
  }

  /// Returns whether the receipt is valid.
  mutating func extend(_ lease: Int, seconds: Int) -> Bool {
    guard let index = index(ofLease: lease) else { return false }
    items[index].phase = .leased(until: now + seconds, number: lease)
    return true
  }

  private mutating func bury(_ index: Int) {
    dead.append(items[index])
    leave(index)
  }

  /// Buries all exhausted items that are delivered next.
  mutating func buryExhausted() {
    while let index = deliverable.first(where: { items[$0].attempts >= QueueHistoryModel.maximumDeliveries }) {
      bury(index)
    }
  }

  mutating func advance(_ seconds: Int) {
    now += seconds
    for index in items.indices {
      switch items[index].phase {
      case .delayed(let end) where end <= now: items[index].phase = .waiting
      case .leased(let end, _) where end <= now: items[index].phase = .waiting
      default: break
      }
    }
  }

  mutating func set(_ key: StoreKey, _ number: Int64) {
    guard let index = items.firstIndex(where: { $0.key == key }) else {
      items.append(Item(key: key, number: number, priority: 0, group: nil, isNamed: true, phase: .waiting))
      return
    }
    items[index].number = number
    items[index].attempts = 0
    if case .leased = items[index].phase { items[index].phase = .waiting }
  }

  mutating func remove(_ key: StoreKey) {
    items.removeAll { $0.key == key }
  }

  /// Returns the number of requeued dead letters, or `nil` if a live item has the key.
  mutating func requeue(_ key: StoreKey) -> Int? {
    guard let index = latestDead(key) else { return 0 }
    guard !items.contains(where: { $0.key == key }) else { return nil }
    var item = dead.remove(at: index)
    item.attempts = 0
    item.phase = .waiting
    items.append(item)
    return 1
  }

  /// The dead letter with a key that arrived last; those of one key die in the order of arrival.
  private func latestDead(_ key: StoreKey) -> Int? { dead.lastIndex { $0.key == key } }

  mutating func purge(_ key: StoreKey) -> Int {
    let count = dead.count
    dead.removeAll { $0.key == key }
    return count - dead.count
  }
}
