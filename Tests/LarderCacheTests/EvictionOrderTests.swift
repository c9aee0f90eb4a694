import LarderTesting
import Testing

@testable import LarderCache

@Suite struct EvictionOrderTests {
  /// The hits of a cache that consists of slots only.
  private static func hits(of keys: [UInt32], entries: Int, in order: consuming AdaptiveOrder) -> Int {
    var order = order
    var free = (0...entries).map { Slot(UInt32($0)) }
    var slots: [UInt32: Slot] = [:]
    var keysBySlot: [UInt32: UInt32] = [:]
    var hits = 0
    for key in keys {
      if let slot = slots[key] {
        hits += 1
        order.recordUses(of: [slot])
        continue
      }
      guard let slot = free.popLast() else { break }
      slots[key] = slot
      keysBySlot[slot.index] = key
      order.insert(slot, hash: key &* 0x9E37_79B1, cost: 1)
      if order.count > entries {
        let victim = order.nextVictim()
        order.remove(victim)
        free.append(victim)
        if let key = keysBySlot.removeValue(forKey: victim.index) { slots[key] = nil }
      }
      #expect(order.count == slots.count)
    }
    return hits
  }

  private static func order(_ policy: EvictionPolicy, _ entries: Int) -> AdaptiveOrder {
    AdaptiveOrder(policy: policy, entryLimit: entries, costLimit: nil, hasCosts: false)
  }

  private static func adaptive(_ entries: Int) -> AdaptiveOrder { order(.adaptive, entries) }

  private static func lru(_ entries: Int) -> AdaptiveOrder { order(.lru, entries) }

  private static let loop: [UInt32] = (0..<60_000 as Range<UInt32>).map { $0 % 450 }

  /// Three uses of each key in quick succession.
  private static let bursts: [UInt32] = (0..<60_000 as Range<UInt32>).map { $0 / 300 * 100 + $0 % 100 }

  @Test func theAdaptiveOrderKeepsAPartOfALoop() {
    #expect(EvictionOrderTests.hits(of: EvictionOrderTests.loop, entries: 300, in: EvictionOrderTests.lru(300)) == 0)
    let hits = EvictionOrderTests.hits(
      of: EvictionOrderTests.loop, entries: 300, in: EvictionOrderTests.adaptive(300))
    #expect(hits > 36_000)
  }

  @Test func theAdaptiveOrderKeepsRecentKeysIfThatHelps() {
    let keys = EvictionOrderTests.bursts
    let adaptive = EvictionOrderTests.hits(of: keys, entries: 300, in: EvictionOrderTests.adaptive(300))
    let lru = EvictionOrderTests.hits(of: keys, entries: 300, in: EvictionOrderTests.lru(300))
    #expect(lru == 40_000)
    #expect(adaptive > 39_000)
  }

  @Test func theWindowFollowsAWorkloadThatChangesTwice() {
    let keys =
      EvictionOrderTests.bursts + EvictionOrderTests.loop.map { $0 + 1_000_000 }
      + EvictionOrderTests.bursts.map { $0 + 2_000_000 }
    let hits = EvictionOrderTests.hits(of: keys, entries: 300, in: EvictionOrderTests.adaptive(300))
    // With a window of one size, the best result is one of the two workloads.
    #expect(hits > 110_000)
  }

  @Test(arguments: EvictionPolicy.allCases) func aReadOfAFreeSlotIsIgnored(_ policy: EvictionPolicy) {
    var order = EvictionOrderTests.order(policy, 10)
    order.insert(Slot(3), hash: 3, cost: 1)
    order.remove(Slot(3))
    order.recordUses(of: [Slot(3)])
    #expect(order.count == 0)
    #expect(order.nextVictim() == .none)
  }

  @Test func memoryForSlotsGrowsAndNeverMoves() {
    let numbers = SlotArray<Int>()
    var places: [UnsafeMutablePointer<Int>] = []
    for number in 0..<100_000 {
      let slot = Slot(UInt32(number))
      numbers.reserve(slot, repeating: -1)
      #expect(numbers[slot] == -1)
      numbers[slot] = number
      places.append(numbers.pointer(to: slot))
    }
    #expect((0..<100_000).allSatisfy { places[$0].pointee == $0 })
    #expect((0..<100_000).allSatisfy { numbers.pointer(to: Slot(UInt32($0))) == places[$0] })
  }
}
