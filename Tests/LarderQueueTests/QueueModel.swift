import Larder

/// What a queue is to do, in the plainest way: every item in one array, searched from the beginning.
struct QueueModel: Equatable {
  struct Item: Equatable {
    var sequence: UInt64
    var key: StoreKey
    var value: Int
    var attempts = 0
    /// Until when it is delayed or leased.
    var until: Int64?
    /// The number of its lease; `nil` where it is not leased.
    var lease: Int?
    var hasCallersKey: Bool
    /// What its delay or lease was when it was made: what is found again at an opening.
    var made: Timer?
    /// When it became a dead letter.
    var died: Int64?
    /// When it died as the files say.
    var diedAtFirst: Int64?
  }

  struct Timer: Equatable {
    var until: Int64
    var length: Int64
    var lease: Int?
  }

  /// What a receipt stands for.
  struct Receipt: Equatable {
    var sequence: UInt64
    var attempt: Int
    var lease: Int
  }

  struct Delivery: Equatable {
    var key: StoreKey
    var value: Int
    var attempt: Int
  }

  var maximumDeliveries: Int?
  var window: Int64
  var now: Int64
  /// In order of arrival.
  var items: [Item] = []
  var dead: [Item] = []
  var remembered: [StoreKey: Int64] = [:]
  /// Until when they were to be remembered at first.
  var rememberedAtFirst: [StoreKey: Int64] = [:]
  var nextSequence: UInt64 = 1
  var nextLease = 1

  init(maximumDeliveries: Int?, window: Int64, now: Int64) {
    self.maximumDeliveries = maximumDeliveries
    self.window = window
    self.now = now
  }

  mutating func advance(to now: Int64) {
    self.now = max(self.now, now)
    expire()
  }

  /// What is found when the queue is opened again.
  mutating func reopen() {
    for index in items.indices {
      items[index].until = items[index].made?.until
      items[index].lease = items[index].made?.lease
    }
    for index in dead.indices { dead[index].died = dead[index].diedAtFirst.map { min($0, now) } }
    remembered = rememberedAtFirst
    bound()
    expire()
  }

  private mutating func bound() {
    for index in items.indices {
      guard let until = items[index].until, let length = items[index].made?.length else { continue }
      items[index].until = min(until, now + length)
    }
    remembered = remembered.mapValues { min($0, now + window) }
  }

  private mutating func expire() {
    for index in items.indices where items[index].until.map({ $0 <= now }) ?? false {
      items[index].until = nil
      items[index].lease = nil
    }
    remembered = remembered.filter { $0.value > now }
  }

  /// Gives the sequence number, or `nil` for a duplicate.
  mutating func enqueue(_ value: Int, key: StoreKey?, delay: Int64) -> UInt64? {
    if let key {
      guard !items.contains(where: { $0.key == key }), remembered[key] == nil else { return nil }
      let death = dead.last { $0.key == key }?.died
      guard death.map({ $0 + window <= now }) ?? true else { return nil }
    }
    append(value, key: key, timer: delay > 0 ? Timer(until: now + delay, length: delay) : nil)
    return nextSequence - 1
  }

  private mutating func append(_ value: Int, key: StoreKey?, timer: Timer?) {
    let digits = String(nextSequence, radix: 16)
    let generated = StoreKey(String(repeating: "0", count: 16 - digits.count) + digits)
    items.append(
      Item(
        sequence: nextSequence, key: key ?? generated, value: value, until: timer?.until, hasCallersKey: key != nil,
        made: timer))
    nextSequence += 1
  }

  mutating func setValue(_ value: Int, forKey key: StoreKey) {
    guard let index = items.firstIndex(where: { $0.key == key }) else {
      append(value, key: key, timer: nil)
      return
    }
    items[index].value = value
    items[index].attempts = 0
    if items[index].lease != nil {
      items[index].lease = nil
      items[index].until = nil
    }
    // The item is written as it is now.
    if let until = items[index].until { items[index].made?.until = until } else { items[index].made = nil }
  }

  mutating func removeValue(forKey key: StoreKey) {
    items.removeAll { $0.key == key }
  }

  mutating func receive(_ max: Int, lease: Int64) -> [(Delivery, Receipt)] {
    var deliveries: [(Delivery, Receipt)] = []
    let number = nextLease
    nextLease += 1
    var index = 0
    while index < items.count, deliveries.count < max {
      guard items[index].until == nil else {
        index += 1
        continue
      }
      if let maximumDeliveries, items[index].attempts >= maximumDeliveries {
        die(at: index)
        continue
      }
      items[index].attempts += 1
      items[index].until = now + lease
      items[index].lease = number
      items[index].made = Timer(until: now + lease, length: lease, lease: number)
      let item = items[index]
      deliveries.append(
        (
          Delivery(key: item.key, value: item.value, attempt: item.attempts),
          Receipt(sequence: item.sequence, attempt: item.attempts, lease: number)
        ))
      index += 1
    }
    return deliveries
  }

  private func index(of receipt: Receipt) -> Int? {
    items.firstIndex {
      $0.sequence == receipt.sequence && $0.lease == receipt.lease && $0.attempts == receipt.attempt
    }
  }

  /// Gives whether the receipt was good, as the following do.
  mutating func acknowledge(_ receipt: Receipt) -> Bool {
    guard let index = index(of: receipt) else { return false }
    let item = items.remove(at: index)
    if item.hasCallersKey {
      remembered[item.key] = now + window
      rememberedAtFirst[item.key] = now + window
    }
    return true
  }

  mutating func release(_ receipt: Receipt, delay: Int64) -> Bool {
    guard let index = index(of: receipt) else { return false }
    items[index].lease = nil
    items[index].until = delay > 0 ? now + delay : nil
    items[index].made = delay > 0 ? Timer(until: now + delay, length: delay) : nil
    if let maximumDeliveries, items[index].attempts >= maximumDeliveries {
      items[index].until = nil
      items[index].made = nil
      die(at: index)
    }
    return true
  }

  private mutating func die(at index: Int) {
    var item = items.remove(at: index)
    item.died = now
    item.diedAtFirst = now
    dead.append(item)
    dead.sort { $0.sequence < $1.sequence }
  }

  mutating func extend(_ receipt: Receipt, lease: Int64) -> Bool {
    guard let index = index(of: receipt) else { return false }
    items[index].until = now + lease
    items[index].made = Timer(until: now + lease, length: lease, lease: receipt.lease)
    return true
  }

  /// Gives whether it could be done: not where an item has the key.
  mutating func requeue(_ key: StoreKey) -> Bool {
    guard let index = dead.lastIndex(where: { $0.key == key }) else { return true }
    guard !items.contains(where: { $0.key == key }) else { return false }
    var item = dead.remove(at: index)
    item.sequence = nextSequence
    item.attempts = 0
    item.made = nil
    item.died = nil
    items.append(item)
    nextSequence += 1
    return true
  }

  mutating func purge(_ key: StoreKey) {
    dead.removeAll { $0.key == key }
  }

  mutating func voidLeases() {
    for index in items.indices where items[index].lease != nil {
      items[index].lease = nil
      items[index].until = nil
      items[index].made = nil
    }
  }
}
