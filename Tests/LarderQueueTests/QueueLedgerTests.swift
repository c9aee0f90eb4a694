import Larder
import LarderTesting
import Testing

@testable import LarderQueue

@Suite struct QueueLedgerTests {
  /// Runs all continuations of a history up to a length, and recovers after each frame of the longest histories.
  private static func runAll(_ run: LedgerRun, _ history: [QueueStep], length: Int, _ count: inout Int) throws {
    for step in QueueStep.few {
      var next = run
      let steps = history + [step]
      if let difference = next.step(step) {
        Issue.record("after \(steps): \(difference)")
        throw CancellationError()
      }
      if steps.count < length {
        try runAll(next, steps, length: length, &count)
        continue
      }
      for frames in 0...next.log.count {
        count += 1
        let expected = frames == 0 ? nil : next.log[frames - 1].after.advanced(to: next.ledger.now)
        let found = LedgerView(next.replayed(frames))
        guard found.items == expected?.items ?? [], found.dead == expected?.dead ?? [],
          found.remembered == expected?.remembered ?? [:]
        else {
          Issue.record("recovered after \(frames) frames of \(steps): \(found)")
          throw CancellationError()
        }
      }
    }
  }

  @Test func `every short history with a crash after every frame`() throws {
    var count = 0
    try QueueLedgerTests.runAll(LedgerRun(), [], length: 4, &count)
    #expect(count > 40_000)
    print("\(count) recoveries")
  }

  /// Histories that start with a queue that is not empty.
  @Test(arguments: [
    [QueueStep.enqueue(id: nil, delay: 0), .enqueue(id: 1, delay: 0), .receive(max: 1, lease: 10)],
    [.enqueue(id: 1, delay: 0), .receive(max: 1, lease: 5), .release(0, delay: 0), .receive(max: 1, lease: 5)],
    [.set(1), .receive(max: 1, lease: 5), .release(0, delay: 0), .receive(max: 1, lease: 5), .release(0, delay: 0)],
  ]) func `every short history from a state`(_ beginning: [QueueStep]) throws {
    var run = LedgerRun()
    for step in beginning { #expect(run.step(step) == nil) }
    var count = 0
    try QueueLedgerTests.runAll(run, beginning, length: beginning.count + 3, &count)
    #expect(count > 1_000)
  }

  @Test func `random long histories`() {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "ledger")
    for _ in 0..<30 {
      var run = LedgerRun()
      var history: [QueueStep] = []
      for _ in 0..<300 {
        let step = QueueStep.random(using: &generator)
        history.append(step)
        if let difference = run.step(step) {
          Issue.record("LARDER_SEED=\(seed), \(history): \(difference)")
          return
        }
        guard Int.random(in: 0..<20, using: &generator) == 0 else { continue }
        if let difference = run.putBack(Int.random(in: 1...20, using: &generator)) {
          Issue.record("LARDER_SEED=\(seed), \(history), then the clock was put back: \(difference)")
          return
        }
      }
    }
  }

  /// The segment with the record of a dead letter is removed once the item was requeued, and that with its payload stays.
  @Test func `a requeued item needs no record of its death`() {
    var run = LedgerRun()
    let deliveries: [QueueStep] = [.receive(max: 1, lease: 5), .release(0, delay: 0)]
    for step in [.enqueue(id: 1, delay: 0)] + deliveries + deliveries + [.requeue(1)] {
      #expect(run.step(step) == nil)
    }
    var (replayed, deadLetterCount) = (QueueLedger(rules: LedgerRun.rules), 0)
    for record in run.log.flatMap(\.records) {
      if case .state(_, _, let standing) = record, standing.phase == .dead {
        deadLetterCount += 1
      } else {
        replayed.replay(record, in: 1)
      }
    }
    _ = replayed.begin(at: run.ledger.now)
    let (found, expected) = (LedgerView(replayed), LedgerView(run.ledger))
    #expect(deadLetterCount == 1 && expected.items.count == 1)
    #expect(found.items == expected.items && found.dead == expected.dead)
  }

