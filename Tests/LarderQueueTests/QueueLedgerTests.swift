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

  @Test func everyShortHistoryWithACrashAfterEveryFrame() throws {
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
  ]) func everyShortHistoryFromAState(_ beginning: [QueueStep]) throws {
    var run = LedgerRun()
    for step in beginning { #expect(run.step(step) == nil) }
    var count = 0
    try QueueLedgerTests.runAll(run, beginning, length: beginning.count + 3, &count)
    #expect(count > 1_000)
  }

  @Test func randomLongHistories() {
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
      var records: [QueueRecord] = []
      for item in ledger.firstWaiting(3) { _ = ledger.lease(item, length: 5, epoch: 99, into: &records) }
      ledger.removeAll(in: .prefix("id:"), into: &records)
      for item in ledger.firstWaiting(2) { ledger.moveToDeadLetters(item, .undecodable, into: &records) }
      _ = ledger.purgeDeadLetters(into: &records)
      _ = try? ledger.enqueue(
        .init(key: "new", place: QueuePlace(segment: 2, offset: 9, length: 9), delay: 3), into: &records)
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
  @Test func undoingRestoresDeadlines() throws {
    var ledger = QueueLedger(rules: LedgerRun.rules)
    _ = ledger.begin(at: 0)
    var records: [QueueRecord] = []
    let place = QueuePlace(segment: 1, offset: 1, length: 1)
    _ = try ledger.enqueue(.init(key: "delayed", place: place, delay: 5_000_000), into: &records)
    _ = try ledger.enqueue(.init(key: "leased", place: place), into: &records)
    ledger.commit()
    let mark = ledger.mark
    ledger.removeValue(forKey: "delayed", into: &records)
    let receipt = ledger.lease(try #require(ledger.firstWaiting(1).first), length: 1, epoch: 1, into: &records)
    for length: Int64 in 1...100 { try ledger.extend(receipt, length: length, into: &records) }
    ledger.rollBack(to: mark)
    #expect(ledger.nextDeadline == 5_000_000)
    ledger.advance(to: 5_000_000)
    #expect(ledger.counts == QueueCounts(waiting: 2))
  }

  /// The clock was ahead when leases and delays were made.
  ///
  /// From the next opening on, none lasts longer than requested.
  @Test func aClockThatWasAheadExtendsNoLeaseOrDelay() throws {
    var ledger = QueueLedger(rules: LedgerRun.rules)
    _ = ledger.begin(at: 1_000_000_000)
    var records: [QueueRecord] = []
    let place = QueuePlace(segment: 1, offset: 1, length: 1)
    _ = try ledger.enqueue(.init(key: "a", place: place), into: &records)
    _ = try ledger.enqueue(.init(key: "b", place: place, delay: 5_000_000), into: &records)
    _ = ledger.lease(try #require(ledger.firstWaiting(1).first), length: 10_000_000, epoch: 1, into: &records)
    // Within a process, time never goes back.
    ledger.advance(to: 0)
    #expect(ledger.now == 1_000_000_000)
    func opened(at now: Int64) -> (QueueLedger, [QueueRecord]) {
      var opened = QueueLedger(rules: LedgerRun.rules)
      for record in records { opened.replay(record, in: 1) }
      let changes = opened.begin(at: now)
      return (opened, changes)
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
    func item(_ key: StoreKey, length: UInt32 = 9) -> QueueLedger.NewItem {
      .init(key: key, place: QueuePlace(segment: 1, offset: 0, length: length))
    }
    var records: [QueueRecord] = []
    var refusing = ledger(QueueCapacity(items: 2, bytes: 20))
    refusing.beginCall()
    _ = try refusing.enqueue(item("a"), into: &records)
    refusing.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: true)) { try refusing.enqueue(item("b", length: 20), into: &records) }
    refusing.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: false)) { try refusing.enqueue(item("b", length: 10), into: &records) }
    refusing.beginCall()
    _ = try refusing.enqueue(item("b"), into: &records)
    refusing.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: false)) {
      try refusing.setValue(at: QueuePlace(segment: 1, offset: 0, length: 10), forKey: "b", into: &records)
    }
    refusing.beginCall()
    try refusing.setValue(at: QueuePlace(segment: 1, offset: 0, length: 8), forKey: "b", into: &records)
    #expect(refusing.liveBytes == 19)

    var dropping = ledger(QueueCapacity(items: 2, policy: .dropOldest))
    for key: StoreKey in ["a", "b"] {
      dropping.beginCall()
      #expect(try dropping.enqueue(item(key), into: &records).droppedCount == 0)
    }
    // The oldest item is leased, so the next one is dropped.
    _ = dropping.lease(try #require(dropping.firstWaiting(1).first), length: 1, epoch: 1, into: &records)
    dropping.beginCall()
    #expect(try dropping.enqueue(item("c"), into: &records).droppedCount == 1)
    #expect(dropping.keys(in: .all, limit: 9, order: .ascending) == ["a", "c"])
    _ = dropping.lease(try #require(dropping.firstWaiting(1).first), length: 1, epoch: 1, into: &records)
    dropping.beginCall()
    #expect(throws: QueueRefusal.full(neverFits: false)) { try dropping.enqueue(item("d"), into: &records) }
    #expect(dropping.tallies.dropped == 1)
  }
}

