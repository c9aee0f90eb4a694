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
  /// - Parameter transaction: What it used, reset; `nil` where that has ended with it.
  /// - Returns: Whether someone waits for it.
  mutating func end(_ read: ActiveRead, returning transaction: ReadTransaction?) -> Bool {
    if let index = active.lastIndex(of: read) { active.remove(at: index) }
    if let transaction { idle.append(transaction) }
    return watcherCount > 0
  }

  /// Gives up the transactions that wait.
  mutating func takeIdle() -> [ReadTransaction] {
    defer { idle = [] }
    return idle
  }
}
#endif
