#if LMDB
import CLMDB
import Foundation
import Synchronization

/// The read transactions of an environment: kept for reuse, spread over shards so that threads do not meet, and kept out
/// while the memory map is replaced.
///
/// A transaction that is kept has a slot in the table of readers, which all processes share. A shard keeps two, and the
/// number of shards is bounded by the processors and by the size of the table: a process keeps an eighth of it at most.
///
/// A read costs two uncontended locks beside what LMDB does. Whoever needs reads to be over waits on one condition, which
/// reads touch only while someone waits.
final class ReaderPool: Sendable {
  /// A read that goes on.
  struct Reader {
    let transaction: ReadTransaction
    fileprivate let read: ReaderShardState.ActiveRead
    fileprivate let shard: ReaderShard
  }

  /// Whether reads may begin.
  private enum Gate {
    case open
    /// Not now: the memory map is being replaced.
    case replacing
    /// Never again: there is no memory map, or the environment is closed.
    case shut(LMDBError)
  }

  /// Asked for once, because on Linux files are read for it.
  private static let processorCount = ProcessInfo.processInfo.activeProcessorCount

  private let environment: LMDBEnvironmentPointer
  /// The logarithm of the number of shards.
  private let shardBits: UInt
  private let shards: [ReaderShard]
  private let gate = Mutex(Gate.open)
  /// Signalled when the gate changes, and when a read ends that someone waits for.
  private let condition = NSCondition()

  /// Creates a pool that keeps nothing yet.
  ///
  /// - Parameters:
  ///   - environment: The environment.
  ///   - slotCount: The size of its table of readers.
  init(environment: LMDBEnvironmentPointer, slotCount: Int) {
    self.environment = environment
    shardBits = ReaderPool.shardBits(slotCount: slotCount, processorCount: ReaderPool.processorCount)
    shards = (0..<(1 << shardBits)).map { _ in ReaderShard() }
  }

  /// Returns the logarithm of the number of shards.
  static func shardBits(slotCount: Int, processorCount: Int) -> UInt {
    let most = max(1, min(32, 8 * processorCount, slotCount / 16))
    return UInt(Int.bitWidth - 1 - most.leadingZeroBitCount)
  }

  // MARK: Reads

  /// Begins a read of the latest snapshot.
  ///
  /// - Parameter reader: On whose behalf.
  /// - Throws: `LMDBError`; with `MDB_MAP_RESIZED` where another process has written beyond the memory map.
  func begin(for reader: ReaderIdentity) throws(LMDBError) -> Reader {
    let thread = ThreadIdentity.current
    let read = ReaderShardState.ActiveRead(reader: reader, thread: thread)
    let shard = shards[thread.hash(bitCount: shardBits)]
    var admission = shard.state.withLock { $0.isGated ? nil : $0.admit(read) }
    while admission == nil {
      // A read within a read passes the gate: it is never open before the outer read has ended.
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

  /// Whether a thread is inside a read.
  func isReading(_ thread: ThreadIdentity) -> Bool {
    shards.contains { $0.state.withLock { $0.active.contains { $0.thread == thread } } }
  }

  /// Returns whether a read goes on that a closure picks.
  func isReading(where isPicked: (ReaderIdentity) -> Bool) -> Bool {
    shards.contains { $0.state.withLock { $0.active.contains { isPicked($0.reader) } } }
  }

  private func note(
    end read: ReaderShardState.ActiveRead, in shard: ReaderShard, returning transaction: ReadTransaction?
  ) {
    switch shard.state.withLock({ $0.end(read, returning: transaction) }) {
    case .ended(let isWatched):
      if isWatched { broadcast() }
    case .isSurplus:
      // Before the read has ended: a caller that waits for that may close the environment.
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
      // Slots of this process that no read needs, and those of processes that were killed while they read.
      abortIdleTransactions()
      try clearStaleSlots()
      code = mdb_txn_begin(environment.pointer, nil, UInt32(MDB_RDONLY), &pointer)
    }
    try LMDBError.check(code)
    guard let pointer else { throw LMDBError(code: MDB_PANIC) }
    return ReadTransaction(pointer: pointer)
  }

  /// Gives back the slots that no read of this process needs now.
  func abortIdleTransactions() {
    for transaction in shards.flatMap({ $0.state.withLock { $0.takeIdle() } }) {
      mdb_txn_abort(transaction.pointer)
    }
  }

  /// Frees the slots that killed processes have left in the table of readers.
  ///
  /// - Returns: How many there were.
  @discardableResult func clearStaleSlots() throws(LMDBError) -> Int {
    var count: Int32 = 0
    try LMDBError.check(mdb_reader_check(environment.pointer, &count))
    return Int(count)
  }

  // MARK: Waiting for reads

  /// Waits until the reads that a closure picks have ended; the calling thread blocks.
  func waitForReads(where isAwaited: (ReaderIdentity) -> Bool) {
    waitForActiveReads { isAwaited($0.reader) }
  }

  /// Runs a closure while no read goes on and none can begin; the calling thread blocks until then.
  ///
  /// It must not be called by a thread that is inside a read, nor by two threads at a time.
  ///
  /// - Throws: What `body` throws.
  func exclusively<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
    // Backups are awaited while reads go on: they may last, and reads would have to wait for them too.
    waitForReads { $0.isBackup }
    shutGate(.replacing)
    waitForActiveReads { _ in true }
    defer { openGate() }
    try body()
  }

  /// Makes every later read throw an error: there is no memory map any more.
  ///
  /// To be called inside `exclusively(_:)`.
  func shut(_ error: LMDBError) {
    shutGate(.shut(error))
  }

  /// Throws where reads cannot begin any more.
  func checkGate() throws(LMDBError) {
    if case .shut(let error) = gate.withLock({ $0 }) { throw error }
  }

  /// Waits for reads to end, lets none begin any more, and ends the transactions that are kept.
  func close() {
    shutGate(.shut(LMDBError(code: MDB_BAD_TXN)))
    waitForActiveReads { _ in true }
    abortIdleTransactions()
  }

  private func waitForActiveReads(_ isAwaited: (ReaderShardState.ActiveRead) -> Bool) {
    for shard in shards { shard.state.withLock { $0.watcherCount += 1 } }
    condition.lock()
    while shards.contains(where: { $0.state.withLock { $0.active.contains(where: isAwaited) } }) {
      condition.wait()
    }
    condition.unlock()
    for shard in shards { shard.state.withLock { $0.watcherCount -= 1 } }
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
    // What was shut stays shut.
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
#endif
