#if LMDB
/// On whose behalf something reads: a store, and the object that has the environment open for it.
struct ReaderIdentity: Hashable {
  /// The number of the lease.
  let lease: Int
  /// The number of the lease that it depends on, or its own.
  let root: Int
}
#endif