  /// Undoing a decision leaves nothing but a gap in the sequence numbers.
  @Test func undoing() {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "undoing")
    for _ in 0..<200 {
      var run = LedgerRun()
      for _ in 0..<40 { #expect(run.step(.random(using: &generator)) == nil) }
      var ledger = run.ledger
      let before = (
        LedgerView(ledger), ledger.counts, ledger.liveBytes, ledger.uses.all.mapValues(\.count), ledger.tallies
      )
      let mark = ledger.mark
      var frames = FrameBuffer(at: 0)
      for item in ledger.items.firstWaiting(3) { _ = ledger.lease(item, length: 5, epoch: 99, into: &frames) }
      ledger.removeAll(in: .prefix("id:"), into: &frames)
      for item in ledger.items.firstWaiting(2) { ledger.moveToDeadLetters(item, .undecodable, into: &frames) }
      _ = ledger.purgeDeadLetters(into: &frames)
      _ = try? ledger.enqueue([1], key: "new", delay: 3, into: &frames)
      ledger.rollBack(to: mark)
      var after = LedgerView(ledger)
      after.nextSequence = before.0.nextSequence
      #expect(after == before.0 && ledger.counts == before.1 && ledger.liveBytes == before.2, "LARDER_SEED=\(seed)")
      #expect(
        ledger.uses.all.mapValues(\.count).filter { $1 > 0 } == before.3.filter { $1 > 0 } && ledger.tallies == before.4
      )
      // Deadlines apply again, too.
      ledger.advance(to: ledger.now + 100_000_000)
      #expect(ledger.counts.delayed == 0 && ledger.counts.leased == 0)
    }
  }

  /// A deadline that was dropped by an undone step applies again.
  @Test func `undoing restores deadlines`() throws {
    var ledger = QueueLedger(rules: LedgerRun.rules)
    _ = ledger.begin(at: 0)
    var frames = FrameBuffer(at: 0)
    _ = try ledger.enqueue([1], key: "delayed", delay: 5_000_000, into: &frames)
    _ = try ledger.enqueue([1], key: "leased", into: &frames)
    ledger.commit()
    let mark = ledger.mark
    ledger.removeValue(forKey: "delayed", into: &frames)
    let receipt = ledger.lease(try #require(ledger.items.firstWaiting(1).first), length: 1, epoch: 1, into: &frames)
    for length: Int64 in 1...100 { try ledger.extend(receipt, length: length, into: &frames) }
    ledger.rollBack(to: mark)
    #expect(ledger.nextDeadline == 5_000_000)
    ledger.advance(to: 5_000_000)
    #expect(ledger.counts == QueueCounts(waiting: 2))
  }

  /// The clock was ahead when leases and delays were made.
  ///
  /// From the next opening on, none lasts longer than requested.
  @Test func `a clock that was ahead extends no lease or delay`() throws {
    var ledger = QueueLedger(rules: LedgerRun.rules)
    _ = ledger.begin(at: 1_000_000_000)
    var frames = FrameBuffer(at: 0)
    _ = try ledger.enqueue([1], key: "a", into: &frames)
    _ = try ledger.enqueue([1], key: "b", delay: 5_000_000, into: &frames)
    _ = ledger.lease(try #require(ledger.items.firstWaiting(1).first), length: 10_000_000, epoch: 1, into: &frames)
    // Within a process, time never goes back.
    ledger.advance(to: 0)
    #expect(ledger.now == 1_000_000_000)
    var records = frames.finishedRecords(at: 0)
    func opened(at now: Int64) -> (QueueLedger, [QueueRecord]) {
      var opened = QueueLedger(rules: LedgerRun.rules)
      for record in records { opened.replay(record, in: 1) }
      let changes = opened.begin(at: now).items.compactMap { opened.state(of: $0) }
      return (opened, changes.map { .state(sequence: $0.item.sequence, attempts: $0.item.attempts, $0.standing) })
    }
    var (next, changes) = opened(at: 0)
    #expect(next.nextDeadline == 5_000_000 && changes.count == 2)
    // The results of the opening are recorded, so that the next opening does not start over.
    records += changes
    (next, changes) = opened(at: 4_000_000)
    #expect(next.nextDeadline == 5_000_000 && changes.isEmpty)
    next.advance(to: 5_000_000)
    #expect(next.counts == QueueCounts(waiting: 1, leased: 1))
    next.advance(to: 10_000_000)
    #expect(next.counts == QueueCounts(waiting: 2))
  }

  @Test func capacity() throws {
    func ledger(_ capacity: QueueCapacity) -> QueueLedger {
      var ledger = QueueLedger(rules: QueueRules(QueueConfiguration(capacity: capacity)))
      _ = ledger.begin(at: 0)
      return ledger
    }
    let payload = [UInt8](repeating: 1, count: 9)
    var frames = FrameBuffer(at: 0)
    var refusing = ledger(QueueCapacity(items: 2, bytes: 20))
    refusing.beginCall()
    _ = try refusing.enqueue(payload, key: "a", into: &frames)
    refusing.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: true)) {
      try refusing.enqueue([UInt8](repeating: 1, count: 20), key: "b", into: &frames)
    }
    refusing.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: false)) {
      try refusing.enqueue([UInt8](repeating: 1, count: 10), key: "b", into: &frames)
    }
    refusing.beginCall()
    _ = try refusing.enqueue(payload, key: "b", into: &frames)
    refusing.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: false)) {
      try refusing.setValue([UInt8](repeating: 1, count: 10), forKey: "b", hasCallersKey: true, into: &frames)
    }
    refusing.beginCall()
    try refusing.setValue([UInt8](repeating: 1, count: 8), forKey: "b", hasCallersKey: true, into: &frames)
    #expect(refusing.liveBytes == 19)

    var dropping = ledger(QueueCapacity(items: 2, policy: .dropOldest))
    for key: StoreKey in ["a", "b"] {
      dropping.beginCall()
      #expect(try dropping.enqueue(payload, key: key, into: &frames).droppedCount == 0)
    }
    // The oldest item is leased, so the next one is dropped.
    _ = dropping.lease(try #require(dropping.items.firstWaiting(1).first), length: 1, epoch: 1, into: &frames)
    dropping.beginCall()
    #expect(try dropping.enqueue(payload, key: "c", into: &frames).droppedCount == 1)
    #expect(dropping.keys.keys(in: .all, limit: 9, order: .ascending) == ["a", "c"])
    _ = dropping.lease(try #require(dropping.items.firstWaiting(1).first), length: 1, epoch: 1, into: &frames)
    dropping.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: false)) { try dropping.enqueue(payload, key: "d", into: &frames) }
    #expect(dropping.tallies.dropped == 1)
  }
}

