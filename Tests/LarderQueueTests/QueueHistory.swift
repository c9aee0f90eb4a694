import Larder
import LarderTesting

@testable import LarderQueue

/// Runs steps on a queue on a simulated disk and on the model, and cuts the power.
struct QueueHistory {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  private static let configuration = QueueConfiguration(
    maximumDeliveries: 2, duplicateWindow: .seconds(8), segmentSize: 4096)

  private let bench: QueueBench
  private let durability: Durability
  private var queue: QueueStore<Int>
  private var model: QueueModel
  /// What may be found after power loss, the oldest first.
  private var allowed: [QueueModel]
  private var receipts: [(DeliveryReceipt, QueueModel.Receipt)] = []
  private var nextValue = 1
  private(set) var cutCount = 0

  init(seed: UInt64, durability: Durability) async throws {
    bench = QueueBench(seed: seed)
    self.durability = durability
    queue = try await bench.open(QueueHistory.configuration, durability: durability)
    model = QueueModel(maximumDeliveries: 2, window: 8_000_000, now: bench.clock.date.microseconds)
    allowed = [model]
  }

  /// Runs a step, at one of whose operations the power may go.
  ///
  /// - Parameters:
  ///   - step: The step.
  ///   - cut: At which of its operations the power goes; `nil` for none.
  ///   - recoveryCut: At which operation of the opening that follows it goes once more.
  /// - Throws: ``Failure`` where the queue does not do what the model does.
  mutating func run(_ step: QueueStep, cut: Int?, recoveryCut: Int?) async throws {
    if let cut { bench.disk.schedule(.powerLoss, atOperation: bench.disk.operationCount + cut) }
    defer { nextValue += 1 }
    var next = model
    do {
      try await run(step, &next)
    } catch let error as StoreError where !bench.disk.hasPower {
      guard error.code != .corrupted else { throw Failure(description: "\(step): \(error)") }
      try await recover(allowed + [next], recoveryCut)
      return
    }
    if !bench.disk.hasPower {
      // It went in the course of something that nobody had to be told of.
      try await recover(allowed + [next], recoveryCut)
      return
    }
    bench.disk.clearFaults()
    model = next
    let isDurable = durability == .synced || step == .reopen || step == .void
    allowed = isDurable ? [model] : allowed + [model]
    if let difference = try await difference(from: model) { throw Failure(description: "after \(step): \(difference)") }
  }

  private mutating func recover(_ candidates: [QueueModel], _ recoveryCut: Int?) async throws {
    cutCount += 1
    bench.disk.restart()
    if let recoveryCut {
      bench.disk.schedule(.powerLoss, atOperation: bench.disk.operationCount + recoveryCut)
      do {
        queue = try await bench.open(QueueHistory.configuration, durability: durability)
      } catch is StoreError {
        cutCount += 1
      }
      bench.disk.restart()
    }
    bench.disk.killProcess()
    queue = try await bench.open(QueueHistory.configuration, durability: durability)
    guard !queue.recovery.hasDamage else { throw Failure(description: "damage is reported: \(queue.recovery)") }
    var differences: [String] = []
    for var candidate in candidates.reversed() {
      candidate.advance(to: bench.clock.date.microseconds)
      let sequence = try await view().nextSequence
      guard sequence >= candidate.nextSequence else {
        differences.append("the next sequence number is \(sequence), not \(candidate.nextSequence)")
        continue
      }
      guard let difference = try await difference(from: candidate) else {
        // No lease has the number of one that was lost.
        candidate.nextLease = candidates.map(\.nextLease).max() ?? candidate.nextLease
        model = candidate
        model.nextSequence = sequence
        allowed = [model]
        return
      }
      differences.append(difference)
    }
    throw Failure(
      description: "after power loss nothing that is allowed was found:\n" + differences.joined(separator: "\n"))
  }

  private func view() async throws -> LedgerView {
    try await queue.look(.keys) { LedgerView($0.ledger) }
  }

