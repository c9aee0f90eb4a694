#if Postgres
import Foundation
import Larder
import LarderPostgres
import LarderTesting
import Synchronization
import TestSupport
import Testing

/// The account of the ids of a race.
private final class Account: Sendable {
  struct Entry {
    var enqueued = 0
    var acknowledged = 0
    /// The running leases, with their ends.
    var leases: [DeliveryReceipt: ContinuousClock.Instant] = [:]
  }

  private struct State {
    var entries: [StoreKey: Entry] = [:]
    var staleCount = 0
    var problems: [String] = []
  }

  private let state = Locked(State())

  var entries: [StoreKey: Entry] { state.withLock { $0.entries } }
  var staleCount: Int { state.withLock { $0.staleCount } }
  var problems: [String] { state.withLock { $0.problems } }

  func noteEnqueued(_ key: StoreKey) {
    state.withLock { $0.entries[key, default: Entry()].enqueued += 1 }
  }

  /// Notes a delivery, which must not begin before the latest lease has ended.
  ///
  /// - Parameters:
  ///   - delivery: The delivery.
  ///   - end: A time when its lease has not ended yet for sure.
  func noteDelivered<Element>(_ delivery: QueueDelivery<Element>, leasedUntil end: ContinuousClock.Instant) {
    state.withLock { state in
      let now = ContinuousClock.now
      let others = state.entries[delivery.key]?.leases.values.filter { $0 > now } ?? []
      // On a busy machine, a delivery may be noted after the end of its own lease, and after the next delivery.
      if end > now, !others.isEmpty { state.problems.append("\(delivery.key) is leased to two consumers") }
      state.entries[delivery.key, default: Entry()].leases[delivery.receipt] = end
    }
  }

  func noteAcknowledged(_ receipt: DeliveryReceipt, _ key: StoreKey, isStale: Bool) {
    state.withLock { state in
      state.entries[key]?.leases[receipt] = nil
      if isStale { state.staleCount += 1 } else { state.entries[key, default: Entry()].acknowledged += 1 }
    }
  }

  func noteProblem(_ problem: String) {
    state.withLock { $0.problems.append(problem) }
  }
}

