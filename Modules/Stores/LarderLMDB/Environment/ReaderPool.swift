#if LMDB
import CLMDB
import Foundation
import Synchronization

/// The pool of an environment's read transactions.
///
/// The pool keeps transactions for reuse. It spreads them over shards to reduce contention between threads, and it
/// blocks reads while the memory map is replaced.
///
/// Each idle transaction has a slot in the reader table, which all processes share. A shard keeps up to two. The number
/// of shards is bounded by the number of processors and by the size of the table, so that a process keeps at most an
/// eighth of the table.
///
/// A read costs two uncontended locks in addition to LMDB's own work. A thread that needs reads to end waits on a
/// single condition, which reads signal only if a thread is waiting.
final class ReaderPool: Sendable {
  /// An active read.
  struct Reader {
    let transaction: ReadTransaction
    fileprivate let read: ReaderShardState.ActiveRead
    fileprivate let shard: ReaderShard
  }

  /// Whether reads can begin.
  private enum Gate {
    case open
    /// Reads must wait: the memory map is being replaced.
    case replacing
    /// Reads fail permanently: there is no memory map, or the environment is closed.
    case shut(LMDBError)
  }

  /// Cached because on Linux the lookup reads files.
  private static let processorCount = ProcessInfo.processInfo.activeProcessorCount

  private let environment: LMDBEnvironmentPointer
  /// The base-2 logarithm of the number of shards.
  private let shardBits: UInt
  private let shards: [ReaderShard]
  private let gate = Mutex(Gate.open)
  /// Signalled when the gate changes, and when a read ends while a thread is waiting.
  private let condition = NSCondition()

  /// Creates an empty pool.
  ///
  /// - Parameters:
  ///   - environment: The environment.
  ///   - slotCount: The number of slots in its reader table.
  init(environment: LMDBEnvironmentPointer, slotCount: Int) {
    self.environment = environment
    shardBits = ReaderPool.shardBits(slotCount: slotCount, processorCount: ReaderPool.processorCount)
    shards = (0..<(1 << shardBits)).map { _ in ReaderShard() }
  }

  /// Returns the base-2 logarithm of the number of shards.
  static func shardBits(slotCount: Int, processorCount: Int) -> UInt {
    let most = max(1, min(32, 8 * processorCount, slotCount / 16))
    return UInt(Int.bitWidth - 1 - most.leadingZeroBitCount)
  }

  // MARK: Reads

  /// Begins a read of the latest snapshot.
  ///
  /// - Parameter reader: The identity of the reader.
  /// - Throws: `LMDBError`, with `MDB_MAP_RESIZED` if another process has written beyond the memory map.
  func begin(for reader: ReaderIdentity) throws(LMDBError) -> Reader {
    let thread = ThreadIdentity.current
    let read = ReaderShardState.ActiveRead(reader: reader, thread: thread)
    let shard = shards[thread.hash(bitCount: shardBits)]
    var admission = shard.state.withLock { $0.isGated ? nil : $0.admit(read) }
    while admission == nil {
      // A nested read passes the gate, which cannot open before the outer read has ended.
      let mayPass = isReading(thread)
      if !mayPass { try waitForGate() }
      admission = shard.state.withLock { $0.isGated && !mayPass ? nil : $0.admit(read) }
    }
    do {
      switch admission {
      case .renew(let transaction):
        try renew(transaction)
        return Reader(transaction: transaction, read: read, shard: shard)
      case .begin, nil:
        return Reader(transaction: try beginTransaction(), read: read, shard: shard)
      }
    } catch {
      note(end: read, in: shard, returning: nil)
      throw error
    }
  }

  /// Ends a read.
  func end(_ reader: Reader) {
    mdb_txn_reset(reader.transaction.pointer)
    note(end: reader.read, in: reader.shard, returning: reader.transaction)
  }

  /// Returns whether a thread is inside a read.
  func isReading(_ thread: ThreadIdentity) -> Bool {
    shards.contains { $0.state.withLock { $0.active.contains { $0.thread == thread } } }
  }

  /// Returns whether a read is active whose reader satisfies a predicate.
  func isReading(where isPicked: (ReaderIdentity) -> Bool) -> Bool {
    shards.contains { $0.state.withLock { $0.active.contains { isPicked($0.reader) } } }
  }

  private func note(
    end read: ReaderShardState.ActiveRead, in shard: ReaderShard, returning transaction: ReadTransaction?
  ) {
    switch shard.state.withLock({ $0.end(read, returning: transaction) }) {
    case .ended(let hasWaiters):
      if hasWaiters { broadcast() }
    case .isSurplus:
      // Aborted before the read counts as ended, because a thread that waits for its end may close the environment.
      if let transaction { mdb_txn_abort(transaction.pointer) }
      note(end: read, in: shard, returning: nil)
    }
  }

