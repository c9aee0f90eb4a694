public import Synchronization

/// A part of a cache with a lock of its own: the buckets of some hashes, the entries in them, and the reads noted there.
@usableFromInline
struct CacheStripe: ~Copyable {
  /// What the lock guards beside the entries.
  @usableFromInline
  struct State: ~Copyable {
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    /// The slots that were read and not yet told to the order of eviction.
    @usableFromInline var reads = SlotArray<Slot>(count: CacheStripe.readCapacity, repeating: .none)
    @usableFromInline var readCount = 0

    @usableFromInline
    init() {}

    /// Notes a read.
    ///
    /// - Returns: Whether there is no room for another one.
    @inlinable
    mutating func noteRead(of slot: Slot) -> Bool {
      guard readCount < CacheStripe.readCapacity else { return true }
      reads[readCount] = slot
      readCount += 1
      return readCount == CacheStripe.readCapacity
    }
  }

  /// How many reads are noted before the order of eviction hears of them.
  @inlinable static var readCapacity: Int { 16 }

  @usableFromInline let state = Mutex(State())

  // Keeps the lock of one stripe out of the cache lines of the next: a line has 64 bytes, and they are fetched in pairs.
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) =
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

  @usableFromInline
  init() {}
}
