import Larder

extension CaseList where Store: DurableQueue {
  mutating func addWaitingCases() {
    add("450", "a waiting consumer receives an item when it is enqueued, and each item goes to one consumer") {
      queue, _ in
      let received = Locked<[Int64]>([])
      try await concurrently(6) { index in
        guard index == 5 else {
          let delivery = try await queue.nextDelivery(lease: .seconds(60)).get()
          received.withLock { $0.append(delivery.number) }
          return
        }
        for number in 0..<5 {
          await Task.yield()
          try await queue.enqueue(.number(Int64(number)))
        }
      }
      try expect("the items", received.withLock { $0.sorted() }, equals: [0, 1, 2, 3, 4])
    }
    add("451", "a waiting consumer receives an item when its delay or its lease ends") { queue, trial in
      try await queue.enqueue(.number(1), after: .seconds(5))
      let delivery = try await received(queue, whileAdvancing: trial)
      try expect("the item after its delay", delivery.number, equals: 1)
      try expect("whether the delay was kept", trial.clock.now.offset >= .seconds(5), equals: true)
      let again = try await received(queue, lease: 1_000_000, whileAdvancing: trial)
      try expect("the attempt after the lease", again.attempt, equals: 2)
      try await queue.release(again.receipt, after: .zero)
      try expect("the attempt after a release", try await queue.receiveOne().attempt, equals: 3)
    }
    add("452", "cancelling and closing end a wait", checks: .cancellation) { queue, trial in
      let cancelled = Task { try await queue.nextDelivery(lease: .seconds(60)) }
      let waiting = Task { try await queue.nextDelivery(lease: .seconds(60)) }
      let iterating = Task {
        var count = 0
        for try await _ in queue.deliveries(lease: .seconds(60)) { count += 1 }
        return count
      }
      for _ in 0..<100 { await Task.yield() }
      cancelled.cancel()
      try await expectCancellation(of: "the wait") { try await cancelled.value }
      try await queue.close()
      try await expect("the wait", throws: .closed) { try await waiting.value }
      try expect("the number of items of the sequence", try await iterating.value, equals: 0)
    }
    add("453", "a cancelled wait loses no item") { queue, _ in
      for round in 0..<20 {
        let waiting = Task { try await queue.nextDelivery(lease: .seconds(60)).get() }
        for _ in 0..<(round % 5) { await Task.yield() }
        async let enqueued = queue.enqueue(.number(Int64(round)))
        waiting.cancel()
        _ = try await enqueued
        let delivery: QueueDelivery<SampleValue?>
        do {
          delivery = try await waiting.value
        } catch is CancellationError {
          delivery = try await queue.receiveOne()
        }
        try expect("the item", delivery.number, equals: Int64(round))
        try await queue.acknowledge(delivery.receipt)
      }
    }
    add("454", "withNext acknowledges an item, or releases it if the closure throws") { queue, trial in
      try await queue.enqueue(.number(1))
      try await expect("withNext", throws: "the error of the closure", where: { $0 as? SampleValue.Refusal }) {
        try await queue.withNext(lease: .seconds(60)) { _ in throw SampleValue.Refusal.encoding }
      }
      try expect("the counts after the error", try await queue.counts(), equals: QueueCounts(delayed: 1))
      trial.advance(by: 10)
      let number = try await queue.withNext(lease: .seconds(60)) { $0.number }
      try expect("the item", number, equals: 1)
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
    }
    add("455", "withNext renews the lease while the closure runs") { queue, trial in
      try await queue.enqueue(.number(1))
      try await queue.withNext(lease: .seconds(9), renewsLease: true) { _ in
        for _ in 0..<5 {
          try await trial.clock.waitForSleepers(1)
          trial.advance(by: 3)
          // The renewal sleeps again when the lease is extended.
          try await trial.clock.waitForSleepers(1)
        }
      }
      try expect("the counts", try await queue.counts(), equals: QueueCounts())
    }
    add("456", "a closed queue refuses everything", checks: .lifecycle) { queue, _ in
      try await queue.enqueue(.number(1))
      let receipt = try await queue.receiveOne().receipt
      try await queue.close()
      var calls: [(String, () async throws -> Void)] = [
        ("enqueuing", { try await queue.enqueue(nil) }),
        ("enqueuing with an id", { try await queue.enqueue(nil, id: "a") }),
        ("receiving", { _ = try await queue.receive(lease: .seconds(1)) }),
        ("waiting", { _ = try await queue.nextDelivery(lease: .seconds(1)) }),
        ("acknowledging", { try await queue.acknowledge(receipt) }),
        ("releasing", { try await queue.release(receipt) }),
        ("extending", { try await queue.extend(receipt, lease: .seconds(1)) }),
        ("peeking", { _ = try await queue.peek() }), ("counting", { _ = try await queue.counts() }),
        ("dead letters", { _ = try await queue.deadLetters() }),
        ("requeuing", { try await queue.requeue(["a"]) }), ("requeuing all", { try await queue.requeueDeadLetters() }),
        ("purging", { try await queue.purgeDeadLetters(["a"]) }),
        ("purging all", { try await queue.purgeDeadLetters() }),
      ]
      if let pausable = AnyDataStore(queue).pausableQueue {
        calls += [
          ("pausing", { try await pausable.pause() }), ("resuming", { try await pausable.resume() }),
          ("asking whether it is paused", { _ = try await pausable.isPaused() }),
        ]
      }
      if let lists = AnyDataStore(queue).inspectableQueue {
        calls += [
          ("listing leased items", { _ = try await lists.leasedItems(limit: 1, after: nil) }),
          ("listing groups", { _ = try await lists.groups(limit: 1, after: nil) }),
          ("listing schedules", { _ = try await lists.schedules(limit: 1, after: nil) }),
        ]
      }
      for (name, call) in calls { try await expect(name, throws: .closed, by: call) }
    }
    if Store.self is any PausableQueue.Type { addPausingCases() }
  }

