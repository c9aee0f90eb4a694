#if LMDB
import Synchronization

/// A part of a `ReaderPool`, which the threads that use it hardly share with others.
final class ReaderShard: Sendable {
  let state = Mutex(ReaderShardState())

  // Keeps the lock of one shard out of the cache lines of the next: a line has 64 bytes, and they are fetched in pairs.
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
}
#endif
