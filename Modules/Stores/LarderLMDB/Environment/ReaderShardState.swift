#if LMDB
import CLMDB

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The active reads and the idle transactions of one shard of a `ReaderPool`.
struct ReaderShardState: Sendable {
  /// An active read.
  struct ActiveRead: Sendable, Hashable {
    let reader: ReaderIdentity
    let thread: ThreadIdentity
  }

  /// The way an admitted read gets its transaction.
  enum Admission: Sendable {
    case renew(ReadTransaction)
    case begin
  }

  /// The result of ending a read.
  enum Ending: Sendable, Equatable {
    /// The read has ended. `hasWaiters` is `true` if a thread waits for reads to end.
    case ended(hasWaiters: Bool)
    /// The read is still active until its transaction is aborted, because the shard keeps enough idle transactions.
    case isSurplus
  }

  /// The maximum number of idle transactions: one for a read, and one for a read nested in it.
  static let idleCapacity = 2

  private(set) var idle: [ReadTransaction] = []
  private(set) var active: [ActiveRead] = []

  /// Whether reads must first pass the pool's gate.
  var isGated = false

  /// The number of threads that wait for reads to end.
  var waiterCount = 0

  /// Admits a read, regardless of the gate.
  mutating func admit(_ read: ActiveRead) -> Admission {
    active.append(read)
    return idle.popLast().map { .renew($0) } ?? .begin
  }

  /// Records the end of a read.
  ///
  /// - Parameter transaction: The transaction of the read, already reset, or `nil` if it was aborted.
  mutating func end(_ read: ActiveRead, returning transaction: ReadTransaction?) -> Ending {
    if let transaction {
      guard idle.count < ReaderShardState.idleCapacity else { return .isSurplus }
      idle.append(transaction)
    }
    if let index = active.lastIndex(of: read) { active.remove(at: index) }
    return .ended(hasWaiters: waiterCount > 0)
  }

  /// Removes and returns the idle transactions.
  mutating func takeIdle() -> [ReadTransaction] {
    defer { idle = [] }
    return idle
  }
}

/// The identity of a reader: a store, and the object that opened the environment for it.
struct ReaderIdentity: Hashable {
  /// The number of the handle.
  let handle: Int
  /// The number of the root handle, which is the handle itself or the one that it depends on.
  let root: Int
  /// Whether the read is a backup, which may take long and uses no named database.
  var isBackup = false

  /// Whether the reader may use any store of the environment.
  var usesAnyStore: Bool { handle == root && !isBackup }
}

/// A read transaction of LMDB that is reused.
///
/// Between uses it is reset: it pins no snapshot but keeps its slot in the reader table, so that renewing it is cheap.
struct ReadTransaction: @unchecked Sendable {
  // Proof for @unchecked: the environment is opened with MDB_NOTLS, so that a read transaction may move between threads
  // if only one thread uses it at a time. `ReaderPool` gives it to one reader at a time, under a lock.
  let pointer: OpaquePointer
}

/// The identity of a running thread.
struct ThreadIdentity: Hashable {
  private let bits: UInt

  /// The calling thread.
  static var current: ThreadIdentity {
    #if canImport(Darwin)
    ThreadIdentity(bits: UInt(bitPattern: pthread_self()))
    #else
    ThreadIdentity(bits: UInt(pthread_self()))
    #endif
  }

  /// Returns a hash of the given number of bits, spread evenly over threads.
  ///
  /// The identity is an address, and the low bits of such addresses hardly differ between threads. Multiplying by the
  /// golden ratio spreads neighboring addresses (Knuth, The Art of Computer Programming, volume 3, section 6.4).
  ///
  /// - Parameter bitCount: The number of bits of the hash.
  func hash(bitCount: UInt) -> Int {
    Int(truncatingIfNeeded: (UInt64(bits) &* 0x9E37_79B9_7F4A_7C15) >> (64 - UInt64(bitCount)))
  }
}
#endif
