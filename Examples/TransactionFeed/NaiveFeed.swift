import Larder

/// A common first design of a feed: one array with the keys of all transactions, under one key.
///
/// It shows what sorted keys save. A page reads the whole array and then each of its rows. An addition reads and writes
/// the whole array. The transactions themselves are the same as those of the ``Feed``.
struct NaiveFeed<Index: DataStore<[[UInt8]]>, Transactions: DataStore<Transaction>> {
  private let indexKey: StoreKey = "all transactions"

  let index: Index
  let transactions: Transactions

  /// Writes the array: account by account, the newest transaction of each first.
  func buildIndex(accountCount: Int) async throws {
    var keys: [[UInt8]] = []
    for account in 1...accountCount {
      for try await key in transactions.keys(in: Transaction.range(ofAccount: account), order: .descending) {
        keys.append(key.bytes)
      }
    }
    try await index.setValue(keys, forKey: indexKey)
  }

  /// Reads a page of an account, newest first.
  ///
  /// - Parameters:
  ///   - number: The number of the page, from 0.
  ///   - account: The number of the account.
  ///   - size: The number of transactions on a page.
  func page(_ number: Int, ofAccount account: Int, size: Int) async throws -> [Transaction] {
    let keys = try await index.value(forKey: indexKey) ?? []
    let range = Transaction.range(ofAccount: account)
    let keysOfPage = keys.lazy.map { StoreKey(bytes: $0) }
      .drop { !range.contains($0) }.prefix { range.contains($0) }
      .dropFirst(number * size).prefix(size)
    var page: [Transaction] = []
    for key in keysOfPage {
      if let transaction = try await transactions.value(forKey: key) {
        page.append(transaction)
      }
    }
    return page
  }

  /// Adds a transaction before all others of its account.
  func add(_ transaction: Transaction) async throws {
    let key = transaction.key
    let range = Transaction.range(ofAccount: transaction.account)
    try await transactions.setValue(transaction, forKey: key)
    try await index.update(indexKey) { keys in
      var all = keys ?? []
      let place = all.firstIndex { range.contains(StoreKey(bytes: $0)) } ?? all.endIndex
      all.insert(key.bytes, at: place)
      keys = all
    }
  }
}
