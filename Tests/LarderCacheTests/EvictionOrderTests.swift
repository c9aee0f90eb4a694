import LarderTesting
import Testing

@testable import LarderCache

@Suite struct EvictionOrderTests {
  /// The hits of a cache that consists of slots only.
  private static func hits(of keys: [UInt32], entries: Int, _ policy: EvictionPolicy) -> Int {
    var order = order(policy, entries)
    var slots: [UInt32: Slot] = [:]
    var keysBySlot: [UInt32: UInt32] = [:]
    var hits = 0
    for key in keys {
      if let slot = slots[key] {
        hits += 1
        order.reads = [slot]
        order.recordReads()
        continue
      }
      let slot = order.freeSlot
      slots[key] = slot
      keysBySlot[slot.index] = key
      order.insert(hash: key &* 0x9E37_79B1, cost: 1)
      if order.isOverLimit {
        let victim = order.nextVictim()
        order.remove(victim, .evicted)
        if let key = keysBySlot.removeValue(forKey: victim.index) { slots[key] = nil }
      }
      #expect(order.count == slots.count)
    }
    return hits
  }

  private static func order(_ policy: EvictionPolicy, _ entries: Int) -> EvictionState {
    EvictionState(entryLimit: entries, costLimit: nil, hasCosts: false, policy: policy, expires: false)
  }

  private static let loop: [UInt32] = (0..<60_000 as Range<UInt32>).map { $0 % 450 }

  /// Three uses of each key in quick succession.
  private static let bursts: [UInt32] = (0..<60_000 as Range<UInt32>).map { $0 / 300 * 100 + $0 % 100 }

  @Test func `the adaptive order keeps a part of a loop`() {
    #expect(Self.hits(of: Self.loop, entries: 300, .lru) == 0)
    #expect(Self.hits(of: Self.loop, entries: 300, .adaptive) > 36_000)
  }

  @Test func `the adaptive order keeps recent keys if that helps`() {
    #expect(Self.hits(of: Self.bursts, entries: 300, .lru) == 40_000)
    #expect(Self.hits(of: Self.bursts, entries: 300, .adaptive) > 39_000)
  }

  @Test func `the window follows a workload that changes twice`() {
    let keys = Self.bursts + Self.loop.map { $0 + 1_000_000 } + Self.bursts.map { $0 + 2_000_000 }
    // With a window of one size, the best result is one of the two workloads.
    #expect(Self.hits(of: keys, entries: 300, .adaptive) > 110_000)
  }

  @Test(arguments: EvictionPolicy.allCases) func `a read of a free slot is ignored`(_ policy: EvictionPolicy) {
    var order = Self.order(policy, 10)
    let slot = order.freeSlot
    order.insert(hash: 3, cost: 1)
    order.remove(slot, .removed)
    order.reads = [slot]
    order.recordReads()
    #expect(order.count == 0)
    #expect(order.nextVictim() == .none)
  }

  @Test func `memory for slots grows and never moves`() {
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
