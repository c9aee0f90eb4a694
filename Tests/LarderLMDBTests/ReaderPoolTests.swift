#if LMDB
import CLMDB
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderLMDB

@Suite struct ReaderPoolTests {
  @Test func `the cached transactions are few compared to the table`() {
    for slotCount in [1, 8, 16, 126, 1022] {
      for processorCount in [1, 2, 8, 200] {
        let shardCount = ReaderPool.shardCount(slotCount: slotCount, processorCount: processorCount)
        #expect(shardCount >= 1 && shardCount <= 32 && shardCount <= 8 * processorCount)
        #expect(shardCount == 1 || shardCount * ReaderPool.idleCapacity <= slotCount / 8)
      }
    }
    #expect(ReaderPool.shardCount(slotCount: 1022, processorCount: 8) == 32)
    #expect(ReaderPool.shardCount(slotCount: 126, processorCount: 8) == 7)
  }

  /// Threads come and go, and each leaves a transaction in its shard.
  @Test func `idle transactions of other shards are released when slots run out`() async throws {
    let folder = try TemporaryFolder()
    var created: OpaquePointer?
    try LMDBError.check(mdb_env_create(&created))
    let pointer = try #require(created)
    defer { mdb_env_close(pointer) }
    try LMDBError.check(mdb_env_set_maxreaders(pointer, 2))
    try LMDBError.check(mdb_env_open(pointer, folder.path, UInt32(MDB_NOTLS), 0o600))
    // Claims a large table, so that there are many shards.
    let readers = ReaderPool(environment: LMDBEnvironmentPointer(pointer: pointer), slotCount: 1022)
    let owner = ObjectIdentifier(readers)
    let arrived = Tally()
    let turn = Locked(())
    try await Threads.run(8) { _ in
      arrived.add()
      // All closures start together, so that each has its own thread, but they read one after another.
      while arrived.count < 8 { sched_yield() }
      try turn.withLock { _ in readers.end(try readers.begin(ActiveRead(handle: owner, root: owner))) }
    }
    readers.close()
  }
}
#endif
