#if LMDB && Postgres && SQLite
import Larder
import LarderCBOR
import LarderIndexes
import LarderStoreQueue
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/Transactions.md`, with that of `Bank.swift`.
@Suite struct TransactionsGuideTests {
  @Test func `a transfer is made once`() async throws {
    let bank = try await Bank.open(MemoryStore<[UInt8]>())
    let transfer = Transfer(source: "0", target: "1", amount: 70)
    #expect(try await bank.transfer(transfer, id: "t1") == .done)
    #expect(try await bank.transfer(transfer, id: "t1") == .alreadyDone)
    #expect(try await bank.transfer(transfer, id: "t2") == .insufficient)
    #expect(try await bank.transfer(Transfer(source: "0", target: "9", amount: 1), id: "t3") == .missingAccount)
    #expect(try await bank.outbox.receive(max: 9, lease: .seconds(60)).map(\.value.amount) == [70])
    #expect(try await bank.accounts.values(forKeys: ["0", "1"]).map { $0?.balance } == [30, 170])
  }

  @Test func `a job has its effect once`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    let orders = try await bytes.queue(of: Int.self, prefix: "orders/", codec: .cbor())
    let totals = bytes.typed(Int.self, prefix: "totals/", codec: .cbor())
    try await orders.enqueue(30)
    let delivery = try #require(try await orders.receive(lease: .seconds(60)))
    func process() async throws {
      // snippet.exactly-once
      try await bytes.transaction { tx in
        try await tx.acknowledge(delivery.receipt, in: orders)
        try await tx.update("revenue", in: totals) { $0 = ($0 ?? 0) + delivery.value }
        return .commit(())
      }
      // snippet.end
    }
    try await process()
    await expectStoreError(.staleReceipt) { try await process() }
    #expect(try await totals.value(forKey: "revenue") == 30)
    #expect(try await orders.counts() == QueueCounts())
  }
}
#endif
