import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderLMDB

/// The store of the feed: LMDB, in front of it group commit for those who add and a cache for those who read.
typealias FeedStack = CachedStore<BatchingStore<LMDBStore<Transaction>>>

extension FeedStack {
  /// Opens the feed's store.
  ///
  /// - Parameters:
  ///   - path: The folder of the LMDB environment; it is made where it is missing.
  ///   - createsIfMissing: Whether a missing store is made.
  static func open(path: String, createsIfMissing: Bool = true) async throws -> FeedStack {
    try await LMDBStore(
      path: path, name: "transactions", codec: .cbor(Transaction.self), createsIfMissing: createsIfMissing
    )
    .batched()
    .cached()
  }

  /// The store behind the cache and the group commit.
  var backend: LMDBStore<Transaction> { base.base }
}
