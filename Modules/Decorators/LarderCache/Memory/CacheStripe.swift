public import Synchronization

/// A part of a cache with a lock of its own: the buckets of some hashes, the entries in them, and the reads noted
/// there.
@usableFromInline
struct CacheStripe: ~Copyable {
  /// What the lock guards beside the entries.
  @usableFromInline
  struct State: ~Copyable {
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    /// The slots that were read and not yet told to the order of eviction.
    @usableFromInline var reads = NotedReads()
    // How many reads found their key since the last entry was put in.
    @usableFromInline var quietReads = 0
    @usableFromInline let quietLimit: Int

    @usableFromInline
    init(quietLimit: Int) {
      self.quietLimit = quietLimit
    }

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
      guard quietReads <= quietLimit || quietReads & 15 == 0 else { return false }
      reads.append(slot)
      return reads.isFull
    }
  }

  @usableFromInline let state: Mutex<State>

  // Keeps the lock of one stripe out of the cache lines of the next: a line has 64 bytes, and they are fetched in
  // pairs.
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) =
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

  /// Makes a stripe.
  ///
  /// - Parameter capacity: How many entries it is likely to hold.
  @usableFromInline
  init(capacity: Int) {
    state = Mutex(State(quietLimit: 2 * capacity))
  }
}
