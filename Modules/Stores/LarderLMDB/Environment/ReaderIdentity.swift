#if LMDB
/// On whose behalf something reads: a store, and the object that has the environment open for it.
struct ReaderIdentity: Hashable {
  /// The number of the lease.
  let lease: Int
  /// The number of the lease that it depends on, or its own.
  let root: Int
  /// Whether it is a backup, which may last and uses no named database.
  var isBackup = false

  /// Whether it may use any store of the environment.
  var usesAnyStore: Bool { lease == root && !isBackup }
}
#endif
