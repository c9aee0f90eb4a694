import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension CaseList where Store: DurableQueue {
  /// The cases about the lists of a queue that can be inspected.
  mutating func addInspectionCases() {
    guard Store.self is any InspectableQueue.Type else { return }
    add("465", "pages of leased items have each item that a consumer has, and no other") { queue, trial in
      let lists = try inspectable(queue)
      try expect("an empty queue", try await lists.allLeasedItems(limit: 2), equals: [])
      try await queue.enqueue(numbers: [1, 2, 3, 4, 5])
      try await queue.enqueue(.number(6), after: .seconds(300))
      let held = try await queue.receive(max: 4, lease: .seconds(60))
      for limit in [1, 2, 4, 1000, .max] {
        let items = try await lists.allLeasedItems(limit: limit)
        try expect(
          "the sequence numbers by \(limit)", items.map(\.sequence).sorted(), equals: held.map(\.receipt.sequence))
      }
      let items = try await lists.allLeasedItems(limit: 3)
      try expect("their keys", Set(items.map(\.key)), equals: Set(held.map(\.key)))
      try expect("their attempts", items.map(\.attempt), equals: [1, 1, 1, 1])
      try expect("whether they are leased", items.allSatisfy(\.isLeased), equals: true)
      try expect("their groups", items.allSatisfy { $0.group == nil }, equals: true)
      let end = items.map(\.deadline).max()
      try await queue.acknowledge(held[0].receipt)
      try await queue.release(held[1].receipt, after: .seconds(300))
      try await queue.extend(held[2].receipt, lease: .seconds(100))
      let fewer = try await lists.allLeasedItems(limit: 1)
      try expect("the rest", Set(fewer.map(\.key)), equals: [held[2].key, held[3].key])
      let extended = fewer.first { $0.key == held[2].key }
      let gain = try value(extended?.deadline, "the deadline").timeIntervalSince(try value(end, "the deadline before"))
      try expect("the seconds by which a lease was extended", gain.rounded(), equals: 40)
      trial.advance(by: 60)
      try expect("after the end of a lease", try await lists.allLeasedItems(limit: 9).map(\.key), equals: [held[2].key])
      _ = try await queue.receive(max: 1, lease: .seconds(60))
      let again = try await lists.allLeasedItems(limit: 9).first { $0.key == held[3].key }
      try expect("the attempt of an item that is received again", again?.attempt, equals: 2)
      for position in ["x", StoreKey(bytes: Array(repeating: 0xFF, count: 300))] as [StoreKey] {
        try await expect("a foreign position", throws: .invalidArgument) {
          try await lists.leasedItems(limit: 1, after: position)
        }
      }
    }
    add("466", "pages of groups have each group with its number of items and the item that blocks it") { queue, trial in
      let lists = try inspectable(queue)
      try expect("an empty queue", try await lists.allGroups(limit: 2), equals: [])
      guard try await supportsOrder(queue) else { return }
      try await queue.enqueue(
        [
          QueueInput(.number(1), group: "leased"), QueueInput(.number(2), group: "leased"),
          QueueInput(.number(3), after: .seconds(30), group: "delayed"), QueueInput(.number(4), group: "delayed"),
          QueueInput(.number(5)),
        ] + (0..<150).map { QueueInput(.number($0), group: "many") })
      let delivery = try await queue.receiveOne()
      try await queue.enqueue((0..<7).map { QueueInput(.number($0), priority: -1, group: StoreKey("g\($0)")) })
      for limit in [1, 2, 3, 1000, .max] {
        let groups = try await lists.allGroups(limit: limit)
        try expect("the number of groups by \(limit)", groups.count, equals: 10)
        let counts = Dictionary(groups.map { ($0.name, $0.count) }, uniquingKeysWith: +)
        let expected: [StoreKey: Int] = [
          "leased": 2, "delayed": 2, "many": QueueGroup.countLimit, "g0": 1, "g1": 1, "g2": 1, "g3": 1, "g4": 1,
          "g5": 1,
          "g6": 1,
        ]
        try expect("the numbers of items by \(limit)", counts, equals: expected)
      }
      let blockers = try await lists.allGroups(limit: 4).compactMap(\.blocker)
      try expect("the blocked groups", Set(blockers.map(\.group)), equals: ["leased", "delayed"])
      let leased = blockers.first(where: \.isLeased)
      try expect("the leased item", leased?.key, equals: delivery.key)
      try expect("its sequence number", leased?.sequence, equals: delivery.receipt.sequence)
      try expect("its attempt", leased?.attempt, equals: 1)
      let delayed = try value(blockers.first { !$0.isLeased }, "the delayed item")
      let difference = try value(leased, "the leased item").deadline.timeIntervalSince(delayed.deadline)
      try expect("the seconds between both deadlines", difference.rounded(), equals: 30)
      trial.advance(by: 30)
      try expect(
        "the blocked groups after the delay", try await lists.allGroups(limit: 9).compactMap(\.blocker).map(\.key),
        equals: [delivery.key])
      try await queue.acknowledge(delivery.receipt)
      try expect("the blocked groups at last", try await lists.allGroups(limit: 9).compactMap(\.blocker), equals: [])
      try await queue.removeAll()
      try expect("an emptied queue", try await lists.allGroups(limit: 9), equals: [])
    }
    add("467", "a queue that ran no schedule lists none, and each list refuses a negative limit") { queue, _ in
      let lists = try inspectable(queue)
      try await queue.enqueue(.number(1))
      try expect("the schedules", try await lists.schedules(limit: 9, after: nil), equals: QueuePage(entries: []))
      try expect("the schedules after a name", try await lists.schedules(limit: 9, after: "a").entries, equals: [])
      try await expect("leased items", throws: .invalidArgument) { try await lists.leasedItems(limit: -1, after: nil) }
      try await expect("groups", throws: .invalidArgument) { try await lists.groups(limit: -1, after: nil) }
      try await expect("schedules", throws: .invalidArgument) { try await lists.schedules(limit: -1, after: nil) }
      try expect("no leased items", try await lists.leasedItems(limit: 0, after: nil).entries, equals: [])
      try expect("no groups", try await lists.groups(limit: 0, after: nil).entries, equals: [])
    }
  }
}

private func inspectable(_ queue: some DurableQueue<SampleValue?>) throws -> any InspectableQueue<SampleValue?> {
  try value(AnyDataStore(queue).inspectableQueue, "the capability to be inspected, in any store")
}

private func value<Value>(_ value: Value?, _ subject: String) throws -> Value {
  guard let value else { throw Mismatch(subject: subject, expected: "a value", got: "none") }
  return value
}

extension InspectableQueue {
  /// Returns the leased items of all pages.
  fileprivate func allLeasedItems(limit: Int) async throws -> [HeldItem] {
    try await all { try await leasedItems(limit: limit, after: $0) }
  }

  /// Returns the groups of all pages.
  fileprivate func allGroups(limit: Int) async throws -> [QueueGroup] {
    try await all { try await groups(limit: limit, after: $0) }
  }

  private func all<Entry>(_ page: (StoreKey?) async throws -> QueuePage<Entry>) async throws -> [Entry] {
    var entries: [Entry] = []
    var position: StoreKey?
    // A list that never ends is an error of the queue.
    for _ in 0..<10_000 {
      let part = try await page(position)
      entries += part.entries
      guard let next = part.next else { return entries }
      position = next
    }
    throw Mismatch(subject: "the pages of a list", expected: "a last one", got: "10,000 pages")
  }
}
