import Larder

/// The transactions of all accounts in a store, newest first for whoever reads.
///
/// All that makes it fast lies in the key: an account's transactions stand side by side, sorted by date, so a page is a
/// walk over fifty neighbours from its newest end, however many there are before and behind them.
struct Feed<Store: DataStore<Transaction>> {
  let store: Store

  /// The pages of an account, newest first.
  func pages(ofAccount account: Int, size: Int) -> StorePages<Store> {
    store.pages(of: Transaction.range(ofAccount: account), size: size, order: .descending)
  }

  /// A reader of an account's pages, who finds the next one loaded already.
  ///
  /// - Parameters:
  ///   - account: The number of the account.
  ///   - pageSize: How many transactions a page has.
  ///   - start: Where the first page begins; at the newest transaction unless given.
  func reader(ofAccount account: Int, pageSize: Int, from start: PageStart = .beginning) -> FeedReader<Store> {
    FeedReader(pages: pages(ofAccount: account, size: pageSize), start: start)
  }

  /// All about one transaction, for the screen that shows it alone.
  func transaction(forKey key: StoreKey) async throws -> Transaction? {
    try await store.value(forKey: key)
  }

  /// Adds a transaction; it is there for good when this returns.
  func add(_ transaction: Transaction) async throws {
    try await store.setValue(transaction, forKey: transaction.key)
  }

  /// Adds many transactions, a large batch at a time.
  func add(_ transactions: some Sequence<Transaction>) async throws {
    var batch = ChangeBatch<Transaction>()
    for transaction in transactions {
      batch.setValue(transaction, forKey: transaction.key)
      if batch.count == 10_000 {
        try await store.apply(batch)
        batch = ChangeBatch()
      }
    }
    try await store.apply(batch)
  }
}
