import Larder
import LarderBatching
import LarderCBOR
import LarderCache
import LarderLMDB

/// The store of the feed: LMDB with group commit for its writers and a cache for its readers.
typealias FeedStack = CachedStore<BatchingStore<LMDBStore<Transaction>>>

extension FeedStack {
  /// Opens the feed's store.
  ///
  /// - Parameters:
  ///   - path: The folder of the LMDB environment. It is created if it is missing.
  ///   - createsIfMissing: A Boolean value that indicates whether a missing store is created.
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