  private mutating func addPausingCases() {
    add("457", "a paused queue delivers nothing, and everything else continues") { queue, trial in
      let pausable = try pausable(queue)
      try await queue.enqueue(numbers: [1, 2])
      try await queue.enqueue(.number(3), after: .seconds(5))
      let held = try await queue.receive(max: 2, lease: .seconds(60))
      try await pausable.pause()
      try await pausable.pause()
      try expect("whether the queue is paused", try await pausable.isPaused(), equals: true)
      try await queue.enqueue(.number(4))
      trial.advance(by: 10)
      try expect("the items while paused", try await queue.receiveNumbers(max: 9), equals: [])
      try await queue.extend(held[0].receipt, lease: .seconds(30))
      try await queue.release(held[1].receipt, after: .zero)
      try expect("the released item", try await queue.receiveNumbers(max: 9), equals: [])
      try expect("the first items", try await queue.peek(max: 9).compactMap { $0.value?.integer }, equals: [2, 3, 4])
      try expect("the counts", try await queue.counts(), equals: QueueCounts(waiting: 3, leased: 1))
      trial.advance(by: 30)
      try expect("the item whose lease has ended", try await queue.receiveNumbers(max: 9), equals: [])
      try await expect("the late acknowledgement", throws: .staleReceipt) {
        try await queue.acknowledge(held[0].receipt)
      }
      try await pausable.resume()
      try await pausable.resume()
      try expect("whether the queue is paused", try await pausable.isPaused(), equals: false)
      let deliveries = try await queue.receive(max: 9, lease: .seconds(60))
      try expect("the items", deliveries.map(\.number), equals: [1, 2, 3, 4])
      try expect("the attempts", deliveries.map(\.attempt), equals: [2, 2, 1, 1])
      try await pausable.pause()
      _ = try await queue.acknowledge(deliveries.map(\.receipt))
      try expect("the number of items", try await queue.count(), equals: 0)
    }
    add("458", "consumers that wait while the queue is paused receive items when it is resumed") { queue, _ in
      let pausable = try pausable(queue)
      try await pausable.pause()
      let received = Locked<[Int64]>([])
      try await concurrently(3) { index in
        guard index == 2 else {
          let delivery = try await queue.nextDelivery(lease: .seconds(60)).get()
          received.withLock { $0.append(delivery.number) }
          return
        }
        for _ in 0..<100 { await Task.yield() }
        try await queue.enqueue(numbers: [1, 2])
        for _ in 0..<100 { await Task.yield() }
        try expect("the items while paused", received.withLock { $0 }, equals: [])
        try await pausable.resume()
      }
      try expect("the items", received.withLock { $0.sorted() }, equals: [1, 2])
    }
    add("459", "a queue is paused and resumed for all who share it", needs: .otherProcesses) { queue, trial in
      let other = try await trial.open()
      try await queue.enqueue(numbers: [1])
      try await pausable(queue).pause()
      try expect("whether the other is paused", try await pausable(other).isPaused(), equals: true)
      try expect("its items", try await other.receiveNumbers(), equals: [])
      let isDone = Flag()
      let waiting = Task {
        defer { isDone.raise() }
        return try await other.nextDelivery(lease: .seconds(60)).get()
      }
      for _ in 0..<100 { await Task.yield() }
      try expect("whether it has received", isDone.isRaised, equals: false)
      try await pausable(queue).resume()
      try expect("its item", try await result(of: waiting, isDone, whileAdvancing: trial).number, equals: 1)
    }
  }
}

private func pausable(_ queue: some DurableQueue<SampleValue?>) throws -> any PausableQueue<SampleValue?> {
  guard let pausable = AnyDataStore(queue).pausableQueue else {
    throw Mismatch(subject: "the capability to be paused", expected: "found in any store", got: "none")
  }
  return pausable
}

/// Waits for an item, and advances the clock a second at a time until it comes.
private func received<Queue: DurableQueue>(
  _ queue: Queue, lease: Int = 60, whileAdvancing trial: Trial<Queue>
) async throws -> QueueDelivery<SampleValue?> where Queue.Value == SampleValue? {
  let isDone = Flag()
  let task = Task {
    defer { isDone.raise() }
    return try await queue.nextDelivery(lease: .seconds(lease)).get()
  }
  return try await result(of: task, isDone, whileAdvancing: trial)
}

private func result<Queue: DurableQueue, Result>(
  of task: Task<Result, any Error>, _ isDone: Flag, whileAdvancing trial: Trial<Queue>
) async throws -> Result where Queue.Value == SampleValue? {
  while !isDone.isRaised {
    await Task.yield()
    trial.advance(by: 1)
  }
  return try await task.value
}
