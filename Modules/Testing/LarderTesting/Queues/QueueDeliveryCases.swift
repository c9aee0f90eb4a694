import Larder

extension CaseList where Store: DurableQueue {
  mutating func addDeliveryCases() {
    add("400", "items are delivered in the order of arrival, with their keys, values and attempts") { queue, trial in
      let first = try await queue.enqueue(nil)
      let second = try await queue.enqueue(SampleValue("two"), id: "second")
      try expect("whether the first sequence number is the smaller one", first.sequence < second.sequence, equals: true)
      try expect("the key of the second item", second.key, equals: "second")
      try expect("whether the items are duplicates", [first.isDuplicate, second.isDuplicate], equals: [false, false])
      let queue = try await trial.settled(queue)
      let deliveries = try await queue.receive(max: 10, lease: .seconds(60))
      try expect("the keys", deliveries.map(\.key), equals: [first.key, "second"])
      try expect("the values", deliveries.map(\.value), equals: [nil, SampleValue("two")])
      try expect("the attempts", deliveries.map(\.attempt), equals: [1, 1])
      try expect("the sequence numbers", deliveries.map(\.receipt.sequence), equals: [first.sequence, second.sequence])
      try expect(
        "the dates of enqueuing", deliveries.map(\.enqueueDate), equals: [trial.clock.date, trial.clock.date])
      try expect("what is left", try await queue.receiveNumbers(), equals: [])
    }
    add("401", "generated keys sort by arrival") { queue, _ in
      var keys: [StoreKey] = []
      for _ in 0..<20 { keys.append(try await queue.enqueue(nil).key) }
      try expect("the keys", keys.sorted(), equals: keys)
      try expect("the number of keys", Set(keys).count, equals: 20)
    }
    add("402", "a leased item is delivered to no other consumer, and an acknowledged one never again") { queue, trial in
      try await queue.enqueue(numbers: [1, 2])
      let delivery = try await queue.receiveOne()
      try expect("the next item", try await queue.receiveNumbers(max: 10), equals: [2])
      try await queue.acknowledge(delivery.receipt)
      trial.advance(by: 3600)
      let queue = try await trial.settled(queue)
      try expect("the items after the leases", try await queue.receiveNumbers(max: 10), equals: [2])
    }
    add("403", "an item can be received only after its delay") { queue, trial in
      try await queue.enqueue([QueueInput(.number(1), after: .seconds(10)), QueueInput(.number(2))])
      try expect("the items before", try await queue.receiveNumbers(max: 10), equals: [2])
      trial.advance(by: 9)
      let queue = try await trial.settled(queue)
      try expect("the items after 9 seconds", try await queue.receiveNumbers(max: 10), equals: [])
      trial.advance(by: 1)
      try expect("the items after 10 seconds", try await queue.receiveNumbers(max: 10), equals: [1])
    }
    add("404", "an id is not enqueued again while its item is in the queue, and for the window afterward") {
      queue, trial in
      let original = try await queue.enqueue(.number(1), id: "a")
      func check(_ isDuplicate: Bool, _ moment: String, _ queue: Store) async throws {
        let again = try await queue.enqueue(.number(2), id: "a")
        try expect("whether the item is a duplicate \(moment)", again.isDuplicate, equals: isDuplicate)
        if isDuplicate {
          try expect("the sequence number \(moment)", again.sequence, equals: original.sequence)
        }
      }
      try await check(true, "while the original waits", queue)
      let delivery = try await queue.receiveOne()
      try await check(true, "while the original is leased", queue)
      try await queue.acknowledge(delivery.receipt)
      let queue = try await trial.settled(queue)
      trial.advance(by: 59)
      try await check(true, "59 seconds after the acknowledgement", queue)
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [])
      trial.advance(by: 2)
      try await check(false, "61 seconds after the acknowledgement", queue)
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [2])
    }
    add("405", "several items are enqueued all or none, and duplicates within the call once") { queue, _ in
      let results = try await queue.enqueue([
        QueueInput(.number(1), id: "a"), QueueInput(.number(2), id: "b"), QueueInput(.number(3), id: "a"),
      ])
      try expect("the duplicates", results.map(\.isDuplicate), equals: [false, false, true])
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [1, 2])
      try expect("the result of enqueuing nothing", try await queue.enqueue([]).count, equals: 0)
    }
    add(
      "406", "an item that cannot be encoded is refused, with all others of the call", checks: .badInput,
      needs: [.encoding, .immediateRefusal]
    ) { queue, _ in
      try await expect("enqueuing", throws: .encodingFailed) {
        try await queue.enqueue([QueueInput(.number(1)), QueueInput(.unencodable())])
      }
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
    }
    add("407", "invalid arguments are refused, and nothing changes", checks: .badInput) { queue, _ in
      try await queue.enqueue(.number(1))
      let receipt = try await queue.receiveOne().receipt
      typealias Call = (name: String, code: StoreError.Code, run: () async throws -> Void)
      let long = StoreKey(bytes: Array(repeating: 0x61, count: QueueInput<SampleValue?>.maximumGroupLength + 1))
      let calls: [Call] = [
        ("an empty id", .invalidKey, { try await queue.enqueue(.number(2), id: "") }),
        ("a negative delay", .invalidArgument, { try await queue.enqueue(.number(2), after: .seconds(-1)) }),
        ("a high priority", .invalidArgument, { try await queue.enqueue(.number(2), priority: 11) }),
        ("a low priority", .invalidArgument, { try await queue.enqueue(.number(2), priority: -11) }),
        ("an empty group", .invalidArgument, { try await queue.enqueue(.number(2), group: "") }),
        ("a long group", .invalidArgument, { try await queue.enqueue(.number(2), group: long) }),
        ("receiving nothing", .invalidArgument, { _ = try await queue.receive(max: 0, lease: .seconds(1)) }),
        ("a lease of nothing", .invalidArgument, { _ = try await queue.receive(max: 1, lease: .zero) }),
        ("waiting for a lease of nothing", .invalidArgument, { _ = try await queue.nextDelivery(lease: .zero) }),
        ("a negative release", .invalidArgument, { try await queue.release(receipt, after: .seconds(-1)) }),
        ("an extension by nothing", .invalidArgument, { try await queue.extend(receipt, lease: .zero) }),
        ("peeking at fewer than no items", .invalidArgument, { _ = try await queue.peek(max: -1) }),
        ("fewer than no dead letters", .invalidArgument, { _ = try await queue.deadLetters(limit: -1) }),
        ("requeuing an empty key", .invalidKey, { try await queue.requeue([""]) }),
        ("purging an empty key", .invalidKey, { try await queue.purgeDeadLetters([""]) }),
      ]
      for call in calls { try await expect(call.name, throws: call.code, by: call.run) }
      try expect("the counts", try await queue.counts(), equals: QueueCounts(leased: 1))
    }
    add("408", "no item is delivered twice to concurrent consumers, and none is lost", checks: .deliveries) {
      queue, _ in
      let counts = Tally()
      try await concurrently(8) { index in
        if index < 4 {
          for number in 0..<25 { try await queue.enqueue(.number(Int64(index * 100 + number))) }
          return
        }
        while counts.count < 100 {
          let deliveries = try await queue.receive(max: index - 3, lease: .seconds(60))
          for _ in deliveries { counts.add() }
          for delivery in deliveries where delivery.attempt != 1 {
            throw Mismatch(subject: "the attempt of an item", expected: "1", got: "\(delivery.attempt)")
          }
          let stale = try await queue.acknowledge(deliveries.map(\.receipt))
          try expect("the stale receipts", stale.count, equals: 0)
          await Task.yield()
        }
      }
      try expect("the number of deliveries", counts.count, equals: 100)
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
    }
    add("409", "two objects over the same data share the items", needs: .otherProcesses) { queue, trial in
      let other = try await trial.open()
      try await queue.enqueue(numbers: Array(0..<60))
      let counts = Tally()
      try await concurrently(6) { index in
        let queue = index.isMultiple(of: 2) ? queue : other
        while counts.count < 60 {
          let deliveries = try await queue.receive(max: 2, lease: .seconds(60))
          for _ in deliveries { counts.add() }
          try expect("the attempts", deliveries.map(\.attempt), equals: deliveries.map { _ in 1 })
          _ = try await (index < 3 ? queue : other).acknowledge(deliveries.map(\.receipt))
          await Task.yield()
        }
      }
      try expect("the number of deliveries", counts.count, equals: 60)
      try expect("the counts", try await other.counts(), equals: QueueCounts())
    }
  }
}