/// Runs steps on a ``QueueLedger`` and on the model, and records what would be in the log.
struct LedgerRun {
  static let rules = QueueRules(
    QueueConfiguration(policy: QueuePolicy(maximumDeliveries: 2, duplicateWindow: .seconds(8))))

  private(set) var ledger = QueueLedger(rules: LedgerRun.rules)
  private(set) var model = QueueModel(maximumDeliveries: 2, window: 8_000_000, now: 0)
  /// One frame for each step that wrote records, and the ledger after it.
  private(set) var log: [(records: [QueueRecord], after: LedgerView)] = []
  private var receipts: [(DeliveryReceipt, QueueModel.Receipt)] = []
  /// The offset of the next frame.
  private var offset: Int64 = 0

  init() {
    ledger.segment = 1
    _ = ledger.begin(at: 0)
  }

  /// Runs a step, and returns the difference between the ledger and the model, or `nil`.
  mutating func step(_ step: QueueStep) -> String? {
    var frames = FrameBuffer(at: offset)
    let difference = run(step, &frames)
    ledger.commit()
    let records = frames.finishedRecords(at: offset)
    offset += Int64(frames.bytes.count)
    if !records.isEmpty { log.append((records, LedgerView(ledger))) }
    return difference ?? compare()
  }

  /// Reopens the queue with the clock set back, and returns the difference between the ledger and the model, or `nil`.
  mutating func putBack(_ seconds: Int) -> String? {
    let now = ledger.now - Int64(seconds) * 1_000_000
    ledger = replayed(log.count, at: now)
    model.now = now
    model.reopen()
    return compare()
  }

