import Larder

/// The transactions of all accounts in a store.
///
/// Pages show the newest first.
///
/// The speed is due to the keys. The transactions of an account are adjacent and sorted by date, so a page is a walk
/// over fifty neighbors from its newest end, however many transactions come before and after them.
struct Feed<Store: DataStore<Transaction>> {
  let store: Store

  /// Returns the pages of an account, newest first.
  func pages(ofAccount account: Int, size: Int) -> StorePages<Transaction> {
    store.pages(of: Transaction.range(ofAccount: account), size: size, order: .descending)
  }

  /// Returns a reader of an account's pages, which loads the next page ahead.
  ///
  /// - Parameters:
  ///   - account: The number of the account.
  ///   - pageSize: The number of transactions on a page.
  ///   - start: The start of the first page. Defaults to the newest transaction.
  func reader(ofAccount account: Int, pageSize: Int, from start: PageStart = .beginning) -> FeedReader {
    FeedReader(pages: pages(ofAccount: account, size: pageSize), start: start)
  }

  /// Returns all details of one transaction, for the screen that shows it.
  func transaction(forKey key: StoreKey) async throws -> Transaction? {
    try await store.value(forKey: key)
  }

  /// Adds a transaction, which is durable when this method returns.
  func add(_ transaction: Transaction) async throws {
    try await store.setValue(transaction, forKey: transaction.key)
  }

  /// Adds many transactions, in large batches.
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
