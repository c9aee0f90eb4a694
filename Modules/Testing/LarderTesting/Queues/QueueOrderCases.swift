import Larder

extension CaseList where Store: DurableQueue {
  /// The cases about priorities and groups.
  ///
  /// A queue without them must refuse such items, and then enqueue nothing.
  mutating func addOrderCases() {
    addOrderCase("430", "higher priorities come first, older items first within one") { queue, trial in
      for (number, priority) in [(1, 0), (2, -10), (3, 10), (4, 0), (5, 10), (6, 1)] {
        try await queue.enqueue(.number(Int64(number)), priority: priority)
      }
      let queue = try await trial.settled(queue)
      try expect("the first item", try await queue.peek()?.value?.integer, equals: 3)
      let first = try await queue.receive(max: 2, lease: .seconds(60))
      try expect("the first items", first.map(\.number), equals: [3, 5])
      try expect("their priorities", first.map(\.priority), equals: [10, 10])
      try await queue.release(first[0].receipt, after: .zero)
      try expect("all items", try await queue.receiveNumbers(max: 10), equals: [3, 6, 1, 4, 2])
    }
    addOrderCase("431", "items of a group are delivered one at a time, in the order of arrival") { queue, trial in
      try await queue.enqueue((1...6).map { QueueInput(.number($0), group: $0.isMultiple(of: 2) ? "even" : "odd") })
      try await queue.enqueue(.number(7))
      let queue = try await trial.settled(queue)
      try expect("what is peeked at", try await queue.peek(max: 10).map(\.value?.integer), equals: [1, 2, 7])
      var deliveries = try await queue.receive(max: 10, lease: .seconds(60))
      try expect("the first items", deliveries.map(\.number), equals: [1, 2, 7])
      try expect("their groups", deliveries.map(\.group), equals: ["odd", "even", nil])
      try expect("while they are leased", try await queue.receiveNumbers(max: 10), equals: [])
      try await queue.acknowledge(deliveries[0].receipt)
      let next = try await queue.receive(max: 10, lease: .seconds(60))
      try expect("the next item of one group", next.map(\.number), equals: [3])
      try await queue.acknowledge(next[0].receipt)
      try await queue.acknowledge(deliveries[1].receipt)
      deliveries = try await queue.receive(max: 10, lease: .seconds(60))
      try expect("the next items of both groups", deliveries.map(\.number).sorted(), equals: [4, 5])
    }
    addOrderCase("432", "a released or delayed item holds back its group, and nothing else") { queue, trial in
      try await queue.enqueue([
        QueueInput(.number(1), group: "a"), QueueInput(.number(2), group: "a"),
        QueueInput(.number(3), after: .seconds(30), group: "b"), QueueInput(.number(4), group: "b"),
        QueueInput(.number(5), group: "c"),
      ])
      let first = try await queue.receiveOne()
      try expect("the other items", try await queue.receiveNumbers(max: 10), equals: [5])
      try await queue.release(first.receipt, after: .seconds(20))
      trial.advance(by: 19)
      let queue = try await trial.settled(queue)
      try expect("the items before the end of the delay", try await queue.receiveNumbers(max: 10), equals: [])
      trial.advance(by: 1)
      try expect("the items of the first group", try await queue.receiveNumbers(max: 10), equals: [1])
      trial.advance(by: 10)
      try expect("the items of the second group", try await queue.receiveNumbers(max: 10), equals: [3])
    }
    addOrderCase("433", "the end of a lease, a dead letter and a removal let the next item of the group come") {
      queue, trial in
      try await queue.enqueue((1...4).map { QueueInput(.number($0), id: StoreKey("\($0)"), group: "a") })
      _ = try await queue.receiveOne(lease: 60)
      trial.advance(by: 60)
      try expect("the item after the end of its lease", try await queue.receiveNumbers(lease: 10), equals: [1])
      trial.advance(by: 10)
      let last = try await queue.receiveOne()
      try expect("the attempt", last.attempt, equals: 3)
      try await queue.release(last.receipt, after: .zero)
      try expect("the number of dead letters", try await queue.counts().dead, equals: 1)
      let second = try await queue.receiveOne()
      try expect("the item after the dead letter", second.number, equals: 2)
      try await queue.removeValue(forKey: "3")
      try await queue.removeValue(forKey: "2")
      try expect("the item after the removals", try await queue.receiveNumbers(), equals: [4])
      try await queue.removeAll()
      try await queue.enqueue(.number(5), group: "a")
      try expect("the item after the removal of all", try await queue.receiveNumbers(), equals: [5])
    }
    addOrderCase("434", "replacing a leased item of a group releases the group in order") { queue, _ in
      try await queue.enqueue((1...2).map { QueueInput(.number($0), id: StoreKey("\($0)"), group: "a") })
      _ = try await queue.receiveOne()
      try await queue.setValue(.number(3), forKey: "1")
      let delivery = try await queue.receiveOne()
      try expect("the item", delivery.number, equals: 3)
      try expect("the items behind it", try await queue.receiveNumbers(max: 10), equals: [])
      try await queue.acknowledge(delivery.receipt)
      try expect("the next item", try await queue.receiveNumbers(), equals: [2])
    }
    addOrderCase("435", "concurrent consumers keep the order of every group") { queue, _ in
      let count = 120
      try await queue.enqueue(
        (0..<count).map { QueueInput(.number(Int64($0)), priority: $0 % 3, group: StoreKey("\($0 % 5)")) })
      let order = GroupOrder()
      let tally = Tally()
      try await concurrently(6) { index in
        while tally.count < count {
          for delivery in try await queue.receive(max: 1 + index % 3, lease: .seconds(600)) {
            try order.begin(delivery.number, in: delivery.group)
            await Task.yield()
            order.end(delivery.number)
            try await queue.acknowledge(delivery.receipt)
            tally.add()
          }
          await Task.yield()
        }
      }
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
    }
  }

