#if LMDB
/// Which reads go on in a part of a `ReaderPool`, and which transactions wait there to be used again.
struct ReaderShardState: Sendable {
  /// A read that goes on.
  struct ActiveRead: Sendable, Hashable {
    let reader: ReaderIdentity
    let thread: ThreadIdentity
  }

  /// What a read that is let in does for its transaction.
  enum Admission: Sendable {
    case renew(ReadTransaction)
    case begin
  }

  /// What becomes of a read that ends.
  enum Ending: Sendable, Equatable {
    /// It has ended; `isWatched` if someone waits for reads to end.
    case ended(isWatched: Bool)
    /// It goes on until its transaction is aborted: enough are kept.
    case isSurplus
  }

  /// How many transactions wait at most: a read, and one that it makes inside itself.
  static let idleCapacity = 2

  private(set) var idle: [ReadTransaction] = []
  private(set) var active: [ActiveRead] = []

  /// Whether reads have to ask the pool's gate first.
  var isGated = false

  /// How many wait for reads to end.
  var watcherCount = 0

  /// Lets a read in, gate or no gate.
  mutating func admit(_ read: ActiveRead) -> Admission {
    active.append(read)
    return idle.popLast().map { .renew($0) } ?? .begin
  }

  /// Notes the end of a read.
  ///
  /// - Parameter transaction: Its transaction, reset; `nil` if that has been aborted.
  mutating func end(_ read: ActiveRead, returning transaction: ReadTransaction?) -> Ending {
    if let transaction {
      guard idle.count < ReaderShardState.idleCapacity else { return .isSurplus }
      idle.append(transaction)
    }
    if let index = active.lastIndex(of: read) { active.remove(at: index) }
    return .ended(isWatched: watcherCount > 0)
  }

  /// Gives up the transactions that wait.
  mutating func takeIdle() -> [ReadTransaction] {
    defer { idle = [] }
    return idle
  }
}
#endif
