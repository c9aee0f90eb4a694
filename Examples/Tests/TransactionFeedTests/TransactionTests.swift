import ExampleSupport
import Foundation
import Larder
import LarderCBOR
import Testing

@testable import TransactionFeed

@Suite("Transactions and their generator")
struct TransactionTests {
  @Test func `The same seed makes the same transactions, and another seed makes others`() {
    let history = Array(TransactionHistory(count: 50, accountCount: 3, seed: 1))
    #expect(history == Array(TransactionHistory(count: 50, accountCount: 3, seed: 1)))
    #expect(Set(history).isDisjoint(with: TransactionHistory(count: 50, accountCount: 3, seed: 2)))
  }

  @Test(arguments: [1, 2, 7, 1000])
  func `A history is sorted by account and date, shared evenly, and ends before today`(count: Int) {
    let history = Array(TransactionHistory(count: count, accountCount: 2, seed: 1))
    #expect(history.count == count)
    #expect(zip(history, history.dropFirst()).allSatisfy { ($0.account, $0.date) <= ($1.account, $1.date) })
    let counts = Dictionary(grouping: history, by: \.account).mapValues(\.count)
    #expect(Set(counts.keys).isSubset(of: [1, 2]))
    #expect((counts[1] ?? 0) - (counts[2] ?? 0) == count % 2)
    #expect(history.allSatisfy { $0.date < .now })
  }

  @Test func `Direct encoding writes the same bytes as Codable`() throws {
    let transaction = try #require(TransactionHistory(count: 1, accountCount: 1, seed: 1).first { _ in true })
    var bytes: [UInt8] = []
    try CBORCodec<Transaction>.cbor().encode(transaction, into: &bytes)
    #expect(try CBORCodec<Transaction>.cbor().decode(bytes.span.bytes) == transaction)

    let plain = PlainTransaction(
      id: transaction.id, account: transaction.account, date: transaction.date, amount: transaction.amount,
      counterparty: transaction.counterparty, purpose: transaction.purpose)
    var plainBytes: [UInt8] = []
    try CBORCodec<PlainTransaction>.cbor().encode(plain, into: &plainBytes)
    #expect(bytes == plainBytes)
  }

  /// A transaction that is encoded by `Codable`.
  private struct PlainTransaction: Codable {
    var id: UUID
    var account: Int
    var date: Date
    var amount: Int64
    var counterparty: String
    var purpose: String
  }

  @Test func `Random numbers are those of SplitMix64`() {
    var generator = SplitMix64(seed: 1_234_567)
    #expect(generator.next() == 6_457_827_717_110_365_317)
    #expect(generator.next() == 3_203_168_211_198_807_973)
    let identifier = generator.nextUUID().uuidString
    #expect(identifier.dropFirst(14).first == "4")
  }

  @Test("Visitors prefer few accounts and the top of a page")
  func habits() {
    var habits = VisitHabits(accountCount: 10, seed: 1)
    let accounts = (0..<1000).map { _ in habits.account() }
    #expect(Set(accounts) == Set(1...10))
    #expect(accounts.count { $0 <= 5 } > 600)
    let rows = habits.rows(1000, of: 50)
    #expect(rows.count == 1000 && rows.allSatisfy { (0..<50).contains($0) })
    #expect(rows.count { $0 < 25 } > 600)
    #expect(habits.rows(5, of: 0).isEmpty)
  }
}