/// Runs steps on a ``QueueLedger`` and on the model, and records what would be in the log.
struct LedgerRun {
  static let rules = QueueRules(QueueConfiguration(maximumDeliveries: 2, duplicateWindow: .seconds(8)))

  private(set) var ledger = QueueLedger(rules: LedgerRun.rules)
  private(set) var model = QueueModel(maximumDeliveries: 2, window: 8_000_000, now: 0)
  /// One frame for each step that wrote records, and the ledger after it.
  private(set) var log: [(records: [QueueRecord], after: LedgerView)] = []
  private var receipts: [(DeliveryReceipt, QueueModel.Receipt)] = []
  private var values: [UInt32: Int] = [:]
  private var nextValue: UInt32 = 1

  init() {
    ledger.segment = 1
    _ = ledger.begin(at: 0)
  }

  /// Runs a step, and returns the difference between the ledger and the model, or `nil`.
  mutating func step(_ step: QueueStep) -> String? {
    var records: [QueueRecord] = []
    let difference = run(step, &records)
    ledger.commit()
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

  /// Returns a place that represents a new value.
  ///
  /// The ledger does not use its content.
  private mutating func newPlace() -> (QueuePlace, Int) {
    defer { nextValue += 1 }
    values[nextValue] = Int(nextValue)
    return (QueuePlace(segment: 1, offset: nextValue, length: 8), Int(nextValue))
  }

  private mutating func run(_ step: QueueStep, _ records: inout [QueueRecord]) -> String? {
    ledger.beginCall()
    switch step {
    case .enqueue(let id, let delay):
      let (place, value) = newPlace()
      let key = id.map(QueueStep.key)
      let new = QueueLedger.NewItem(key: key, place: place, delay: Int64(delay) * 1_000_000)
      guard let enqueued = try? ledger.enqueue(new, into: &records) else { return "enqueue was refused" }
      let sequence = model.enqueue(value, key: key, delay: new.delay)
      guard enqueued.isDuplicate == (sequence == nil), sequence == nil || sequence == enqueued.sequence else {
        return "enqueue gave \(enqueued), the model \(sequence as Any)"
      }
    case .set(let id):
      let (place, value) = newPlace()
      guard (try? ledger.setValue(at: place, forKey: QueueStep.key(id), into: &records)) != nil else {
        return "set was refused"
      }
      model.setValue(value, forKey: QueueStep.key(id))
    case .remove(let id):
      ledger.removeValue(forKey: QueueStep.key(id), into: &records)
      model.removeValue(forKey: QueueStep.key(id))
    case .receive(let max, let lease):
      return receive(max, lease: Int64(lease) * 1_000_000, &records)
    case .acknowledge(let back):
      return withReceipt(back) { receipt, modelled in
        ((try? ledger.acknowledge(receipt, into: &records)) != nil, model.acknowledge(modelled))
      }
    case .release(let back, let delay):
      let length = Int64(delay) * 1_000_000
      return withReceipt(back) { receipt, modelled in
        (
          (try? ledger.release(receipt, delay: length, into: &records)) != nil,
          model.release(modelled, delay: length)
        )
      }
    case .extend(let back, let lease):
      let length = Int64(lease) * 1_000_000
      return withReceipt(back) { receipt, modelled in
        ((try? ledger.extend(receipt, length: length, into: &records)) != nil, model.extend(modelled, lease: length))
      }
    case .requeue(let id):
      let isDone = (try? ledger.requeue(QueueStep.key(id), into: &records)) != nil
      guard isDone == model.requeue(QueueStep.key(id)) else { return "requeue gave \(isDone)" }
    case .purge(let id):
      _ = ledger.purgeDeadLetters(QueueStep.key(id), into: &records)
      model.purge(QueueStep.key(id))
    case .advance(let seconds):
      ledger.advance(to: ledger.now + Int64(seconds) * 1_000_000)
      model.advance(to: ledger.now)
    case .reopen:
      ledger = replayed(log.count)
      model.reopen()
    case .void:
      ledger.voidLeases(into: &records)
      model.voidLeases()
    }
    return nil
  }

  private mutating func receive(_ max: Int, lease: Int64, _ records: inout [QueueRecord]) -> String? {
    var received: [(DeliveryReceipt, QueueItem)] = []
    while received.count < max, let item = ledger.firstWaiting(1).first {
      if ledger.isExhausted(item) {
        ledger.moveToDeadLetters(item, .tooManyDeliveries, into: &records)
      } else {
        // The model numbers its leases, too.
        let epoch = UInt64(model.nextLease)
        received.append((ledger.lease(item, length: lease, epoch: epoch, into: &records), item))
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
    guard view.items.map(\.item.key).sorted() == ledger.keys(in: .all, limit: .max, order: .ascending) else {
      return "the keys are not those of the items"
    }
    return nil
  }
}
