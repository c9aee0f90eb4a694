import Larder

@testable import LarderQueue

/// Runs steps on a ``QueueLedger`` and on the model, and keeps what would stand in the log.
struct LedgerRun {
  static let rules = QueueRules(QueueConfiguration(maximumDeliveries: 2, duplicateWindow: .seconds(8)))

  private(set) var ledger = QueueLedger(rules: LedgerRun.rules)
  private(set) var model = QueueModel(maximumDeliveries: 2, window: 8_000_000, now: 0)
  /// One frame for each step that wrote something, and what the ledger was after it.
  private(set) var log: [(records: [QueueRecord], after: LedgerView)] = []
  private var receipts: [(DeliveryReceipt, QueueModel.Receipt)] = []
  private var values: [UInt32: Int] = [:]
  private var nextValue: UInt32 = 1

  init() {
    ledger.segment = 1
    _ = ledger.begin(at: 0)
  }

  /// What differs after a step, or `nil`.
  mutating func step(_ step: QueueStep) -> String? {
    var records: [QueueRecord] = []
    let difference = run(step, &records)
    ledger.commit()
    if !records.isEmpty { log.append((records, LedgerView(ledger))) }
    return difference ?? compare()
  }

  /// Opens the queue again with the clock put back, and gives what differs then, or `nil`.
  mutating func putBack(_ seconds: Int) -> String? {
    let now = ledger.now - Int64(seconds) * 1_000_000
    ledger = replayed(log.count, at: now)
    model.now = now
    model.reopen()
    return compare()
  }

  /// A place that stands for a new value: the queue does not look at it.
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
        ledger.kill(item, .tooManyDeliveries, into: &records)
      } else {
        // The model numbers its leases as well.
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

  /// A ledger that has replayed so many frames, at the time that it is now unless another is given.
  func replayed(_ count: Int, at now: Int64? = nil) -> QueueLedger {
    var replayed = QueueLedger(rules: LedgerRun.rules)
    for (records, _) in log.prefix(count) {
      for record in records { replayed.replay(record, in: 1) }
    }
    _ = replayed.begin(at: now ?? ledger.now)
    return replayed
  }

  /// What the ledger and the model do not have in common.
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
