import Larder

extension CaseList where Store: DurableQueue {
  mutating func addDeadLetterCases() {
    add("440", "an item becomes a dead letter when it is released after its last delivery") { queue, trial in
      let reports = Locked<[DeadLetterEvent]>([])
      let observation = queue.observeDeadLetters { death in reports.withLock { $0.append(death) } }
      let item = try await queue.enqueue(.number(1), id: "a")
      try await queue.enqueue(.number(2))
      try await wearOut(queue)
      try expect("the counts", try await queue.counts(), equals: QueueCounts(waiting: 1, dead: 1))
      let expected = DeadLetterEvent(key: "a", sequence: item.sequence, attempts: 3, reason: .tooManyDeliveries)
      try expect("the reports", reports.withLock { $0 }, equals: [expected])
      observation.cancel()
      let queue = try await trial.settled(queue)
      let letters = try await queue.deadLetters()
      try expect("the keys of the dead letters", letters.map(\.key), equals: ["a"])
      try expect("the attempts", letters.map(\.attempts), equals: [3])
      try expect("the reasons", letters.map(\.reason), equals: [.tooManyDeliveries])
      try expect("the dates", letters.map(\.date), equals: [trial.clock.date])
      try expect("the values", try letters.map { try $0.value.get()?.integer }, equals: [1])
      try expect("the value of the key", try await queue.contains("a"), equals: false)
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [2])
      try expect("whether the id is remembered", try await queue.enqueue(nil, id: "a").isDuplicate, equals: true)
    }
    add("441", "an item becomes a dead letter when it would be delivered once more after its last lease") {
      queue, trial in
      try await queue.enqueue(numbers: [1, 2])
      for _ in 0..<3 {
        try expect("the item", try await queue.receiveNumbers(lease: 60), equals: [1])
        trial.advance(by: 60)
      }
      let queue = try await trial.settled(queue)
      try expect("the next item", try await queue.receiveNumbers(), equals: [2])
      try expect("the number of dead letters", try await queue.counts().dead, equals: 1)
    }
    add("442", "dead letters are listed in pages, requeued at the end, and purged") { queue, trial in
      for number in 1...5 { try await queue.enqueue(.number(Int64(number)), id: StoreKey("\(number)")) }
      for _ in 1...5 { try await wearOut(queue) }
      try await queue.enqueue(.number(6))
      let page = try await queue.deadLetters(limit: 2)
      try expect("the first page", page.map(\.key), equals: ["1", "2"])
      guard let last = page.last else { return }
      let next = try await queue.deadLetters(limit: 2, after: last.sequence)
      try expect("the next page", next.map(\.key), equals: ["3", "4"])
      try expect("the number of requeued items", try await queue.requeue(["2", "missing"]), equals: 1)
      try expect("the number of purged items", try await queue.purgeDeadLetters(["1", "missing"]), equals: 1)
      let queue = try await trial.settled(queue)
      try expect("the number of all requeued items", try await queue.requeueDeadLetters(), equals: 3)
      let again = try await queue.receive(max: 10, lease: .seconds(60))
      try expect("the items", again.map(\.number), equals: [6, 2, 3, 4, 5])
      try expect("the attempts", again.map(\.attempt), equals: [1, 1, 1, 1, 1])
      try expect("the number of purged letters", try await queue.purgeDeadLetters(), equals: 0)
    }
    add("443", "a dead letter is not requeued while an item in the queue has its key") { queue, _ in
      try await queue.enqueue(.number(1), id: "a")
      try await wearOut(queue)
      try await queue.setValue(.number(2), forKey: "a")
      try await expect("requeuing", throws: .conflict) { try await queue.requeue(["a"]) }
      try expect("the number of all requeued items", try await queue.requeueDeadLetters(), equals: 0)
      try expect("the counts", try await queue.counts(), equals: QueueCounts(waiting: 1, dead: 1))
      try expect("the number of purged letters", try await queue.purgeDeadLetters(), equals: 1)
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [2])
    }
    add("444", "several dead letters may have the same key, and the latest one is requeued") { queue, trial in
      for number in 1...2 {
        try await queue.enqueue(.number(Int64(number)), id: "a")
        try await wearOut(queue)
        trial.advance(by: 61)
      }
      try expect("the number of dead letters", try await queue.counts().dead, equals: 2)
      try expect("the number of requeued items", try await queue.requeue(["a"]), equals: 1)
      try expect("the items", try await queue.receiveNumbers(max: 10), equals: [2])
      try expect("the number of purged letters", try await queue.purgeDeadLetters(["a"]), equals: 1)
    }
    add(
      "445", "an item that cannot be decoded blocks no other item, and becomes a dead letter", checks: .isolation,
      needs: .encoding
    ) { queue, trial in
      try await queue.enqueue([QueueInput(.number(1)), QueueInput(.undecodable(), id: "bad"), QueueInput(.number(2))])
      let good = try await queue.receive(max: 10, lease: .seconds(60))
      try expect("the other items", good.map(\.number), equals: [1, 2])
      _ = try await queue.acknowledge(good.map(\.receipt))
      for _ in 0..<3 {
        trial.advance(by: 60)
        try expect("the items later", try await queue.receiveNumbers(max: 10), equals: [])
      }
      let letters = try await queue.deadLetters()
      try expect("the keys of the dead letters", letters.map(\.key), equals: ["bad"])
      try expect("the reasons", letters.map(\.reason), equals: [.undecodable])
      try await expect("the value of the dead letter", throws: .corrupted) { try letters[0].value.get() }
    }
    add(
      "446", "a program that can decode no item makes no dead letters", checks: .isolation, needs: .encoding
    ) { queue, trial in
      try await queue.enqueue((0..<5).map { _ in QueueInput(.undecodable()) })
      for _ in 0..<10 {
        try await expect("receiving", throws: .corrupted) { try await queue.receive(max: 10, lease: .seconds(60)) }
        trial.advance(by: 60)
      }
      try expect("the number of dead letters", try await queue.counts().dead, equals: 0)
      try expect("the number of items", try await queue.count(), equals: 5)
    }
  }
}

/// Delivers and releases the first item of a queue until it is a dead letter.
private func wearOut<Queue: DurableQueue>(_ queue: Queue) async throws where Queue.Value == SampleValue? {
  for _ in 0..<3 {
    let delivery = try await queue.receiveOne()
    try await queue.release(delivery.receipt, after: .zero)
  }
}