  private mutating func addOrderCase(
    _ id: String, _ name: String, file: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable (Store, Trial<Store>) async throws -> Void
  ) {
    add(id, name, file: file, line: line) { queue, trial in
      guard try await supportsOrder(queue) else { return }
      try await body(queue, trial)
    }
  }
}

/// Returns whether a queue has priorities and groups, and throws a ``Mismatch`` unless it has both or refuses both.
func supportsOrder<Queue: DurableQueue>(_ queue: Queue) async throws -> Bool where Queue.Value == SampleValue? {
  do {
    let key = try await queue.enqueue(.number(0), priority: 1, group: "probe").key
    try await queue.removeValue(forKey: key)
    return true
  } catch StoreError.Code.unsupported {
    for input in [QueueInput(SampleValue?.number(0), priority: 1), QueueInput(.number(0), group: "a")] {
      try await expect("enqueuing with a priority or a group", throws: .unsupported) {
        try await queue.enqueue([QueueInput(.number(1)), input])
      }
    }
    try expect("the counts", try await queue.counts(), equals: QueueCounts())
    return false
  }
}

/// A check that the items of each group are handled in order, one at a time.
private final class GroupOrder: Sendable {
  private struct State {
    var last: [StoreKey: Int64] = [:]
    var running: [Int64: StoreKey] = [:]
  }

  private let state = Locked(State())

  func begin(_ number: Int64, in group: StoreKey?) throws {
    guard let group else { throw Mismatch(subject: "the group of item \(number)", expected: "a group", got: "nil") }
    let problem = state.withLock { state -> String? in
      if let other = state.running.first(where: { $0.value == group }) {
        return "\(number) while \(other.key) is being handled"
      }
      let last = state.last[group] ?? -1
      state.last[group] = number
      state.running[number] = group
      return last < number ? nil : "\(number) after \(last)"
    }
    if let problem {
      throw Mismatch(subject: "the items of group \(group)", expected: "one at a time, in order", got: problem)
    }
  }

  func end(_ number: Int64) {
    state.withLock { _ = $0.running.removeValue(forKey: number) }
  }
}
