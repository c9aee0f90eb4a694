#if LMDB
import Testing

@testable import Larder
@testable import LarderStoreQueue

/// The rules of a queue, without any I/O.
@Suite struct QueuePlanTests {
  private static let layout = QueueLayout(prefix: "q/")
  private static let rules = QueueRules(
    maximumDeliveries: 3, duplicateWindow: 60_000_000, deadLetterRetention: 5_000_000)

  /// The entries of a base.
  private struct Entries {
    var values: [StoreKey: [UInt8]] = [:]

    /// Plans changes from the current entries, and performs them.
    mutating func perform(at now: Int64 = 1000, _ change: (inout QueuePlan) -> Void) {
      let plan = plan(at: now, change)
      #expect(perform([plan]) == [0])
    }

    func plan(at now: Int64 = 1000, _ change: (inout QueuePlan) -> Void) -> QueuePlan {
      var plan = QueuePlan(layout, rules, now: now, randomness: QueueRandomness())
      plan.read(values.mapValues { .some($0) })
      change(&plan)
      return plan
    }

    /// Performs plans, each if it is current after the preceding ones, and returns their positions.
    mutating func perform(_ plans: [QueuePlan]) -> [Int] {
      plans.indices.filter { number in
        let keys = plans[number].commit.keys.sorted()
        var slots = UpdateSlots(stored: keys.map { values[$0] })
        let isPerformed = plans[number].commit.perform(on: &slots, with: keys).isPerformed
        for (key, value) in zip(keys, slots) { values[key] = value }
        return isPerformed
      }
    }

    /// Corrects the last timer.
    mutating func correct(at now: Int64) throws {
      let timer = try #require(timer)
      #expect(WallClock.wasAhead(at: timer.beginning, now: now))
      perform(at: now) { $0.correct(timer) }
    }

    func item(_ sequence: UInt128) -> ItemRecord? { values[layout.stateKey(sequence)].flatMap { ItemRecord($0) } }

    /// The last timer.
    var timer: StoredTimer? {
      values.sorted { $0.key < $1.key }.reversed().lazy
        .compactMap { layout.timer(StoreEntry(key: $0.key, value: $0.value)) }.first
    }

    /// The kinds of the entries, in order.
    var kinds: String { String(values.keys.sorted().map { Character(Unicode.Scalar($0.bytes[2])) }) }
  }

  private static func item(_ key: StoreKey, group: StoreKey? = nil, isNamed: Bool = false) -> ItemRecord {
    ItemRecord(key: key, group: group, priority: 0, hasCallersKey: isNamed, arrival: 7)
  }

  @Test func `an item leaves only its id behind`() throws {
    var entries = Entries()
    entries.perform { $0.insert(1, Self.item("a", isNamed: true), delay: 0, payload: [1, 2]) }
    #expect(entries.kinds == "irs")
    let ready = try #require(entries.item(1))
    entries.perform { _ = $0.lease(1, ready, length: 50, epoch: 9) }
    #expect(entries.kinds == "ist")
    let leased = try #require(entries.item(1))
    #expect(leased.phase == .leased && leased.attempts == 1 && leased.epoch == 9)
    #expect(leased.beginning == 1000 && leased.deadline == 1050)
    entries.perform { $0.remove(1, leased, remembering: true) }
    #expect(entries.kinds == "du")
    let timer = try #require(entries.timer)
    entries.perform(at: timer.time) { $0.settle(timer) }
    #expect(entries.kinds == "")
  }

  @Test func `a dead letter keeps its item until it is removed`() throws {
    var entries = Entries()
    entries.perform { $0.insert(1, Self.item("a", group: "g"), delay: 5, payload: [1, 2]) }
    #expect(entries.kinds == "gist")
    let item = try #require(entries.item(1))
    entries.perform { plan in
      plan.bury(1, item, .undecodable, payload: [1, 2])
      plan.finish("g", first: nil)
    }
    #expect(entries.kinds == "uxy")
    let record = try #require(entries.values[Self.layout.deadKey(1)].flatMap { DeadRecord($0) })
    #expect(record.item == item && record.reason == .undecodable && Array(record.payload) == [1, 2])
    var requeued = entries
    requeued.perform { plan in
      let isRequeued = plan.requeue(1, as: 2)
      #expect(isRequeued)
    }
    #expect(requeued.kinds == "girs")
    entries.perform { plan in
      let isPurged = plan.purge(1)
      #expect(isPurged)
    }
    #expect(entries.kinds == "")
  }

  @Test func `two plans for one item do not both hold`() throws {
    var entries = Entries()
    entries.perform { $0.insert(1, Self.item("a"), delay: 0, payload: []) }
    let ready = try #require(entries.item(1))
    let plans = (1...2).map { number in
      entries.plan { _ = $0.lease(1, ready, length: 50, epoch: UInt64(number)) }
    }
    #expect(entries.perform(plans) == [0])
    #expect(entries.item(1)?.epoch == 1)
  }

