#if LMDB
/// The library's handle on an environment.
struct LMDBEnvironmentPointer: @unchecked Sendable {
  // Proof for @unchecked: an open MDB_env may be used from any thread ("lmdb.h": only transactions and cursors belong to
  // threads). Closing it and replacing its map, which may not, are done by one thread while `ReaderPool` keeps all reads
  // out and the lock of the writer is held.
  let pointer: OpaquePointer
}
#endif
