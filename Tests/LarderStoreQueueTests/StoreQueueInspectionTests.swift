#if LMDB
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderStoreQueue

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The lists of a queue, beyond what the conformance suite checks.
@Suite struct StoreQueueInspectionTests {
  private let clock = ManualClock()
  private let base = MemoryStore<[UInt8]>()

  private func open<Base: DataStore<[UInt8]>>(_ base: Base) async throws -> StoreQueue<Base, Int> {
    try await StoreQueue(base, prefix: "q/", codec: .json(), environment: .manual(clock))
  }

  @Test func `schedules are listed by name with their last due dates`() async throws {
    let queue = try await open(base)
    let start = clock.date
    for name in ["hourly", "daily", "b"] as [StoreKey] {
      try await queue.enqueueDue(QueueSchedule(name: name, every: .seconds(60), from: start) { _ in 1 })
    }
    clock.advance(by: .seconds(130))
    try await queue.enqueueDue(QueueSchedule(name: "hourly", every: .seconds(60), from: start) { _ in 1 })
    try base.apply([.set("q/cbroken", [1, 2])])
    var records: [QueueScheduleRecord] = []
    var position: StoreKey?
    repeat {
      let page = try await queue.schedules(limit: 1, after: position)
      records += page.entries
      position = page.next
    } while position != nil
    #expect(records.map(\.name) == ["b", "broken", "daily", "hourly"])
    #expect(records[1].lastDueDate == nil)
    #expect(records[3].lastDueDate == start.addingTimeInterval(120))
    try await queue.removeSchedule("broken")
    #expect(try await queue.schedules(limit: 9, after: "b").entries.map(\.name) == ["daily", "hourly"])
    #expect(try await queue.groups(limit: 9, after: nil).entries.isEmpty)
  }

  /// Counts the keys that are read.
  private struct CountingStore: PassingStore {
    let base: MemoryStore<[UInt8]>
    let reads = Reads()

    final class Reads: Sendable { let longest = Locked(0) }

    func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
      let keys = try base.keys(in: range, limit: limit, order: order)
      reads.longest.withLock { $0 = max($0, keys.count) }
      return keys
    }
  }

  @Test func `a page reads a bounded number of records however many items are delayed`() async throws {
    let counted = CountingStore(base: base)
    let queue = try await open(counted)
    try await queue.enqueue((0..<3000).map { QueueInput($0, after: .seconds(10), group: StoreKey("\($0 % 2)")) })
    try await queue.enqueue(-1)
    _ = try await queue.receive(max: 1, lease: .seconds(60))
    counted.reads.longest.withLock { $0 = 0 }
    var (counts, position) = ([Int](), StoreKey?.none)
    repeat {
      let page = try await queue.leasedItems(limit: 10, after: position)
      counts.append(page.entries.count)
      position = page.next
    } while position != nil
    #expect(counts == [0, 0, 1])
    #expect(counted.reads.longest.withLock { $0 } == 1024)
    counted.reads.longest.withLock { $0 = 0 }
    let groups = try await queue.groups(limit: 10, after: nil)
    #expect(groups.entries.map(\.count) == [100, 100] && groups.next == nil)
    #expect(groups.entries.allSatisfy { $0.blocker?.isLeased == false })
    #expect(counted.reads.longest.withLock { $0 } <= QueueGroup.countLimit + 1)
  }

  @Test func `damaged records are passed over`() async throws {
    let queue = try await open(base)
    try await queue.enqueue((0..<3).map { QueueInput($0, group: "g\($0)") })
    _ = try await queue.receive(max: 2, lease: .seconds(60))
    for key in ["q/g", "q/g\u{1}", "q/g\u{7F}x", "q/t", "q/txyz"] as [StoreKey] { try base.apply([.set(key, [])]) }
    let state = try #require(try base.keys(in: .prefix("q/s"), limit: 1, order: .ascending).first)
    try base.apply([.set(state, [1])])
    #expect(try await queue.leasedItems(limit: 9, after: nil).entries.map(\.group) == ["g1"])
    let groups = try await queue.groups(limit: 9, after: nil).entries
    #expect(groups.map(\.name) == ["g0", "g1", "g2"])
    #expect(groups.map { $0.blocker != nil } == [false, true, false])
    await expectStoreError(.invalidArgument) {
      _ = try await queue.groups(limit: 1, after: StoreKey(bytes: Array(repeating: 1, count: 129)))
    }
  }
}
#endif
