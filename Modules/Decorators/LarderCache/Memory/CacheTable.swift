public import Larder

/// The hash table of a ``MemoryCache``, with chains of slots in memory that grows with the entries.
///
/// Rules of access:
///
/// - The lock of a stripe guards its chains and the entries in them. When a stripe has more entries than chains, it
///   doubles the chains, so an insertion waits at most for the rehashing of one stripe.
/// - An entry is inserted or removed only under the cache's lock for writing *and* the lock of the stripe. Under the
///   lock for writing, the hash and the key of an entry may therefore be read without the lock of the stripe.
/// - A slot that is in no chain belongs to the holder of the lock for writing, who alone reserves slots.
///
/// The methods here lock stripes. Those that change anything must be called under the lock for writing.
///
/// The type is `Sendable` because all memory that it points to is used by these rules alone until `deinit` frees it,
/// and keys and values are `Sendable`.
@usableFromInline
struct CacheTable<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, @unchecked Sendable {
  @usableFromInline
  struct Entry: Sendable {
    @usableFromInline let hash: UInt32
    @usableFromInline var next: Slot
    @usableFromInline let key: Key
    @usableFromInline var value: Value

    @inlinable
    init(hash: UInt32, next: Slot, key: Key, value: Value) {
      self.hash = hash
      self.next = next
      self.key = key
      self.value = value
    }
  }

  /// The result of a read.
  @usableFromInline
  struct Reading {
    @usableFromInline var value: Value?
    /// A Boolean value that indicates whether there was an expired entry.
    @usableFromInline var isExpired = false
    /// A Boolean value that indicates whether the reads noted in the stripe must be passed to the eviction order.
    @usableFromInline var isFull = false

    @inlinable
    init() {}
  }

  @usableFromInline let entries = SlotArray<Entry>()
  // Empty if entries do not expire.
  @usableFromInline let times = SlotArray<EntryTimes>()
  @usableFromInline let stripes: UnsafeMutablePointer<CacheStripe>
  /// The number of stripes, a power of two.
  @usableFromInline let stripeCount: Int
  @usableFromInline let timesToLive: EntryTimesToLive

  @inlinable
  init(stripeCount: Int, timesToLive: EntryTimesToLive) {
    self.stripeCount = stripeCount
    self.timesToLive = timesToLive
    stripes = .allocate(capacity: stripeCount)
    for index in 0..<stripeCount { (stripes + index).initialize(to: CacheStripe()) }
  }

  @inlinable
  deinit {
    for index in 0..<stripeCount {
      (stripes + index).pointee.state.withLock { state in
        forEachSlot(in: state) { entries.pointer(to: $0).deinitialize(count: 1) }
      }
    }
    stripes.deinitialize(count: stripeCount)
    stripes.deallocate()
  }

  // MARK: Lookup

  @inlinable
  func stripe(of hash: UInt32) -> UnsafeMutablePointer<CacheStripe> {
    stripes + (Int(hash) & (stripeCount - 1))
  }

  /// Returns the bucket of a hash in its stripe.
  ///
  /// The bits that select the stripe do not select the bucket.
  @inlinable
  func bucket(of hash: UInt32, in state: borrowing CacheStripe.State) -> Int {
    Int(hash) / stripeCount & (state.buckets.count - 1)
  }

  @inlinable
  func find(_ key: Key, hash: UInt32, in state: borrowing CacheStripe.State) -> Slot {
    var slot = state.buckets[bucket(of: hash, in: state)]
    while slot != .none {
      let entry = entries.pointer(to: slot)
      if entry.pointee.hash == hash, entry.pointee.key == key { return slot }
      slot = entry.pointee.next
    }
    return .none
  }

  /// Returns the slot of a key.
  ///
  /// It stays the same while the lock for writing is held.
  @inlinable
  func find(_ key: Key, hash: UInt32) -> Slot {
    stripe(of: hash).pointee.state.withLock { find(key, hash: hash, in: $0) }
  }

  // MARK: Reading

  /// Reads the value of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - hash: A part of its hash.
  ///   - time: The current time.
  ///   - counts: A Boolean value that indicates whether the read counts in the statistics and as a use.
  @inlinable
  func read(_ key: Key, hash: UInt32, at time: Int64, counts: Bool) -> Reading {
    stripe(of: hash).pointee.state.withLock { state in
      var reading = Reading()
      let slot = find(key, hash: hash, in: state)
      guard slot != .none else {
        if counts { state.misses += 1 }
        return reading
      }
      if timesToLive.areLimited {
        guard !timesToLive.hasExpired(times[slot], at: time) else {
          if counts { state.misses += 1 }
          reading.isExpired = true
          return reading
        }
        if counts { times[slot].used = time }
      }
      if counts {
        reading.isFull = state.noteRead(of: slot)
      }
      reading.value = entries.pointer(to: slot).pointee.value
      return reading
    }
  }

  /// Returns whether an entry has expired.
  ///
  /// It must be called under the lock for writing.
  @inlinable
  func hasExpired(_ slot: Slot, at time: Int64) -> Bool {
    guard timesToLive.areLimited else { return false }
    return stripe(of: entries.pointer(to: slot).pointee.hash).pointee.state.withLock { _ in
      timesToLive.hasExpired(times[slot], at: time)
    }
  }

