import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderQueue

/// Random histories with power loss, compared with a model.
///
/// `LARDER_CUTS` sets the minimum number of power cuts.
@Suite struct QueueHistoryTests {
  private static let cutCount = ProcessInfo.processInfo.environment["LARDER_CUTS"].flatMap { Int($0) } ?? 150

  @Test(arguments: Durability.File.allCases) func `random histories with power cuts`(_ durability: Durability.File)
    async throws
  {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "histories, \(durability)")
    var cuts = 0
    while cuts < QueueHistoryTests.cutCount {
      var history = try await QueueHistory(seed: generator.next(), durability: durability)
      var steps: [QueueStep] = []
      do {
        for _ in 0..<60 {
          let step = QueueStep.random(using: &generator)
          steps.append(step)
          let isCut = Int.random(in: 0..<6, using: &generator) == 0
          let isCutTwice = Int.random(in: 0..<4, using: &generator) == 0
          try await history.run(
            step, cut: isCut ? Int.random(in: 1...6, using: &generator) : nil,
            recoveryCut: isCutTwice ? Int.random(in: 1...20, using: &generator) : nil)
        }
      } catch {
        Issue.record("LARDER_SEED=\(seed), \(durability), \(steps): \(error)")
        return
      }
      cuts += history.cutCount
    }
    print("\(cuts) cuts (\(durability))")
  }

  /// Every history of two steps from several initial states, with power loss at every operation of the last step.
  @Test(arguments: Durability.File.allCases) func `every short history with every cut`(_ durability: Durability.File)
    async throws
  {
    let beginnings: [[QueueStep]] = [
      [.enqueue(id: nil, delay: 0), .enqueue(id: 1, delay: 0), .receive(max: 1, lease: 10)],
      [.enqueue(id: 1, delay: 0), .receive(max: 1, lease: 5), .release(0, delay: 0), .receive(max: 1, lease: 5)],
    ]
    for beginning in beginnings {
      for last in QueueStep.few + [.reopen, .void, .purge(1)] {
        for cut in 1...8 {
          var history = try await QueueHistory(seed: UInt64(cut), durability: durability)
          for step in beginning { try await history.run(step, cut: nil, recoveryCut: nil) }
          do {
            try await history.run(last, cut: cut, recoveryCut: nil)
            // The queue must be able to continue.
            for step in [QueueStep.set(2), .receive(max: 4, lease: 5), .acknowledge(0), .reopen] {
              try await history.run(step, cut: nil, recoveryCut: nil)
            }
          } catch {
            Issue.record("\(durability), \(beginning), then \(last) with a cut at \(cut): \(error)")
            return
          }
        }
      }
    }
  }
}

/// Runs steps on the model and on a queue on a simulated disk, which loses power.
struct QueueHistory {
  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  private static let configuration = QueueConfiguration(
    policy: QueuePolicy(maximumDeliveries: 2, duplicateWindow: .seconds(8)), segmentSize: 4096)

  private let bench: QueueBench
  private let durability: Durability.File
  private var queue: QueueStore<Int>
  private var model: QueueModel
  /// The possible states after power loss, the oldest first.
  private var allowed: [QueueModel]
  private var receipts: [(DeliveryReceipt, QueueModel.Receipt)] = []
  private var nextValue = 1
  private(set) var cutCount = 0

  init(seed: UInt64, durability: Durability.File) async throws {
    bench = QueueBench(seed: seed)
    self.durability = durability
    queue = try await bench.open(QueueHistory.configuration, durability: durability)
    model = QueueModel(maximumDeliveries: 2, window: 8_000_000, now: bench.clock.date.microsecondsSince1970)
    allowed = [model]
  }

  /// Runs a step, with power loss at one of its operations.
  ///
  /// - Parameters:
  ///   - step: The step.
  ///   - cut: The operation at which power is lost, or `nil` for none.
  ///   - recoveryCut: The operation of the following opening at which power is lost again.
  /// - Throws: ``Failure`` if the queue differs from the model.
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
      // Power was lost during work that no caller was waiting for.
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
      candidate.advance(to: bench.clock.date.microsecondsSince1970)
      let sequence = try await view().nextSequence
      guard sequence >= candidate.nextSequence else {
        differences.append("the next sequence number is \(sequence), not \(candidate.nextSequence)")
        continue
      }
      guard let difference = try await difference(from: candidate) else {
        // No lease reuses the number of a lost one.
        candidate.nextLease = candidates.map(\.nextLease).max() ?? candidate.nextLease
        model = candidate
        model.nextSequence = sequence
        allowed = [model]
        return
      }
      differences.append(difference)
    }
    throw Failure(
      description: "the state after power loss is not an allowed one:\n" + differences.joined(separator: "\n"))
  }

  private func view() async throws -> LedgerView {
    try await queue.perform(.keys, .looks) { LedgerView($0.ledger) }
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
      let enqueued = try await queue.enqueue(nextValue, id: key, after: .seconds(delay))
      guard enqueued.isDuplicate == (sequence == nil), sequence.map({ $0 == enqueued.sequence }) ?? true else {
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
        guard isDone else { throw Failure(description: "requeued despite an item with the same key") }
      } catch StoreError.Code.conflict {
        guard !isDone else { throw Failure(description: "requeuing was refused") }
      }
    case .purge(let id):
      next.purge(QueueStep.key(id))
      try await queue.purgeDeadLetters([QueueStep.key(id)])
    case .advance(let seconds):
      bench.clock.advance(by: .seconds(seconds))
      next.advance(to: bench.clock.date.microsecondsSince1970)
    case .reopen:
      try await queue.close()
      queue = try await bench.open(QueueHistory.configuration, durability: durability)
    case .void:
      try await queue.close()
      next.voidLeases()
      queue = try await bench.open(QueueHistory.configuration, durability: durability, leases: .void)
      // The end of the leases is written with the first change.
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
      guard isExpectedGood else { throw Failure(description: "a stale receipt was accepted") }
    } catch StoreError.Code.staleReceipt {
      guard !isExpectedGood else { throw Failure(description: "a valid receipt was refused") }
    }
  }
}