  private func difference(from model: QueueModel) async throws -> String? {
    let entries = try await queue.entries(in: .all, limit: .max, order: .ascending)
    let values = Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
    if let difference = try await view().difference(from: model, values: values) { return difference }
    let counts = try await queue.counts()
    let (leased, timed) = (model.items.count { $0.lease != nil }, model.items.count { $0.until != nil })
    let recount = QueueCounts(
      waiting: model.items.count - timed, delayed: timed - leased, leased: leased, dead: model.dead.count)
    return counts == recount ? nil : "counts: \(counts), recounted \(recount)"
  }

  // MARK: Steps

  private mutating func run(_ step: QueueStep, _ next: inout QueueModel) async throws {
    switch step {
    case .enqueue(let id, let delay):
      let key = id.map(QueueStep.key)
      let sequence = next.enqueue(nextValue, key: key, delay: Int64(delay) * 1_000_000)
      let enqueued = try await queue.enqueue(nextValue, id: key, delay: .seconds(delay))
      guard enqueued.isDuplicate == (sequence == nil), sequence == nil || enqueued.sequence == sequence else {
        throw Failure(description: "enqueued \(enqueued), the model \(sequence as Any)")
      }
    case .set(let id):
      next.setValue(nextValue, forKey: QueueStep.key(id))
      try await queue.setValue(nextValue, forKey: QueueStep.key(id))
    case .remove(let id):
      next.removeValue(forKey: QueueStep.key(id))
      try await queue.removeValue(forKey: QueueStep.key(id))
    case .receive(let max, let lease):
      let expected = next.receive(max, lease: Int64(lease) * 1_000_000)
      let deliveries = try await queue.receive(max: max, lease: .seconds(lease))
      let found = deliveries.map { QueueModel.Delivery(key: $0.key, value: $0.value, attempt: $0.attempt) }
      guard found == expected.map(\.0) else {
        throw Failure(description: "received \(found), the model \(expected.map(\.0))")
      }
      receipts += zip(deliveries, expected).map { ($0.receipt, $1.1) }
    case .acknowledge(let back):
      try await useReceipt(back) {
        next.acknowledge($0)
      } in: { [queue] in
        try await queue.acknowledge($0)
      }
    case .release(let back, let delay):
      try await useReceipt(back) {
        next.release($0, delay: Int64(delay) * 1_000_000)
      } in: { [queue] in
        try await queue.release($0, after: .seconds(delay))
      }
    case .extend(let back, let lease):
      try await useReceipt(back) {
        next.extend($0, lease: Int64(lease) * 1_000_000)
      } in: { [queue] in
        try await queue.extend($0, lease: .seconds(lease))
      }
    case .requeue(let id):
      let isDone = next.requeue(QueueStep.key(id))
      do {
        try await queue.requeue([QueueStep.key(id)])
        guard isDone else { throw Failure(description: "requeued in spite of an item with the key") }
      } catch StoreError.Code.conflict {
        guard !isDone else { throw Failure(description: "requeuing was refused") }
      }
    case .purge(let id):
      next.purge(QueueStep.key(id))
      try await queue.purgeDeadLetters([QueueStep.key(id)])
    case .advance(let seconds):
      bench.clock.advance(by: .seconds(seconds))
      next.advance(to: bench.clock.date.microseconds)
    case .reopen:
      try await queue.close()
      queue = try await bench.open(QueueHistory.configuration, durability: durability)
    case .void:
      try await queue.close()
      next.voidLeases()
      queue = try await bench.open(QueueHistory.configuration, durability: durability, leases: .void)
      // That the leases have ended is written with the first change.
      try await queue.synchronize()
    }
  }

  private func useReceipt(
    _ back: Int, _ expected: (QueueModel.Receipt) -> Bool, in body: (DeliveryReceipt) async throws -> Void
  ) async throws {
    guard back < receipts.count else { return }
    let (receipt, modelled) = receipts[receipts.count - 1 - back]
    let isExpectedGood = expected(modelled)
    do {
      try await body(receipt)
      guard isExpectedGood else { throw Failure(description: "a stale receipt was taken") }
    } catch StoreError.Code.staleReceipt {
      guard !isExpectedGood else { throw Failure(description: "a good receipt was refused") }
    }
  }
}
