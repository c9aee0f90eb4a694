import Larder
import LarderTesting

@testable import LarderQueue

/// The specification of a queue in its simplest form: all items in one array with linear searches.
struct QueueModel: Equatable {
  struct Item: Equatable {
    var sequence: UInt64
    var key: StoreKey
    var value: Int
    var attempts = 0
    /// The end of its delay or lease.
    var until: Int64?
    /// The number of its lease, or `nil` if it is not leased.
    var lease: Int?
    var hasCallersKey: Bool
    /// Its delay or lease as originally recorded, which opening restores.
    var made: Timer?
    /// The time when it became a dead letter.
    var died: Int64?
    /// The time of its death as recorded in the files.
    var diedAtFirst: Int64?
  }

  struct Timer: Equatable {
    var until: Int64
    var length: Int64
    var lease: Int?
  }

  /// The model's counterpart of a receipt.
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
  /// The items in order of arrival.
  var items: [Item] = []
  var dead: [Item] = []
  var remembered: [StoreKey: Int64] = [:]
  /// The original ends of their time in memory.
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

  /// Reopens the queue.
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

  /// Enqueues a value, and returns its sequence number, or `nil` for a duplicate.
  mutating func enqueue(_ value: Int, key: StoreKey?, delay: Int64) -> UInt64? {
    if let key {
      guard !items.contains(where: { $0.key == key }), remembered[key] == nil else { return nil }
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
    // The item is written with its current state.
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

  /// Acknowledges an item.
  ///
  /// Like the following methods, returns whether the receipt was valid.
  mutating func acknowledge(_ receipt: Receipt) -> Bool {
    guard let index = index(of: receipt) else { return false }
    remember(items.remove(at: index))
    return true
  }

  private mutating func remember(_ item: Item) {
    guard item.hasCallersKey else { return }
    remembered[item.key] = now + window
    rememberedAtFirst[item.key] = now + window
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
    remember(item)
    dead.append(item)
    dead.sort { $0.sequence < $1.sequence }
  }

  mutating func extend(_ receipt: Receipt, lease: Int64) -> Bool {
    guard let index = index(of: receipt) else { return false }
    items[index].until = now + lease
    items[index].made = Timer(until: now + lease, length: lease, lease: receipt.lease)
    return true
  }

  /// Requeues a dead letter, and returns `false` if its key is in use.
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

/// The whole content of a ledger, for comparison with another.
struct LedgerView: Equatable {
  var items: [ItemState]
  var dead: [ItemState]
  var nextSequence: UInt64
  /// The instants until which keys are remembered.
  var remembered: [StoreKey: Int64]

  init(_ ledger: QueueLedger) {
    items = ledger.items(in: .all, limit: .max, order: .ascending).compactMap { ledger.state(of: $0.sequence) }
      .sorted { $0.item.sequence < $1.item.sequence }
    dead = ledger.deadLetters(.max)
    nextSequence = ledger.nextSequence
    remembered = ledger.remembered.entries.mapValues(\.deadline)
  }

  /// Returns the content after time has passed.
  func advanced(to now: Int64) -> LedgerView {
    var view = self
    for index in view.items.indices where view.items[index].timer.map({ $0.deadline <= now }) ?? false {
      view.items[index].timer = nil
      view.items[index].item.phase = .waiting
    }
    view.remembered = view.remembered.filter { $0.value > now }
    return view
  }

  /// Returns the difference from a model, whose values are given by `values`, or `nil` if there isn't one.
  func difference(from model: QueueModel, values: [StoreKey: Int]) -> String? {
    let found = items.map { state in
      QueueModel.Item(
        sequence: state.item.sequence, key: state.item.key, value: values[state.item.key] ?? -1,
        attempts: Int(state.item.attempts), until: state.timer?.deadline,
        lease: state.item.phase == .leased ? 0 : nil, hasCallersKey: state.item.hasCallersKey)
    }
    let expected = model.items.map { item in
      var item = item
      if item.lease != nil { item.lease = 0 }
      item.made = nil
      item.diedAtFirst = nil
      return item
    }
    guard found == expected else { return "items: \(found), in the model \(expected)" }
    let (deadFound, deadExpected) = (dead.map(\.item.sequence), model.dead.map(\.sequence))
    guard deadFound == deadExpected else { return "dead: \(deadFound), in the model \(deadExpected)" }
    guard remembered == model.remembered else { return "remembered: \(remembered), in the model \(model.remembered)" }
    return nil
  }
}

/// A step of a history that runs on a queue and on its model.
enum QueueStep: Hashable {
  case enqueue(id: Int?, delay: Int)
  case set(Int)
  case remove(Int)
  case receive(max: Int, lease: Int)
  /// Acknowledges with one of the receipts so far, counted from the last one.
  case acknowledge(Int)
  case release(Int, delay: Int)
  case extend(Int, lease: Int)
  case requeue(Int)
  case purge(Int)
  /// Advances the clock by seconds.
  case advance(Int)
  case reopen
  case void

  static func key(_ number: Int) -> StoreKey { StoreKey("id:\(number)") }

  /// The steps of the exhaustive histories, with few keys and with times that coincide.
  static let few: [QueueStep] = [
    .enqueue(id: nil, delay: 0), .enqueue(id: 1, delay: 5), .set(1), .remove(1), .receive(max: 1, lease: 10),
    .receive(max: 2, lease: 5), .acknowledge(0), .release(0, delay: 0), .release(1, delay: 5), .extend(0, lease: 20),
    .requeue(1), .advance(6),
  ]

  static func random(using generator: inout SeededGenerator) -> QueueStep {
    let id = Int.random(in: 0..<6, using: &generator)
    let back = Int.random(in: 0..<4, using: &generator)
    let time = Int.random(in: 1...12, using: &generator)
    return switch Int.random(in: 0..<32, using: &generator) {
    case 0..<7: .enqueue(id: Bool.random(using: &generator) ? id : nil, delay: 0)
    case 7..<9: .enqueue(id: id, delay: time)
    case 9..<11: .set(id)
    case 11: .remove(id)
    case 12..<18: .receive(max: Int.random(in: 1...4, using: &generator), lease: time)
    case 18..<23: .acknowledge(back)
    case 23..<25: .release(back, delay: Bool.random(using: &generator) ? 0 : time)
    case 25: .extend(back, lease: time)
    case 26: .requeue(id)
    case 27: .purge(id)
    case 28: .void
    case 29: .reopen
    default: .advance(time)
    }
  }
}
