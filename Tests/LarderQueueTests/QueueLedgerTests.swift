import Larder
import LarderTesting
import Testing

@testable import LarderQueue

@Suite struct QueueLedgerTests {
  /// Runs all continuations of a history up to a length, and recovers after each frame of the longest ones.
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

  /// Histories that begin where there is more to do than in an empty queue.
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

  /// What is decided and undone leaves nothing behind but a gap in the sequence numbers.
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
      for item in ledger.firstWaiting(2) { ledger.kill(item, .undecodable, into: &records) }
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
      // Deadlines hold again too.
      ledger.advance(to: ledger.now + 100_000_000)
      #expect(ledger.counts.delayed == 0 && ledger.counts.leased == 0)
    }
  }

  /// A deadline that was forgotten in the course of what is undone holds again.
  @Test func undoingBringsDeadlinesBack() throws {
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

  /// The clock was ahead when leases and delays were made: from the next opening on, nothing is kept longer than was said.
  @Test func aClockThatWasAheadKeepsNothingLongerThanWasSaid() throws {
    var ledger = QueueLedger(rules: LedgerRun.rules)
    _ = ledger.begin(at: 1_000_000_000)
    var records: [QueueRecord] = []
    let place = QueuePlace(segment: 1, offset: 1, length: 1)
    _ = try ledger.enqueue(.init(key: "a", place: place), into: &records)
    _ = try ledger.enqueue(.init(key: "b", place: place, delay: 5_000_000), into: &records)
    _ = ledger.lease(try #require(ledger.firstWaiting(1).first), length: 10_000_000, epoch: 1, into: &records)
    // In the process the time never goes back.
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
    // What the opening found is written, so the one after it does not begin anew.
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
    // The oldest is leased, so the next one goes.
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
