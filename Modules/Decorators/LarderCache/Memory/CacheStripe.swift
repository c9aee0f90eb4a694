public import Synchronization

/// A part of a cache with a lock of its own: the buckets of some hashes, the entries in them, and the reads noted
/// there.
@usableFromInline
struct CacheStripe: ~Copyable {
  /// What the lock guards, with the entries of the chains.
  @usableFromInline
  struct State: ~Copyable {
    /// Chains of slots by hash; as many as a power of two.
    @usableFromInline var buckets = [Slot](repeating: .none, count: 8)
    /// How many entries there are.
    @usableFromInline var count = 0
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    /// The slots that were read and not yet told to the order of eviction, at most ``highestReadCount``.
    @usableFromInline var reads: [Slot] = []
    // How many reads found their key since the last entry was put in.
    @usableFromInline var quietReads = 0

    @inlinable static var highestReadCount: Int { 16 }

    @usableFromInline
    init() {}

    /// Notes a read.
    ///
    /// While nothing new comes, nothing has to go, and the order need not be exact: after so many reads without an
    /// insertion among them that every entry could have been used twice, only one of sixteen is noted.
    ///
    /// - Returns: Whether the reads noted are to be handed on.
    @inlinable
    mutating func noteRead(of slot: Slot) -> Bool {
      hits += 1
      quietReads += 1
      guard quietReads <= 2 * count || quietReads & 15 == 0 else { return false }
      if reads.count < State.highestReadCount { reads.append(slot) }
      return reads.count == State.highestReadCount
    }
  }

  @usableFromInline let state: Mutex<State>

  // Keeps the lock of one stripe out of the cache lines of the next: a line has 64 bytes, and they are fetched in
  // pairs.
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) =
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

  /// Makes a stripe without entries.
  @usableFromInline
  init() {
    state = Mutex(State())
  }
}