  /// The payload of every item.
  ///
  /// Its offset represents its value.
  private static let payload = [UInt8](repeating: 1, count: 8)

  /// Returns the value of a key's item.
  private func value(of key: StoreKey) -> Int { ledger.item(forKey: key).map { Int($0.place.offset) } ?? 0 }

  private mutating func run(_ step: QueueStep, _ frames: inout FrameBuffer) -> String? {
    ledger.beginCall()
    switch step {
    case .enqueue(let id, let delay):
      let key = id.map(QueueStep.key)
      let length = Int64(delay) * 1_000_000
      guard let enqueued = try? ledger.enqueue(LedgerRun.payload, key: key, delay: length, into: &frames) else {
        return "enqueue was refused"
      }
      let sequence = model.enqueue(value(of: enqueued.key), key: key, delay: length)
      guard enqueued.isDuplicate == (sequence == nil), sequence.map({ $0 == enqueued.sequence }) ?? true else {
        return "enqueue gave \(enqueued), the model \(sequence as Any)"
      }
    case .set(let id):
      let key = QueueStep.key(id)
      guard (try? ledger.setValue(LedgerRun.payload, forKey: key, hasCallersKey: true, into: &frames)) != nil else {
        return "set was refused"
      }
      model.setValue(value(of: key), forKey: key)
    case .remove(let id):
      ledger.removeValue(forKey: QueueStep.key(id), into: &frames)
      model.removeValue(forKey: QueueStep.key(id))
    case .receive(let max, let lease):
      return receive(max, lease: Int64(lease) * 1_000_000, &frames)
    case .acknowledge(let back):
      return withReceipt(back) { receipt, modelled in
        ((try? ledger.acknowledge(receipt, into: &frames)) != nil, model.acknowledge(modelled))
      }
    case .release(let back, let delay):
      let length = Int64(delay) * 1_000_000
      return withReceipt(back) { receipt, modelled in
        (
          (try? ledger.release(receipt, delay: length, into: &frames)) != nil,
          model.release(modelled, delay: length)
        )
      }
    case .extend(let back, let lease):
      let length = Int64(lease) * 1_000_000
      return withReceipt(back) { receipt, modelled in
        ((try? ledger.extend(receipt, length: length, into: &frames)) != nil, model.extend(modelled, lease: length))
      }
    case .requeue(let id):
      let isDone = (try? ledger.requeue(QueueStep.key(id), into: &frames)) != nil
      guard isDone == model.requeue(QueueStep.key(id)) else { return "requeue gave \(isDone)" }
    case .purge(let id):
      _ = ledger.purgeDeadLetters(QueueStep.key(id), into: &frames)
      model.purge(QueueStep.key(id))
    case .advance(let seconds):
      ledger.advance(to: ledger.now + Int64(seconds) * 1_000_000)
      model.advance(to: ledger.now)
    case .reopen:
      ledger = replayed(log.count)
      model.reopen()
    case .void:
      for sequence in ledger.voidLeases() {
        guard let state = ledger.state(of: sequence) else { continue }
        frames.append(.state(sequence: sequence, attempts: state.item.attempts, state.standing))
      }
      model.voidLeases()
    }
    return nil
  }

