import Larder

/// A step of a random history of a queue, with times in seconds.
enum QueueHistoryStep: Sendable, CustomStringConvertible {
  case enqueue(id: Int?, delay: Int, priority: Int, group: Int?)
  case receive(max: Int, lease: Int)
  case acknowledge(Int)
  case release(Int, after: Int?, counts: Bool)
  case extend(Int, lease: Int)
  case advance(Int)
  case set(id: Int)
  case remove(id: Int)
  case requeue(id: Int)
  case purge(id: Int)
  case reopen

  static func random(hasOrder: Bool, using generator: inout SeededGenerator) -> QueueHistoryStep {
    func id() -> Int { .random(in: 0..<4, using: &generator) }
    func receipt() -> Int { .random(in: 0..<4, using: &generator) }
    switch Int.random(in: 0..<20, using: &generator) {
    case 0...5:
      return .enqueue(
        id: Bool.random(using: &generator) ? id() : nil, delay: [0, 0, 0, 5, 30].randomElement(using: &generator) ?? 0,
        priority: hasOrder ? [0, 0, 1, -1].randomElement(using: &generator) ?? 0 : 0,
        group: hasOrder && Bool.random(using: &generator) ? .random(in: 0..<3, using: &generator) : nil)
    case 6...9:
      return .receive(max: .random(in: 1...4, using: &generator), lease: .random(in: 5...40, using: &generator))
    case 10...11: return .acknowledge(receipt())
    case 12...13:
      return .release(
        receipt(), after: [nil, 0, 0, 7].randomElement(using: &generator) ?? nil,
        counts: .random(in: 0..<4, using: &generator) > 0)
    case 14: return .extend(receipt(), lease: .random(in: 5...60, using: &generator))
    case 15...16: return .advance(.random(in: 1...30, using: &generator))
    case 17: return Bool.random(using: &generator) ? .set(id: id()) : .remove(id: id())
    case 18: return Bool.random(using: &generator) ? .requeue(id: id()) : .purge(id: id())
    default: return .reopen
    }
  }

  var description: String {
    switch self {
    case .enqueue(let id, let delay, let priority, let group):
      "enqueue(id: \(id.map(String.init) ?? "none"), delay: \(delay), priority: \(priority), "
        + "group: \(group.map(String.init) ?? "none"))"
    case .receive(let max, let lease): "receive(max: \(max), lease: \(lease))"
    case .acknowledge(let receipt): "acknowledge(\(receipt))"
    case .release(let receipt, let delay, let counts):
      "release(\(receipt), after: \(delay.map(String.init) ?? "policy"), counts: \(counts))"
    case .extend(let receipt, let lease): "extend(\(receipt), lease: \(lease))"
    case .advance(let seconds): "advance(\(seconds))"
    case .set(let id): "set(\(id))"
    case .remove(let id): "remove(\(id))"
    case .requeue(let id): "requeue(\(id))"
    case .purge(let id): "purge(\(id))"
    case .reopen: "reopen"
    }
  }
}

extension CaseList where Store: DurableQueue {
  mutating func addQueueHistoryCases() {
    let settings = settings
    add("470", "random histories have the results of a model") { queue, _ in
      let hasOrder = try await supportsOrder(queue)
      var generator = SeededGenerator(seed: settings.seed, purpose: "queue histories")
      for round in 0..<settings.rounds {
        let history = (0..<60).map { _ in QueueHistoryStep.random(hasOrder: hasOrder, using: &generator) }
        try await shortened(history, settings, round: round)
      }
    }
  }
}

/// Runs a history, and if it fails, throws the failure of a shorter one.
private func shortened<Queue: DurableQueue>(
  _ history: [QueueHistoryStep], _ settings: SuiteSettings<Queue>, round: Int
) async throws where Queue.Value == SampleValue? {
  func failure(of history: [QueueHistoryStep]) async throws -> Mismatch? {
    do {
      try await Trial(settings, purpose: "queue history").run { trial in
        var run = QueueHistoryRun(queue: try await trial.open(), trial: trial)
        for (number, step) in history.enumerated() { try await run.perform(step, number) }
      }
      return nil
    } catch let mismatch as Mismatch {
      return mismatch
    }
  }
  guard var found = try await failure(of: history) else { return }
  var shortest = history
  // Steps are removed one at a time from the end, because steps after the failure never matter.
  var index = shortest.count - 1
  while index >= 0 {
    var candidate = shortest
    candidate.remove(at: index)
    if let mismatch = try await failure(of: candidate) { (shortest, found) = (candidate, mismatch) }
    index -= 1
  }
  let steps = shortest.enumerated().map { "\n    \($0). \($1)" }.joined()
  throw Mismatch(
    subject: "round \(round), \(found.subject), in the history:\(steps)\n ", expected: found.expected, got: found.got,
    difference: found.difference)
}

/// A run of a history on a queue and on the model.
private struct QueueHistoryRun<Queue: DurableQueue> where Queue.Value == SampleValue? {
  var queue: Queue
  let trial: Trial<Queue>
  var model = QueueHistoryModel()
  /// The latest receipts, with the numbers of their leases in the model.
  var receipts: [(receipt: DeliveryReceipt, lease: Int)] = []
  var nextNumber: Int64 = 1