  private func renew(_ transaction: ReadTransaction) throws(LMDBError) {
    do {
      try LMDBError.check(mdb_txn_renew(transaction.pointer))
    } catch {
      mdb_txn_abort(transaction.pointer)
      throw error
    }
  }

  private func beginTransaction() throws(LMDBError) -> ReadTransaction {
    var pointer: OpaquePointer?
    var code = mdb_txn_begin(environment.pointer, nil, UInt32(MDB_RDONLY), &pointer)
    if code == MDB_READERS_FULL {
      // Frees this process's idle slots and the slots of processes that were killed during a read.
      abortIdleTransactions()
      try clearStaleSlots()
      code = mdb_txn_begin(environment.pointer, nil, UInt32(MDB_RDONLY), &pointer)
    }
    try LMDBError.check(code)
    guard let pointer else { throw LMDBError(code: MDB_PANIC) }
    return ReadTransaction(pointer: pointer)
  }

  /// Aborts the idle transactions, which frees their slots.
  func abortIdleTransactions() {
    for transaction in shards.flatMap({ $0.state.withLock { $0.takeIdle() } }) {
      mdb_txn_abort(transaction.pointer)
    }
  }

  /// Frees the reader slots of processes that were killed.
  ///
  /// - Returns: The number of slots freed.
  @discardableResult func clearStaleSlots() throws(LMDBError) -> Int {
    var count: Int32 = 0
    try LMDBError.check(mdb_reader_check(environment.pointer, &count))
    return Int(count)
  }

  // MARK: Waiting for reads

  /// Waits until all reads whose reader satisfies a predicate have ended.
  ///
  /// Blocks the calling thread.
  func waitForReads(where isAwaited: (ReaderIdentity) -> Bool) {
    waitForActiveReads { isAwaited($0.reader) }
  }

  /// Runs a closure when all reads have ended, and prevents new reads while it runs.
  ///
  /// Blocks the calling thread.
  ///
  /// A thread must not call this inside a read, and only one thread may call it at a time.
  ///
  /// - Throws: The error that `body` throws.
  func exclusively<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    // Waits for backups before blocking other reads, because a backup may take long.
    waitForReads { $0.isBackup }
    shutGate(.replacing)
    waitForActiveReads { _ in true }
    defer { openGate() }
    try body()
  }

  /// Closes the gate permanently so that later reads throw an error, because there is no memory map any more.
  ///
  /// Call this only inside `exclusively(_:)`.
  func shut(_ error: LMDBError) {
    shutGate(.shut(error))
  }

  /// Throws an error if reads can no longer begin.
  func checkGate() throws(LMDBError) {
    if case .shut(let error) = gate.withLock({ $0 }) { throw error }
  }

  /// Prevents new reads, waits for active ones to end, and aborts the idle transactions.
  func close() {
    shutGate(.shut(LMDBError(code: MDB_BAD_TXN)))
    waitForActiveReads { _ in true }
    abortIdleTransactions()
  }

  private func waitForActiveReads(_ isAwaited: (ReaderShardState.ActiveRead) -> Bool) {
    for shard in shards { shard.state.withLock { $0.waiterCount += 1 } }
    condition.lock()
    while shards.contains(where: { $0.state.withLock { $0.active.contains(where: isAwaited) } }) {
      condition.wait()
    }
    condition.unlock()
    for shard in shards { shard.state.withLock { $0.waiterCount -= 1 } }
  }

  private func waitForGate() throws(LMDBError) {
    condition.lock()
    defer { condition.unlock() }
    while true {
      switch gate.withLock({ $0 }) {
      case .open: return
      case .replacing: condition.wait()
      case .shut(let error): throw error
      }
    }
  }

  private func shutGate(_ value: Gate) {
    gate.withLock { $0 = value }
    for shard in shards { shard.state.withLock { $0.isGated = true } }
    broadcast()
  }

  private func openGate() {
    // A gate that was shut stays shut.
    guard case .replacing = gate.withLock({ $0 }) else { return }
    for shard in shards { shard.state.withLock { $0.isGated = false } }
    gate.withLock { $0 = .open }
    broadcast()
  }

  private func broadcast() {
    condition.lock()
    condition.broadcast()
    condition.unlock()
  }
}

/// A part of a `ReaderPool`, used by few threads.
final class ReaderShard: Sendable {
  let state = Mutex(ReaderShardState())

  // Keeps the locks of neighboring shards in different cache lines: a line has 64 bytes, and lines are fetched in
  // pairs.
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
}
#endif