  @Test func `the first item of a group becomes ready when the lease ends`() throws {
    var entries = Entries()
    for number in 1...3 {
      entries.perform { $0.insert(UInt128(number), Self.item("\(number)", group: "g"), delay: 0, payload: []) }
    }
    let items = try (1...3).map { try #require(entries.item(UInt128($0))) }
    entries.perform { _ = $0.lease(1, items[0], length: 50, epoch: 1) }
    entries.perform { $0.park(2, items[1]) }
    let leased = try #require(entries.item(1))
    let acknowledgement = entries.plan { plan in
      plan.remove(1, leased, remembering: true)
      plan.finish("g", first: 2)
    }
    // Parking another item in between makes the acknowledgement stale, because it may have missed that item.
    var other = entries
    other.perform { $0.park(3, items[2]) }
    #expect(other.perform([acknowledgement]).isEmpty)
    #expect(entries.perform([acknowledgement]) == [0])
    #expect(entries.item(2)?.phase == .ready && entries.item(3)?.phase == .ready)
    #expect(entries.values[Self.layout.groupKey("g")].flatMap { GroupRecord($0) }.map { $0.leased == nil } == true)
  }

  @Test func `records round trip and refuse damage`() throws {
    var item = ItemRecord(
      key: "key", group: "group", priority: -10, hasCallersKey: true, arrival: 1_800_000_000_000_000)
    item.phase = .leased
    (item.isSuspect, item.attempts, item.beginning, item.deadline, item.epoch) = (true, 7, .min, .max, .max)
    #expect(ItemRecord(item.bytes) == item)
    for length in 0..<item.bytes.count - 2 { #expect(ItemRecord(Array(item.bytes.prefix(length))) == nil) }
    var damaged = item.bytes
    damaged[3] = 0x80
    #expect(ItemRecord(damaged) == nil, "a priority of -128")
    let dead = DeadRecord(item: item, reason: .tooManyDeliveries, time: 1, expiry: 2, payload: [])
    for length in 0..<dead.bytes.count { #expect(DeadRecord(Array(dead.bytes.prefix(length))) == nil) }
    let group = GroupRecord(leased: 5, nonce: 7)
    #expect(GroupRecord(group.bytes) == group && GroupRecord([1]) == nil)
    let id = RememberedID(beginning: 4, expiry: 5, sequence: 6)
    #expect(RememberedID(id.bytes) == id && RememberedID([]) == nil)
    for subject in [QueueTimer.item(1, isLeased: true), .item(1, isLeased: false), .id("a"), .deadLetter(3)] {
      let key = Self.layout.timerKey(-5, subject)
      let found = try #require(Self.layout.timer(StoreEntry(key: key, value: Int64(-7).bigEndianBytes)))
      #expect(found.time == -5 && found.subject == subject && found.beginning == -7 && found.length == 2)
      let damaged = try #require(Self.layout.timer(StoreEntry(key: key, value: [])))
      #expect(!WallClock.wasAhead(at: damaged.beginning, now: 1))
    }
  }

  /// A timer that was set by a clock that was ahead is counted from now.
  @Test func `corrected timers keep their lengths`() throws {
    let ahead: Int64 = 1 << 40
    var entries = Entries()
    entries.perform(at: ahead) { $0.insert(1, Self.item("a", isNamed: true), delay: 5, payload: [1]) }
    try entries.correct(at: 2000)
    #expect(entries.item(1).map { [$0.beginning, $0.deadline] } == [2000, 2005])
    let item = try #require(entries.item(1))
    entries.perform(at: ahead) { $0.bury(1, item, .undecodable, payload: [1]) }
    #expect(entries.kinds == "duuxy")
    for _ in 0..<2 { try entries.correct(at: 3000) }
    let record = try #require(entries.values[Self.layout.deadKey(1)].flatMap { DeadRecord($0) })
    #expect(record.time == 3000 && record.expiry == 5_003_000 && Array(record.payload) == [1])
    let id = try #require(entries.values[Self.layout.rememberedKey("a")].flatMap { RememberedID($0) })
    #expect(id == RememberedID(beginning: 3000, expiry: 60_003_000, sequence: 1))
    #expect(entries.kinds == "duuxy")
  }

  @Test func `sequence numbers increase also if the clock does not`() {
    var generator = SequenceGenerator(origin: 3)
    #expect(generator.next(at: 100) == UInt128(100) << 64 | 3)
    #expect(generator.next(at: 100) == UInt128(101) << 64 | 3)
    #expect(generator.next(at: 50) == UInt128(102) << 64 | 3)
    generator.advance(past: UInt128(500) << 64 | 9)
    #expect(generator.next(at: 200) == UInt128(501) << 64 | 3)
    #expect(generator.next(at: 1000) == UInt128(1000) << 64 | 3)
  }

  @Test func `keys sort by priority and time`() {
    let layout = Self.layout
    let keys = [
      layout.readyKey(9, priority: 10), layout.readyKey(1, priority: 0), layout.readyKey(2, priority: 0),
      layout.readyKey(1, priority: -10),
    ]
    #expect(keys.sorted() == keys && keys.allSatisfy { layout.ready.contains($0) })
    let now = layout.timerKey(5, .id("a"))
    let timers = layout.lateTimers
    #expect(layout.expired(timers, at: 5).contains(now) && !layout.pending(timers, at: 5).contains(now))
    #expect(!layout.expired(timers, at: 4).contains(now) && layout.pending(timers, at: 4).contains(now))
  }
}
#endif
