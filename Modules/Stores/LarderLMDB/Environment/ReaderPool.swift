import Larder
#if LMDB
import CLMDB
import Foundation
import LarderFiles

/// The pool of an environment's read transactions.
///
/// The pool keeps transactions for reuse. It spreads them over shards to reduce contention between threads, and it
/// blocks reads while the memory map is replaced.
///
/// Each idle transaction has a slot in the reader table, which all processes share. A shard keeps up to two. The number
/// of shards is bounded by the number of processors and by the size of the table, so a process keeps at most an eighth
/// of the table.
///
/// A read costs two uncontended locks in addition to LMDB's own work. A thread that needs reads to end waits on a
/// single condition, which reads signal only if a thread is waiting.
final class ReaderPool: Sendable {
  /// A read with its transaction.
  struct Reader {
    let transaction: ReadTransaction
    fileprivate let read: ActiveRead
    fileprivate let shard: Shard
  }

  /// The state that decides whether reads can begin.
  fileprivate enum Gate {
    case open
    /// Reads must wait: the memory map is being replaced.
    case replacing
    /// Reads fail permanently: there is no memory map, or the environment is closed.
    case shut(LMDBError)
  }

  /// The transactions of a few threads.
  fileprivate final class Shard: Sendable {
    struct State: Sendable {
      var idle: [ReadTransaction] = []
      var active: [ActiveRead] = []
      var gate = Gate.open
      /// The number of threads that wait for reads to end.
      var waiterCount = 0
    }

    let state = Locked(State())

    // Keeps the locks of neighboring shards in different cache lines: a line has 64 bytes, and lines are fetched in
    // pairs.
    private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0, 0, 0)
  }

  /// The maximum number of idle transactions of a shard: one for a read, and one for a read nested in it.
  static let idleCapacity = 2

  /// Cached because on Linux the lookup reads files.
  private static let processorCount = ProcessInfo.processInfo.activeProcessorCount

  private let environment: LMDBEnvironmentPointer
  private let lockWaits: LockWaits?
  private let shards: [Shard]
  /// Signaled when the gate changes, and when a read ends while a thread is waiting.
  private let condition = NSCondition()

  /// Creates an empty pool.
  ///
  /// - Parameters:
  ///   - environment: The environment.
  ///   - slotCount: The number of slots in its reader table.
  ///   - lockWaits: The waits for the lock of the table. Defaults to `nil`, for waits that are not watched.
  init(environment: LMDBEnvironmentPointer, slotCount: Int, lockWaits: LockWaits? = nil) {
    self.environment = environment
    self.lockWaits = lockWaits
    let shardCount = ReaderPool.shardCount(slotCount: slotCount, processorCount: ReaderPool.processorCount)
    shards = (0..<shardCount).map { _ in Shard() }
  }

  /// Returns the number of shards for a reader table and a machine.
  static func shardCount(slotCount: Int, processorCount: Int) -> Int {
    max(1, min(32, 8 * processorCount, slotCount / 16))
  }

  // MARK: Reads

  /// Begins a read of the latest snapshot.
  ///
  /// - Parameter read: The read, on the calling thread.
  /// - Throws: `LMDBError`, with `MDB_MAP_RESIZED` if another process has written beyond the memory map.
  func begin(_ read: ActiveRead) throws(LMDBError) -> Reader {
    let shard = shards[read.thread.hash % shards.count]
    var idle: ReadTransaction?
    var isNested = false
    while !shard.state.withLock({ $0.admit(read, isNested: isNested, reusing: &idle) }) {
      // A nested read passes the gate, which cannot open before the outer read has ended.
      isNested = isReading { $0.thread == read.thread }
      if !isNested { try waitForGate(of: shard) }
    }
    do {
      return Reader(transaction: try transaction(reusing: idle), read: read, shard: shard)
    } catch {
      end(read, in: shard, keeping: nil)
      throw error
    }
  }

  /// Ends a read.
  func end(_ reader: Reader) {
    mdb_txn_reset(reader.transaction.pointer)
    end(reader.read, in: reader.shard, keeping: reader.transaction)
  }

  private func end(_ read: ActiveRead, in shard: Shard, keeping transaction: ReadTransaction?) {
    let hasWaiters = shard.state.withLock { $0.end(read, keeping: transaction) }
    if hasWaiters { broadcast() }
  }

  /// Returns whether a read is active that satisfies a predicate.
  func isReading(where isPicked: (ActiveRead) -> Bool) -> Bool {
    shards.contains { $0.state.withLock { $0.active.contains(where: isPicked) } }
  }

  private func transaction(reusing idle: ReadTransaction?) throws(LMDBError) -> ReadTransaction {
    if let idle {
      let code = mdb_txn_renew(idle.pointer)
      if code != MDB_SUCCESS { mdb_txn_abort(idle.pointer) }
      try LMDBError.check(code)
      return idle
    }
    var pointer: OpaquePointer?
    let begin = { [environment] in mdb_txn_begin(environment.pointer, nil, UInt32(MDB_RDONLY), &pointer) }
    // A new transaction takes a slot, under a lock of the table.
    try LMDBError.check(try freeingSlots { lockWaits?.waiting(begin) ?? begin() })
    guard let pointer else { throw LMDBError(code: MDB_PANIC) }
    return ReadTransaction(pointer: pointer)
  }

  /// Aborts the idle transactions, to free their slots.
  func abortIdleTransactions() {
    for shard in shards {
      shard.state.withLock { state in
        for transaction in state.idle { mdb_txn_abort(transaction.pointer) }
        state.idle = []
      }
    }
  }

  /// Calls a closure that takes a slot, and calls it again if none was free.
  ///
  /// Before the second call, the idle slots of this process are freed, and those of processes that were killed during a
  /// read.
  ///
  /// - Returns: The code of the last call.
  func freeingSlots(_ call: () -> Int32) throws(LMDBError) -> Int32 {
    let code = call()
    guard code == MDB_READERS_FULL else { return code }
    abortIdleTransactions()
    try clearStaleSlots()
    return call()
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

  /// Waits until all reads that satisfy a predicate have ended.
  ///
  /// Blocks the calling thread.
  func waitForReads(where isAwaited: (ActiveRead) -> Bool) {
    for shard in shards { shard.state.withLock { $0.waiterCount += 1 } }
    condition.lock()
    while isReading(where: isAwaited) { condition.wait() }
    condition.unlock()
    for shard in shards { shard.state.withLock { $0.waiterCount -= 1 } }
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
    setGate(.replacing)
    waitForReads { _ in true }
    defer { setGate(.open) }
    try body()
  }

  /// Closes the gate permanently so that later reads throw an error, because there is no memory map any more.
  ///
  /// Call this only inside `exclusively(_:)`.
  func shut(_ error: LMDBError) {
    setGate(.shut(error))
  }

  /// Throws an error if reads can no longer begin.
  func checkGate() throws(LMDBError) {
    if case .shut(let error) = shards[0].state.withLock({ $0.gate }) { throw error }
  }

  /// Prevents new reads, waits for active ones to end, and aborts the idle transactions.
  func close() {
    setGate(.shut(LMDBError(code: MDB_BAD_TXN)))
    waitForReads { _ in true }
    abortIdleTransactions()
  }

  private func waitForGate(of shard: Shard) throws(LMDBError) {
    condition.lock()
    defer { condition.unlock() }
    while true {
      switch shard.state.withLock({ $0.gate }) {
      case .open: return
      case .replacing: condition.wait()
      case .shut(let error): throw error
      }
    }
  }

  /// Changes the gate, unless it is shut.
  private func setGate(_ gate: Gate) {
    for shard in shards {
      shard.state.withLock { state in
        if case .shut = state.gate { return }
        state.gate = gate
      }
    }
    broadcast()
  }

  private func broadcast() {
    condition.lock()
    condition.broadcast()
    condition.unlock()
  }
}

