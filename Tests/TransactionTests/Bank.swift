#if LMDB && Postgres && SQLite
import Larder
import LarderCBOR
import LarderIndexes
import LarderStoreQueue
import LarderTesting
import Testing

// snippet.overview
struct Account: Codable, Sendable {
  var email: String
  var balance: Int
}

struct Transfer: Codable, Sendable {
  var source: String
  var target: String
  var amount: Int
}

enum TransferResult: Sendable {
  case done, alreadyDone, missingAccount, insufficient
}

struct Bank<Base: DataStore>: Sendable where Base.Value == [UInt8] {
  let store: Base
  let accounts: IndexedStore<Base, Account>  // with unique e-mail addresses
  let audit: TypedView<Base, Transfer>
  let outbox: StoreQueue<Base, Transfer>

  func transfer(_ transfer: Transfer, id: StoreKey) async throws -> TransferResult {
    try await store.transaction { tx in
      if try await tx.contains(id, in: audit) { return .discard(.alreadyDone) }
      let (sourceKey, targetKey) = (StoreKey(transfer.source), StoreKey(transfer.target))
      guard var source = try await tx.value(forKey: sourceKey, in: accounts),
        var target = try await tx.value(forKey: targetKey, in: accounts)
      else { return .discard(.missingAccount) }
      guard source.balance >= transfer.amount else { return .discard(.insufficient) }
      source.balance -= transfer.amount
      target.balance += transfer.amount
      try await tx.setValue(source, forKey: sourceKey, in: accounts)
      try await tx.setValue(target, forKey: targetKey, in: accounts)
      try await tx.setValue(transfer, forKey: id, in: audit)
      try await tx.enqueue(transfer, in: outbox)
      return .commit(.done)
    }
  }
}
// snippet.end

extension Bank {
  static var accountCount: Int { 6 }
  static var total: Int { 100 * accountCount }

  static func key(_ number: Int) -> StoreKey { StoreKey("\(number)") }

  /// Opens the bank, and creates its accounts if they are missing.
  static func open(_ store: Base) async throws -> Bank {
    let byEmail = StoreIndex<Account>("email", isUnique: true) { _, account in [[account.email]] }
    let bank = Bank(
      store: store,
      accounts: try await store.indexed(
        by: [byEmail], codec: .cbor(Account.self), valuePrefix: "account/", indexPrefix: "index/"),
      audit: store.typed(Transfer.self, prefix: "audit/", codec: .cbor()),
      outbox: try await store.queue(of: Transfer.self, prefix: "outbox/", codec: .cbor()))
    try await store.transaction { tx in
      for number in 0..<accountCount {
        guard try await !tx.contains(key(number), in: bank.accounts) else { return .discard(()) }
        let account = Account(email: "\(number)@example.org", balance: 100)
        try await tx.setValue(account, forKey: key(number), in: bank.accounts)
      }
      return .commit(())
    }
    return bank
  }

  /// Transfers amounts and changes addresses, and reads all accounts in between.
  ///
  /// - Parameter isOver: A closure that returns whether to stop.
  func work(seed: UInt64, until isOver: () -> Bool) async throws {
    var generator = SeededGenerator(seed: seed)
    while !isOver() {
      switch Int.random(in: 0..<10, using: &generator) {
      case 0..<6:
        let source = Int.random(in: 0..<Self.accountCount, using: &generator)
        let target = (source + Int.random(in: 1..<Self.accountCount, using: &generator)) % Self.accountCount
        // Some ids occur twice.
        let id = StoreKey("\(seed)-\(UInt32.random(in: 0..<10_000, using: &generator))")
        let amount = Int.random(in: 0..<60, using: &generator)
        _ = try await transfer(
          Transfer(source: "\(source)", target: "\(target)", amount: amount), id: id)
      case 6..<8:
        let email = "\(Int.random(in: 0..<8, using: &generator))@example.org"
        let key = Self.key(Int.random(in: 0..<Self.accountCount, using: &generator))
        do {
          try await store.transaction { tx in .commit(try await tx.update(key, in: accounts) { $0?.email = email }) }
        } catch StoreError.Code.notUnique {
          // Another account has the address.
        }
      default: try await checkSum()
      }
    }
  }

  /// Reads all accounts one by one, and requires that they are those of one moment.
  func checkSum() async throws {
    let balances = try await store.transaction { tx in
      var balances: [Int] = []
      for number in 0..<Self.accountCount {
        balances.append(try await tx.value(forKey: Self.key(number), in: accounts)?.balance ?? 0)
      }
      return .commit(balances)
    }
    #expect(balances.reduce(0, +) == Self.total, "\(balances)")
    #expect(balances.allSatisfy { $0 >= 0 })
  }

  /// Requires that balances, audit, outbox and index belong together.
  func check() async throws {
    try await checkSum()
    let transfers = try await audit.entries(in: .all, limit: .max, order: .ascending).map(\.value)
    #expect(try await outbox.counts().waiting == transfers.count)
    var balances = Array(repeating: 100, count: Self.accountCount)
    for transfer in transfers {
      balances[try #require(Int(transfer.source))] -= transfer.amount
      balances[try #require(Int(transfer.target))] += transfer.amount
    }
    let accounts = try await accounts.entries(in: .all, limit: .max, order: .ascending)
    #expect(accounts.map(\.value.balance) == balances)
    #expect(Set(accounts.map(\.value.email)).count == Self.accountCount)
    #expect(try await self.accounts.verifyIndexes().findings.isEmpty)
  }
}
#endif
