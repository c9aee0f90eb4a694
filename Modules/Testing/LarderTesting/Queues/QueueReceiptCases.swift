import Larder

extension CaseList where Store: DurableQueue {
  mutating func addReceiptCases() {
    add("420", "when a lease ends, the item is delivered again and the receipt is stale") { queue, trial in
      try await queue.enqueue(.number(1))
      let first = try await queue.receiveOne(lease: 60)
      trial.advance(by: 59)
      try expect("the items during the lease", try await queue.receiveNumbers(), equals: [])
      trial.advance(by: 1)
      try await expectStale(first.receipt, queue, "after the lease")
      let queue = try await trial.settled(queue)
      let second = try await queue.receiveOne()
      try expect("the attempt", second.attempt, equals: 2)
      try expect("whether the receipts are equal", first.receipt == second.receipt, equals: false)
      try await expectStale(first.receipt, queue, "while another consumer has the item")
      try await queue.acknowledge(second.receipt)
      try await expectStale(second.receipt, queue, "after the acknowledgement")
    }
    add("421", "a receipt outlives the queue object, also as text", needs: .persistence) { queue, trial in
      try await queue.enqueue(.number(1))
      let text = try await queue.receiveOne().receipt.description
      let queue = try await trial.settled(queue)
      try expect("the items", try await queue.receiveNumbers(), equals: [])
      guard let receipt = DeliveryReceipt(text) else {
        throw Mismatch(subject: "the receipt of the text \(text)", expected: "a receipt", got: "nil")
      }
      try await queue.acknowledge(receipt)
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
    }
    add("422", "a released item returns to its old position, after its delay") { queue, trial in
      try await queue.enqueue(numbers: [1, 2, 3])
      let deliveries = try await queue.receive(max: 2, lease: .seconds(60))
      try await queue.release(deliveries[1].receipt, after: .seconds(5))
      try await queue.release(deliveries[0].receipt, after: .zero)
      try expect("the first item", try await queue.peek()?.value?.integer, equals: 1)
      let queue = try await trial.settled(queue)
      trial.advance(by: 5)
      let again = try await queue.receive(max: 3, lease: .seconds(60))
      try expect("the items", again.map(\.number), equals: [1, 2, 3])
      try expect("the attempts", again.map(\.attempt), equals: [2, 2, 1])
    }
    add("423", "without a delay, a released item waits as the retry policy says") { queue, trial in
      try await queue.enqueue(.number(1))
      for (attempt, seconds) in [(1, 10), (2, 20)] {
        let delivery = try await queue.receiveOne()
        try expect("the attempt", delivery.attempt, equals: attempt)
        try await queue.release(delivery.receipt)
        trial.advance(by: seconds - 1)
        try expect("the items after \(seconds - 1) seconds", try await queue.receiveNumbers(), equals: [])
        trial.advance(by: 1)
      }
      try expect("the attempt", try await queue.receiveOne().attempt, equals: 3)
    }
    add("424", "a delivery that does not count leaves the number of attempts unchanged") { queue, trial in
      try await queue.enqueue(.number(1))
      for _ in 0..<10 {
        let delivery = try await queue.receiveOne()
        try expect("the attempt", delivery.attempt, equals: 1)
        try await queue.release(delivery.receipt, after: .zero, countsAsAttempt: false)
        try await expectStale(delivery.receipt, queue, "after the release")
      }
    }
    add("425", "extending a lease moves its end, also back") { queue, trial in
      try await queue.enqueue(numbers: [1, 2])
      let deliveries = try await queue.receive(max: 2, lease: .seconds(60))
      trial.advance(by: 50)
      try await queue.extend(deliveries[0].receipt, lease: .seconds(60))
      try await queue.extend(deliveries[1].receipt, lease: .seconds(5))
      let queue = try await trial.settled(queue)
      trial.advance(by: 5)
      try expect("the items after 5 seconds", try await queue.receiveNumbers(max: 10), equals: [2])
      trial.advance(by: 54)
      try await queue.acknowledge(deliveries[0].receipt)
    }
    add("426", "the forms for several receipts change what they can and return the stale receipts") { queue, trial in
      try await queue.enqueue(numbers: [1, 2, 3])
      let receipts = try await queue.receive(max: 3, lease: .seconds(60)).map(\.receipt)
      try await queue.acknowledge(receipts[1])
      try expect("stale for extending", try await queue.extend(receipts, lease: .seconds(90)), equals: [receipts[1]])
      try expect("stale for releasing", try await queue.release(receipts, after: .zero), equals: [receipts[1]])
      try expect("stale for acknowledging", try await queue.acknowledge(receipts), equals: receipts)
      let again = try await queue.receive(max: 3, lease: .seconds(60)).map(\.receipt)
      try expect("stale of the same receipt twice", try await queue.acknowledge(again + again), equals: again)
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
    }
    add("427", "replacing or removing a leased item makes its receipt stale") { queue, _ in
      try await queue.enqueue([QueueInput(.number(1), id: "a"), QueueInput(.number(2), id: "b")])
      let deliveries = try await queue.receive(max: 2, lease: .seconds(60))
      try await queue.setValue(.number(3), forKey: "a")
      try await queue.removeValue(forKey: "b")
      for delivery in deliveries { try await expectStale(delivery.receipt, queue, "after the change") }
      let again = try await queue.receive(max: 2, lease: .seconds(60))
      try expect("the items", again.map(\.number), equals: [3])
      try expect("the attempts", again.map(\.attempt), equals: [1])
    }
    add("428", "acknowledging, releasing and extending ignore cancellation", checks: .cancellation) { queue, _ in
      try await queue.enqueue(numbers: [1, 2])
      try await expectCancellation(of: "receiving") {
        try await inCancelledTask { try await queue.receive(max: 1, lease: .seconds(60)) }
      }
      let receipts = try await queue.receive(max: 2, lease: .seconds(60)).map(\.receipt)
      try await inCancelledTask {
        try await queue.extend(receipts[0], lease: .seconds(90))
        try await queue.acknowledge(receipts[0])
        try await queue.release(receipts[1], after: .zero)
      }
      try expect("the counts", try await queue.counts(), equals: QueueCounts(waiting: 1))
    }
  }
}

/// Throws a ``Mismatch`` unless a queue refuses a receipt as stale.
private func expectStale<Queue: DurableQueue>(_ receipt: DeliveryReceipt, _ queue: Queue, _ moment: String) async throws
where Queue.Value == SampleValue? {
  try await expect("acknowledging \(moment)", throws: .staleReceipt) { try await queue.acknowledge(receipt) }
  try await expect("releasing \(moment)", throws: .staleReceipt) { try await queue.release(receipt) }
  try await expect("extending \(moment)", throws: .staleReceipt) { try await queue.extend(receipt, lease: .seconds(1)) }
}