  // MARK: Writing

  /// Stores a value in the slot of its key, or in a free slot if the key is missing.
  ///
  /// - Returns: The slot of the key and its old value, or `none` and `nil` if the key was missing.
  @inlinable
  func put(_ value: Value, forKey key: Key, hash: UInt32, at time: Int64, free: Slot) -> (slot: Slot, old: Value?) {
    entries.reserve(free)
    if timesToLive.areLimited { times.reserve(free, repeating: EntryTimes(at: 0)) }
    return stripe(of: hash).pointee.state.withLock { state in
      let slot = find(key, hash: hash, in: state)
      if slot != .none {
        let entry = entries.pointer(to: slot)
        let old = entry.pointee.value
        entry.pointee.value = value
        if timesToLive.areLimited { times[slot] = EntryTimes(at: time) }
        return (slot, old)
      }
      state.quietReads = 0
      if state.count == state.buckets.count { addBuckets(to: &state) }
      state.count += 1
      let bucket = bucket(of: hash, in: state)
      entries.pointer(to: free).initialize(to: Entry(hash: hash, next: state.buckets[bucket], key: key, value: value))
      state.buckets[bucket] = free
      if timesToLive.areLimited { times[free] = EntryTimes(at: time) }
      return (.none, nil)
    }
  }

  @inlinable @inline(never)
  func addBuckets(to state: inout CacheStripe.State) {
    var slots: [Slot] = []
    slots.reserveCapacity(state.count)
    forEachSlot(in: state) { slots.append($0) }
    state.buckets = Array(repeating: .none, count: state.buckets.count * 2)
    for slot in slots {
      let entry = entries.pointer(to: slot)
      let bucket = bucket(of: entry.pointee.hash, in: state)
      entry.pointee.next = state.buckets[bucket]
      state.buckets[bucket] = slot
    }
  }

  /// Removes the entry of a slot and returns it.
  @inlinable
  func take(_ slot: Slot) -> Entry {
    let hash = entries.pointer(to: slot).pointee.hash
    return stripe(of: hash).pointee.state.withLock { state in
      let removed = entries.pointer(to: slot).move()
      state.count -= 1
      let bucket = bucket(of: hash, in: state)
      if state.buckets[bucket] == slot {
        state.buckets[bucket] = removed.next
      } else {
        var previous = entries.pointer(to: state.buckets[bucket])
        while previous.pointee.next != slot { previous = entries.pointer(to: previous.pointee.next) }
        previous.pointee.next = removed.next
      }
      return removed
    }
  }

  // MARK: All entries

  /// Calls a closure with each slot of a stripe, whose entry the closure may deinitialize.
  @inlinable
  func forEachSlot(in state: borrowing CacheStripe.State, _ body: (Slot) -> Void) {
    for bucket in 0..<state.buckets.count {
      var slot = state.buckets[bucket]
      while slot != .none {
        let next = entries.pointer(to: slot).pointee.next
        body(slot)
        slot = next
      }
    }
  }

  /// Returns the keys of a stripe.
  @inlinable
  func keys(ofStripe index: Int) -> [Key] {
    (stripes + index).pointee.state.withLock { state in
      var keys: [Key] = []
      forEachSlot(in: state) { keys.append(entries.pointer(to: $0).pointee.key) }
      return keys
    }
  }
}

/// A part of a cache with its own lock, which contains the buckets of some hashes, their entries, and the reads noted
/// there.
@usableFromInline
struct CacheStripe: ~Copyable {
  /// The state that the lock guards, together with the entries of the chains.
  @usableFromInline
  struct State: ~Copyable {
    /// Chains of slots by hash.
    ///
    /// Their number is a power of two.
    @usableFromInline var buckets = [Slot](repeating: .none, count: 8)
    /// The number of entries.
    @usableFromInline var count = 0
    @usableFromInline var hits = 0
    @usableFromInline var misses = 0
    /// The slots that were read and not yet passed to the eviction order, at most ``highestReadCount``.
    @usableFromInline var reads: [Slot] = []
    // The number of reads that found their key since the last insertion.
    @usableFromInline var quietReads = 0

    @inlinable static var highestReadCount: Int { 16 }

    @usableFromInline
    init() {}

    /// Notes a read.
    ///
    /// Without insertions, no entry has to be evicted, and the order need not be exact. After as many reads without an
    /// insertion as could have used every entry twice, only one read in sixteen is noted.
    ///
    /// - Returns: A Boolean value that indicates whether the noted reads must be passed to the eviction order.
    @inlinable
    mutating func noteRead(of slot: Slot) -> Bool {
      hits += 1
      quietReads += 1
      guard quietReads <= 2 * count || quietReads & 15 == 0 else { return false }
      if reads.count < State.highestReadCount { reads.append(slot) }
      return reads.count == State.highestReadCount
    }
  }

  @usableFromInline let state: Locked<State>

  // Keeps the lock of one stripe out of the cache lines of the next. A line has 64 bytes, and lines are fetched in
  // pairs.
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) =
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

  /// Creates a stripe without entries.
  @usableFromInline
  init() {
    state = Locked(State())
  }
}