/// Races of producers and consumers by the clock of the server, over databases of their own as in several processes.
@Suite(.serialized, .timeLimit(.minutes(60))) struct PostgresQueueRaceTests {
  private static func run(
    _ setting: Setting, count: Int, _ body: @escaping @Sendable (Int, PostgresQueue<Int>) async throws -> Void
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        group.addTask {
          let database = try await PostgresDatabase(
            setting.server.connectionString, schema: setting.schema, connections: 2)
          let queue = try await PostgresQueue<Int>(
            in: database, name: "q",
            configuration: PostgresQueueConfiguration(
              policy: QueuePolicy(maximumDeliveries: nil, retryPolicy: .immediate)))
          do {
            try await body(index, queue)
          } catch {
            await database.close()
            throw error
          }
          await database.close()
        }
      }
      // The first error cancels the others, which may wait for what the failed one should have done.
      while try await group.next() != nil {}
    }
  }

  /// Four producers enqueue the same ids again and again; four consumers die with an item or dawdle.
  @Test func `no id is enqueued leased or acknowledged twice`() async throws {
    try await Setting.run { setting in
      let account = Account()
      let producerCount = Atomic(4)
      try await PostgresQueueRaceTests.run(setting, count: 8) { index, queue in
        var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "queue race \(index)")
        if index < 4 {
          defer { producerCount.subtract(1, ordering: .relaxed) }
          for _ in 0..<150 {
            let ids = Set((0..<3).map { _ in Int.random(in: 0..<300, using: &generator) })
            let results = try await queue.enqueue(ids.map { QueueInput($0, id: StoreKey("\($0)")) })
            for result in results where !result.isDuplicate { account.noteEnqueued(result.key) }
          }
          return
        }
        while true {
          let isEnding = producerCount.load(ordering: .relaxed) == 0
          let start = ContinuousClock.now
          let deliveries = try await queue.receive(max: 7, lease: .milliseconds(250))
          for delivery in deliveries { account.noteDelivered(delivery, leasedUntil: start + .milliseconds(250)) }
          for delivery in deliveries {
            // The consumer dies: the lease runs out.
            if Int.random(in: 0..<10, using: &generator) == 0 { continue }
            if !isEnding, Int.random(in: 0..<20, using: &generator) == 0 {
              try await Task.sleep(for: .milliseconds(300))
            }
            let stale = try await queue.acknowledge([delivery.receipt])
            account.noteAcknowledged(delivery.receipt, delivery.key, isStale: !stale.isEmpty)
          }
          if isEnding, try await queue.count() == 0 { return }
          if deliveries.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
        }
      }
      #expect(account.problems == [])
      let entries = account.entries
      #expect(entries.count > 200)
      #expect(entries.filter { $0.value.enqueued != 1 }.isEmpty, "an id is enqueued once within its window")
      #expect(entries.filter { $0.value.acknowledged != 1 }.isEmpty, "and acknowledged once")
      #expect(account.staleCount > 0, "consumers that dawdled were refused")
    }
  }

  /// Producers of several groups, in transactions of different lengths, and consumers that die or release.
  @Test func `the items of a group come one at a time in order`() async throws {
    try await Setting.run { setting in
      let account = Account()
      let (groupCount, perProducer) = (5, 40)
      let handled = Locked<[StoreKey: [Int64]]>([:])
      // The deliveries whose leases last, with the ends of these.
      let running = Locked<[StoreKey: (receipt: DeliveryReceipt, end: ContinuousClock.Instant)]>([:])
      let total = Atomic(0)
      try await PostgresQueueRaceTests.run(setting, count: 8) { index, queue in
        var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "group race \(index)")
        if index < 4 {
          for number in 0..<perProducer {
            let group = StoreKey("group \(Int.random(in: 0..<groupCount, using: &generator))")
            try await queue.enqueue(number, priority: .random(in: -1...1, using: &generator), group: group)
          }
          return
        }
        while total.load(ordering: .relaxed) < 4 * perProducer {
          let start = ContinuousClock.now
          let deliveries = try await queue.receive(max: 3, lease: .milliseconds(300))
          if deliveries.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
          for delivery in deliveries {
            guard let group = delivery.group else { continue }
            let isFree = running.withLock { running in
              defer { running[group] = (delivery.receipt, start + .milliseconds(300)) }
              return running[group].map { $0.end < .now } ?? true
            }
            if !isFree { account.noteProblem("two items of \(group) are leased") }
          }
          for delivery in deliveries {
            guard let group = delivery.group else { continue }
            switch Int.random(in: 0..<12, using: &generator) {
            case 0: continue
            case 1:
              running.withLock { if $0[group]?.receipt == delivery.receipt { $0[group] = nil } }
              _ = try await queue.release([delivery.receipt], after: .milliseconds(5))
            default:
              // Noted before, because another consumer may get the next item immediately. A stale receipt changes nothing.
              let own = running.withLock { running in
                running[group]?.receipt == delivery.receipt ? running.removeValue(forKey: group) : nil
              }
              let sequence = Int64(clamping: delivery.receipt.sequence)
              handled.withLock { $0[group, default: []].append(sequence) }
              if try await queue.acknowledge([delivery.receipt]).isEmpty {
                total.add(1, ordering: .relaxed)
              } else {
                handled.withLock { handled in
                  if let index = handled[group]?.lastIndex(of: sequence) { handled[group]?.remove(at: index) }
                }
                if let own { running.withLock { $0[group] = $0[group] ?? own } }
              }
            }
          }
        }
      }
      #expect(account.problems == [])
      let orders = handled.withLock { $0 }
      #expect(orders.values.reduce(0) { $0 + $1.count } == 4 * perProducer)
      for (group, order) in orders { #expect(order == order.sorted(), "\(group)") }
      #expect(try await setting.psql("SELECT count(*) FROM q WHERE state <> 4") == "0", "no lock of a group is left")
    }
  }
}
#endif
