import LarderTesting
import Testing

@testable import LarderCache

@Suite struct EvictionOrderTests {
  /// The hits of a cache of slots alone.
  private static func hits(of keys: [UInt32], entries: Int, in order: consuming some EvictionOrder & ~Copyable) -> Int {
    var order = order
    var pool = SlotPool(slotCount: entries + 1)
    var slots: [UInt32: Slot] = [:]
    var keysBySlot: [UInt32: UInt32] = [:]
    var used = SlotArray<Slot>(count: 1, repeating: .none)
    var hits = 0
    for key in keys {
      if let slot = slots[key] {
        hits += 1
        used[0] = slot
        order.recordUses(of: used, count: 1)
        continue
      }
      let slot = pool.next
      pool.take()
      slots[key] = slot
      keysBySlot[slot.index] = key
      order.insert(slot, hash: key &* 0x9E37_79B1, cost: 1)
      if order.count > entries {
        let victim = order.nextVictim()
        order.remove(victim)
        pool.giveBack(victim)
        if let key = keysBySlot.removeValue(forKey: victim.index) { slots[key] = nil }
      }
      #expect(order.count == slots.count)
    }
    return hits
  }

  private static func adaptive(_ entries: Int, fixedWindowShare: Double? = nil) -> AdaptiveOrder {
    AdaptiveOrder(
      entryLimit: entries, costLimit: nil, slotCount: entries + 1, hasCosts: false, fixedWindowShare: fixedWindowShare)
  }

  private static func lru(_ entries: Int) -> RecencyOrder {
    RecencyOrder(slotCount: entries + 1, hasCosts: false)
  }

  private static func s3FIFO(_ entries: Int) -> S3FIFOOrder {
    S3FIFOOrder(entryLimit: entries, costLimit: nil, slotCount: entries + 1, hasCosts: false)
  }

  private static let loop: [UInt32] = (0..<60_000 as Range<UInt32>).map { $0 % 450 }

  /// Each key three times, soon after each other.
  private static let bursts: [UInt32] = (0..<60_000 as Range<UInt32>).map { $0 / 300 * 100 + $0 % 100 }

  @Test func inALoopTheAdaptiveOrderKeepsAPartOfIt() {
    #expect(EvictionOrderTests.hits(of: EvictionOrderTests.loop, entries: 300, in: EvictionOrderTests.lru(300)) == 0)
    let hits = EvictionOrderTests.hits(
      of: EvictionOrderTests.loop, entries: 300, in: EvictionOrderTests.adaptive(300))
    #expect(hits > 36_000)
  }

  @Test func whatIsRecentIsKeptByTheAdaptiveOrderWhereThatPays() {
    let keys = EvictionOrderTests.bursts
    let narrow = EvictionOrderTests.hits(
      of: keys, entries: 300, in: EvictionOrderTests.adaptive(300, fixedWindowShare: 0.01))
    let adaptive = EvictionOrderTests.hits(of: keys, entries: 300, in: EvictionOrderTests.adaptive(300))
    let lru = EvictionOrderTests.hits(of: keys, entries: 300, in: EvictionOrderTests.lru(300))
    #expect(narrow < 20_000)
    #expect(lru == 40_000)
    #expect(adaptive > 39_000)
  }

  @Test func theWindowFollowsTheWorkloadThereAndBack() {
    let keys =
      EvictionOrderTests.bursts + EvictionOrderTests.loop.map { $0 + 1_000_000 }
      + EvictionOrderTests.bursts.map { $0 + 2_000_000 }
    let hits = EvictionOrderTests.hits(of: keys, entries: 300, in: EvictionOrderTests.adaptive(300))
    // The best that a window of one size can do there is to get one of the two right.
    #expect(hits > 110_000)
  }

  @Test func aQueueOfS3FIFOTakesBackWhatItGaveUpTooSoon() {
    var order = EvictionOrderTests.s3FIFO(10)
    for number in 0..<11 as Range<UInt32> { order.insert(Slot(number), hash: number, cost: 1) }
    #expect(order.nextVictim() == Slot(0))
    order.remove(Slot(0))
    // Its hash is remembered: it comes into the main queue, and what is only new goes first, as far as it is more than
    // a tenth.
    order.insert(Slot(0), hash: 0, cost: 1)
    for expected in [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 10] as [UInt32] {
      #expect(order.nextVictim() == Slot(expected))
      order.remove(Slot(expected))
    }
    #expect(order.nextVictim() == .none)
  }

  @Test func s3FIFOKeepsWhatWasUsedTwice() {
    var order = EvictionOrderTests.s3FIFO(10)
    for number in 0..<11 as Range<UInt32> { order.insert(Slot(number), hash: number, cost: 1) }
    var used = SlotArray<Slot>(count: 2, repeating: Slot(0))
    order.recordUses(of: used, count: 2)
    used[0] = Slot(1)
    order.recordUses(of: used, count: 1)
    #expect(order.nextVictim() == Slot(1))
  }

  @Test func aReadOfASlotThatIsFreeIsPassedOver() {
    var adaptive = EvictionOrderTests.adaptive(10)
    var lru = EvictionOrderTests.lru(10)
    var s3FIFO = EvictionOrderTests.s3FIFO(10)
    let used = SlotArray<Slot>(count: 1, repeating: Slot(3))
    adaptive.recordUses(of: used, count: 1)
    lru.recordUses(of: used, count: 1)
    s3FIFO.recordUses(of: used, count: 1)
    #expect(adaptive.count == 0)
    #expect(lru.count == 0)
    #expect(s3FIFO.count == 0)
    #expect(adaptive.nextVictim() == .none)
    #expect(lru.nextVictim() == .none)
    #expect(s3FIFO.nextVictim() == .none)
  }

  @Test func ghostsAreForgottenInTheirTurn() {
    var ghosts = GhostQueue(capacity: 100)
    for hash in 0..<1000 as Range<UInt32> { ghosts.append(hash) }
    #expect((0..<900 as Range<UInt32>).count { ghosts.remove($0) } == 0)
    #expect((900..<1000 as Range<UInt32>).count { ghosts.remove($0) } > 90)
    #expect((900..<1000 as Range<UInt32>).count { ghosts.remove($0) } == 0)
  }

  @Test func slotsAreUsedAgain() {
    var pool = SlotPool(slotCount: 3)
    var taken: [Slot] = []
    for _ in 0..<3 {
      taken.append(pool.next)
      pool.take()
    }
    #expect(taken == [Slot(0), Slot(1), Slot(2)])
    #expect(pool.next == .none)
    pool.giveBack(Slot(1))
    pool.giveBack(Slot(0))
    #expect(pool.next == Slot(0))
    pool.take()
    #expect(pool.next == Slot(1))
    pool.take()
    #expect(pool.next == .none)
  }
}
