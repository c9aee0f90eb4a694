import Larder
import LarderTesting
import TestSupport
import Testing

/// A guest's layer that takes part in transactions.
@Suite struct TransactionParticipantTests {
  private struct Oops: Error {}

  private let store: FaultyStore<MemoryStore<[UInt8]>>
  private let accounts: TypedView<FaultyStore<MemoryStore<[UInt8]>>, Int>

  init() async throws {
    store = MemoryStore<[UInt8]>().faulty()
    accounts = store.typed(Int.self, prefix: "account/", codec: .json())
    try await accounts.setValue(100, forKey: "a")
  }

  /// A guest's layer: a log that counts its events in the same commit.
  private struct EventLog: TransactionParticipant {
    typealias Base = FaultyStore<MemoryStore<[UInt8]>>

    struct TransactionPlan: Sendable { var events: [UInt8] = [] }

    let base: Base
    let reported = Shared()

    final class Shared: Sendable { let events = Locked<[UInt8]>([]) }

    var prefixes: [StoreKey] { ["log/"] }

    func makeTransactionPlan() -> TransactionPlan { TransactionPlan() }

    func finish(
      _ plan: TransactionPlan, in transaction: StoreTransaction<Base>
    ) async throws -> ConditionalCommit<any Error> {
      var commit = ConditionalCommit<any Error>()
      guard !plan.events.isEmpty else { return commit }
      if plan.events.contains(9) { try await append(1, in: transaction) }
      commit.computeValue(forKey: "log/events") { stored in
        plan.events.contains(0) ? .refuse(Oops()) : .set((stored("log/events") ?? []) + plan.events)
      }
      return commit
    }

    func transactionDidCommit(_ plan: TransactionPlan) { reported.events.withLock { $0 += plan.events } }

    func append(_ event: UInt8, in transaction: StoreTransaction<Base>) async throws {
      try await transaction.withPlan(of: self) { $0.events.append(event) }
    }
  }

  @Test func `a guest takes part`() async throws {
    let log = EventLog(base: store)
    var attempts = 0
    try await store.transaction { tx in
      attempts += 1
      try await log.append(1, in: tx)
      let value = try await tx.value(forKey: "a", in: accounts)
      if attempts == 1 { try await accounts.setValue(3, forKey: "a") }
      try await log.append(2, in: tx)
      return .commit(value)
    }
    #expect(attempts == 2)
    #expect(try await store.value(forKey: "log/events") == [1, 2])
    #expect(log.reported.events.withLock { $0 } == [1, 2])
    try await store.transaction { tx in .discard(try await log.append(3, in: tx)) }
    await #expect(throws: Oops.self) {
      try await store.transaction { tx in
        try await tx.setValue(9, forKey: "a", in: accounts)
        return .commit(try await log.append(0, in: tx))
      }
    }
    #expect(try await store.value(forKey: "log/events") == [1, 2])
    #expect(try await accounts.value(forKey: "a") == 3)
    #expect(log.reported.events.withLock { $0 } == [1, 2])
  }

  @Test func `a participant that uses itself after its end is refused`() async throws {
    let log = EventLog(base: store)
    await expectStoreError(.invalidArgument) {
      try await store.transaction { tx in .commit(try await log.append(9, in: tx)) }
    }
  }

  @Test func `a plan is as before if its change throws`() async throws {
    let log = EventLog(base: store)
    try await store.transaction { tx in
      try await log.append(1, in: tx)
      await #expect(throws: Oops.self) {
        try await tx.withPlan(of: log) { plan in
          plan.events = [7]
          throw Oops()
        }
      }
      await expectStoreError(.invalidArgument) {
        try await tx.withPlan(of: log) { _ in try await log.append(2, in: tx) }
      }
      return .commit(())
    }
    #expect(try await store.value(forKey: "log/events") == [1])
  }
}
