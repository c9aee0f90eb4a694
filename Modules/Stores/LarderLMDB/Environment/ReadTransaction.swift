#if LMDB
import CLMDB

/// A read transaction of LMDB, kept for the next reader.
///
/// Between uses it is reset: it pins no snapshot and keeps its slot in the table of readers, so that renewing it costs
/// little.
struct ReadTransaction: @unchecked Sendable {
  // Proof for @unchecked: the environment is opened with MDB_NOTLS, which lets a read transaction pass between threads
  // where only one uses it at a time. `ReaderPool` hands it to one reader at a time, under a lock.
  let pointer: OpaquePointer
}
#endif
