import Larder

extension CaseList where Store: DurableQueue {
  /// The cases about a queue as a store.
  mutating func addEntryCases() {
    add("460", "reads include waiting, delayed and leased items, and no dead letters") { queue, trial in
      for (key, delay) in [("dead", 0), ("leased", 0), ("waiting", 0), ("delayed", 9)] {
        try await queue.enqueue(SampleValue(key), id: StoreKey(key), after: .seconds(delay))
      }
      for _ in 0..<3 { try await queue.release(queue.receiveOne().receipt, after: .zero) }
      _ = try await queue.receiveOne()
      let expected: Entries = [
        "leased": SampleValue("leased"), "waiting": SampleValue("waiting"), "delayed": SampleValue("delayed"),
      ]
      try await expect(queue, holds: expected, "in every state")
      try expect(
        "the counts", try await queue.counts(), equals: QueueCounts(waiting: 1, delayed: 1, leased: 1, dead: 1))
      try await expect(trial.settled(queue), holds: expected, "reopened")
    }
    add("461", "setting a key enqueues or replaces an item, and removing it withdraws the item") { queue, trial in
      try await queue.enqueue([QueueInput(.number(1), id: "b"), QueueInput(.number(2), id: "c")])
      try await queue.apply([.set("a", .number(3)), .set("b", .number(4)), .remove("c"), .set("c", .number(5))])
      try expect("what is peeked at", try await queue.peek(max: 10).map(\.key), equals: ["b", "a", "c"])
      let queue = try await trial.settled(queue)
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [4, 3, 5])
      try await queue.removeAll()
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
      try expect(
        "whether a removed id is a duplicate", try await queue.enqueue(nil, id: "a").isDuplicate, equals: false)
    }
    add("462", "an update that leaves an item unchanged keeps its lease", checks: .updates) { queue, _ in
      try await queue.enqueue(.number(1), id: "a")
      let receipt = try await queue.receiveOne().receipt
      try await queue.update(["a", "b"]) { slots in slots[1] = .number(2) }
      try await queue.acknowledge(receipt)
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [2])
    }
    add("463", "replacing a delayed item keeps its delay") { queue, trial in
      try await queue.enqueue(.number(1), id: "a", after: .seconds(10))
      try await queue.setValue(.number(2), forKey: "a")
      try expect("the items before the end", try await queue.receiveNumbers(), equals: [])
      trial.advance(by: 10)
      try expect("the items afterward", try await queue.receiveNumbers(), equals: [2])
    }
    add("464", "the age of the oldest item is that since its arrival") { queue, trial in
      try expect("the age in an empty queue", try await queue.oldestAge(), equals: nil)
      try await queue.enqueue(.number(1))
      trial.advance(by: 7)
      try await queue.enqueue(.number(2))
      try expect("the age", try await queue.oldestAge(), equals: .seconds(7))
      try await queue.acknowledge(queue.receiveOne().receipt)
      trial.advance(by: 2)
      try expect("the age without the first item", try await queue.oldestAge(), equals: .seconds(2))
    }
  }
}