  private mutating func receive(_ max: Int, lease: Int64, _ frames: inout FrameBuffer) -> String? {
    var received: [(DeliveryReceipt, QueueItem)] = []
    while received.count < max, let item = ledger.items.firstWaiting(1).first {
      if ledger.rules.isExhausted(item) {
        ledger.moveToDeadLetters(item, .tooManyDeliveries, into: &frames)
      } else {
        // The model numbers its leases, too.
        let epoch = UInt64(model.nextLease)
        received.append((ledger.lease(item, length: lease, epoch: epoch, into: &frames), item))
      }
    }
    let expected = model.receive(max, lease: lease)
    let found = received.map { receipt, item in
      QueueModel.Delivery(key: item.key, value: Int(item.place.offset), attempt: Int(receipt.attempt))
    }
    guard found == expected.map(\.0) else { return "received \(found), the model \(expected.map(\.0))" }
    receipts += zip(received, expected).map { ($0.0, $1.1) }
    return nil
  }

  private func withReceipt(
    _ back: Int, _ body: (DeliveryReceipt, QueueModel.Receipt) -> (Bool, Bool)
  ) -> String? {
    guard back < receipts.count else { return nil }
    let (receipt, modelled) = receipts[receipts.count - 1 - back]
    let (isGood, isExpectedGood) = body(receipt, modelled)
    return isGood == isExpectedGood ? nil : "the receipt \(receipt) was \(isGood), in the model \(isExpectedGood)"
  }

  /// Returns a ledger that has replayed the first `count` frames.
  ///
  /// The time defaults to the current one.
  func replayed(_ count: Int, at now: Int64? = nil) -> QueueLedger {
    var replayed = QueueLedger(rules: LedgerRun.rules)
    for (records, _) in log.prefix(count) {
      for record in records { replayed.replay(record, in: 1) }
    }
    _ = replayed.begin(at: now ?? ledger.now)
    return replayed
  }

  /// Returns a description of the difference between the ledger and the model, or `nil`.
  private func compare() -> String? {
    let view = LedgerView(ledger)
    let values = Dictionary(uniqueKeysWithValues: view.items.map { ($0.item.key, Int($0.item.place.offset)) })
    if let difference = view.difference(from: model, values: values) { return difference }
    let phases = view.items.map(\.item.phase)
    let counts = QueueCounts(
      waiting: phases.count { $0 == .waiting }, delayed: phases.count { $0 == .delayed },
      leased: phases.count { $0 == .leased }, dead: view.dead.count)
    guard counts == ledger.counts else { return "counts: \(ledger.counts), recounted \(counts)" }
    let bytes = view.items.reduce(0) { $0 + $1.item.size }
    guard bytes == ledger.liveBytes else { return "bytes: \(ledger.liveBytes), recounted \(bytes)" }
    guard view.items.map(\.item.key).sorted() == ledger.keys.keys(in: .all, limit: .max, order: .ascending) else {
      return "the keys are not those of the items"
    }
    return nil
  }
}

extension FrameBuffer {
  /// Creates a buffer for frames at an offset in segment 1.
  fileprivate init(at offset: Int64) {
    self.init()
    reset(segment: 1, salt: 0, base: offset, durable: 0, firstNumber: 1)
    beginCall()
  }

  /// Returns the records of all frames, as read from a file with these frames at an offset.
  fileprivate mutating func finishedRecords(at offset: Int64) -> [QueueRecord] {
    finish()
    var records: [QueueRecord] = []
    var rest = bytes[...]
    while let frame = QueueFrame(head: rest) {
      rest = rest.dropFirst(QueueFrame.headLength)
      records +=
        QueueRecord.records(
          of: rest.prefix(frame.bodyLength), segment: 1, offset: offset + Int64(rest.startIndex)) ?? []
      rest = rest.dropFirst(frame.bodyLength)
    }
    return records
  }
}