  private static func key(_ id: Int) -> StoreKey { StoreKey("id \(id)") }

  mutating func perform(_ step: QueueHistoryStep, _ number: Int) async throws {
    func check<Result: Equatable>(_ what: String, _ got: Result, _ expected: Result) throws {
      try expect("step \(number), \(step): \(what)", got, equals: expected)
    }
    switch step {
    case .enqueue(let id, let delay, let priority, let group):
      let key = id.map(Self.key)
      let group = group.map { StoreKey("group \($0)") }
      let result = try await queue.enqueue(
        .number(nextNumber), id: key, after: .seconds(delay), priority: priority, group: group)
      let item = QueueHistoryModel.Item(
        key: key ?? result.key, number: nextNumber, priority: priority, group: group, isNamed: id != nil,
        phase: delay > 0 ? .delayed(until: model.now + delay) : .waiting)
      try check("whether it is a duplicate", result.isDuplicate, model.enqueue(item))
      nextNumber += 1
    case .receive(let max, let lease): try await receive(max, lease, "step \(number), \(step)")
    case .acknowledge(let index):
      guard let (receipt, lease) = chosen(index) else { break }
      try check("whether it is stale", try await queue.acknowledge([receipt]).isEmpty, model.acknowledge(lease))
    case .release(let index, let delay, let counts):
      guard let (receipt, lease) = chosen(index) else { break }
      let stale = try await queue.release([receipt], after: delay.map { .seconds($0) }, countsAsAttempt: counts)
      try check("whether it is valid", stale.isEmpty, model.release(lease, after: delay, counts: counts))
    case .extend(let index, let seconds):
      guard let (receipt, lease) = chosen(index) else { break }
      let stale = try await queue.extend([receipt], lease: .seconds(seconds))
      try check("whether it is valid", stale.isEmpty, model.extend(lease, seconds: seconds))
    case .advance(let seconds):
      trial.advance(by: seconds)
      model.advance(seconds)
      try await buryExhausted()
    case .set(let id):
      try await queue.setValue(.number(nextNumber), forKey: Self.key(id))
      model.set(Self.key(id), nextNumber)
      nextNumber += 1
    case .remove(let id):
      try await queue.removeValue(forKey: Self.key(id))
      model.remove(Self.key(id))
      // The next item of its group may be exhausted.
      try await buryExhausted()
    case .requeue(let id):
      if let count = model.requeue(Self.key(id)) {
        try check("the number of items", try await queue.requeue([Self.key(id)]), count)
      } else {
        try await expect("step \(number), \(step)", throws: .conflict) { try await queue.requeue([Self.key(id)]) }
      }
    case .purge(let id):
      try check("the number of items", try await queue.purgeDeadLetters([Self.key(id)]), model.purge(Self.key(id)))
    case .reopen: queue = try await trial.settled(queue)
    }
    try check("the counts", try await queue.counts(), model.counts)
    let entries = try await queue.entries(in: .all, limit: .max, order: .ascending)
    let found = Dictionary(entries.map { ($0.key, $0.value?.integer ?? -1) }, uniquingKeysWith: { first, _ in first })
    try check("the items", found, model.entries)
    let dead = try await queue.deadLetters().map(\.key)
    try check("the dead letters", dead.sorted(), model.dead.map(\.key).sorted())
    let next = try await queue.peek(max: 100).map(\.key)
    try check("what is peeked at", next, model.deliverable.map { model.items[$0].key })
  }

  private func chosen(_ index: Int) -> (receipt: DeliveryReceipt, lease: Int)? {
    receipts.isEmpty ? nil : receipts[receipts.count - 1 - index % receipts.count]
  }

  private mutating func receive(_ max: Int, _ lease: Int, _ step: String) async throws {
    let deliveries = try await queue.receive(max: max, lease: .seconds(lease))
    let expected = model.deliverable.prefix(max).map { model.items[$0] }
    // An item that may have crashed a process is received alone.
    let mayBeFewer = expected.contains { $0.attempts >= 2 } && !deliveries.isEmpty
    let count = mayBeFewer ? deliveries.count : expected.count
    try expect("\(step): the keys", deliveries.map(\.key), equals: expected.prefix(count).map(\.key))
    for delivery in deliveries {
      guard let index = model.items.firstIndex(where: { $0.key == delivery.key }) else { continue }
      let number = model.lease(index, seconds: lease)
      let item = model.items[index]
      try expect("\(step): the group", delivery.group, equals: item.group)
      let found = [delivery.number, Int64(delivery.attempt), Int64(delivery.priority)]
      try expect(
        "\(step): the number, the attempt and the priority", found,
        equals: [item.number, Int64(item.attempts), Int64(item.priority)])
      receipts.append((delivery.receipt, number))
    }
  }

  /// Receives and returns all items, so the queue turns exhausted items into dead letters.
  private mutating func buryExhausted() async throws {
    guard model.hasExhausted else { return }
    model.buryExhausted()
    var receipts: [DeliveryReceipt] = []
    while true {
      let deliveries = try await queue.receive(max: 100, lease: .seconds(3600))
      if deliveries.isEmpty { break }
      receipts += deliveries.map(\.receipt)
    }
    _ = try await queue.release(receipts, after: .zero, countsAsAttempt: false)
  }
}
