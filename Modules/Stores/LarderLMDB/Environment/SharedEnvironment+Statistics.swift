#if LMDB
import CLMDB
import Larder

extension SharedEnvironment {
  /// The database of free pages.
  ///
  /// Its keys are numbers of transactions, its values a count of pages and their numbers. `FREE_DBI` in `mdb.c` of LMDB 0.9.
  private static let freePages: MDB_dbi = 0

  /// Measures the environment in a read transaction.
  func statistics(in transaction: OpaquePointer) throws -> LMDBStatistics {
    var statistics = MDB_stat()
    try LMDBError.check(mdb_env_stat(pointer.pointer, &statistics))
    var information = MDB_envinfo()
    try LMDBError.check(mdb_env_info(pointer.pointer, &information))
    var freePageCount = 0
    let free = RawDatabase(transaction: transaction, identifier: SharedEnvironment.freePages)
    var scan = try free.scan(.all)
    while let (_, value) = try scan.next() {
      if value.count >= MemoryLayout<Int>.size { freePageCount += value.loadUnaligned(as: Int.self) }
    }
    return LMDBStatistics(
      pageSize: Int(statistics.ms_psize), mapSize: information.me_mapsize, pageCount: information.me_last_pgno + 1,
      freePageCount: freePageCount, lastTransaction: information.me_last_txnid,
      readerCount: Int(information.me_numreaders), maximumReaderCount: Int(information.me_maxreaders))
  }
}
#endif