extension ReaderPool.Shard.State {
  /// Registers a read, unless it must wait at the gate.
  ///
  /// - Parameters:
  ///   - read: The read.
  ///   - isNested: A Boolean value that indicates whether the read passes the gate.
  ///   - idle: Receives a transaction for the read, if one is idle.
  /// - Returns: A Boolean value that indicates whether the read was registered.
  fileprivate mutating func admit(
    _ read: ActiveRead, isNested: Bool, reusing idle: inout ReadTransaction?
  ) -> Bool {
    if !isNested { guard case .open = gate else { return false } }
    active.append(read)
    idle = self.idle.popLast()
    return true
  }

  /// Records the end of a read, and keeps its transaction or aborts it.
  ///
  /// - Parameters:
  ///   - read: The read.
  ///   - transaction: The transaction of the read, already reset, or `nil` if there isn't one.
  /// - Returns: A Boolean value that indicates whether a thread waits for reads to end.
  fileprivate mutating func end(_ read: ActiveRead, keeping transaction: ReadTransaction?) -> Bool {
    if let transaction {
      if idle.count < ReaderPool.idleCapacity {
        idle.append(transaction)
      } else {
        // Before the read counts as ended, because a thread that waits for its end may close the environment.
        mdb_txn_abort(transaction.pointer)
      }
    }
    if let index = active.lastIndex(of: read) { active.remove(at: index) }
    return waiterCount > 0
  }
}

/// An active read, by a store or by the object that opened the environment for it.
struct ActiveRead: Sendable, Hashable {
  /// The handle that reads.
  let handle: ObjectIdentifier
  /// The root handle, which is the handle itself or the one that it depends on.
  let root: ObjectIdentifier
  /// A Boolean value that indicates whether the read is a backup.
  ///
  /// A backup may take long and uses no named database.
  var isBackup = false
  /// The thread that the value was created on.
  let thread = ThreadIdentity.current

  /// A Boolean value that indicates whether the read may use any store of the environment.
  var usesAnyStore: Bool { handle == root && !isBackup }
}

/// A read transaction of LMDB that is reused.
///
/// Between uses it is reset: it pins no snapshot but keeps its slot in the reader table, so renewing it is cheap.
struct ReadTransaction: @unchecked Sendable {
  // Proof for @unchecked: the environment is opened with MDB_NOTLS, so that a read transaction may move between threads
  // if only one thread uses it at a time. `ReaderPool` gives it to one reader at a time, under a lock.
  let pointer: OpaquePointer
}
#endif
