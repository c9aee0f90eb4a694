public import Synchronization

/// The entries of a ``MemoryCache`` by key: chains of slots by hash, in memory that grows with them.
///
/// Who may touch what:
///
/// - A stripe, by its lock, guards its chains and the entries in them. When it has more entries than chains it makes
///   twice as many, so an insertion waits at most for the entries of one stripe to be put into others.
/// - An entry is put in and taken out only by who holds the cache's lock for writing *and* that of the stripe. So who
///   holds the lock for writing may read the hash and the key of an entry without that of the stripe.
/// - A slot that is in no chain belongs to who holds the lock for writing, and only they reserve slots.
///
/// The methods here lock stripes; those that change anything are to be called with the lock for writing held.
///
/// It is `Sendable` since all memory that it points to is used by these rules alone until `deinit` frees it, and keys
/// and values are `Sendable`.
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

  /// What a read found.
  @usableFromInline
  struct Reading {
    @usableFromInline var value: Value?
    /// Whether there was an entry whose time is over.
    @usableFromInline var isExpired = false
    /// Whether the reads noted in the stripe are to be handed on.
    @usableFromInline var isFull = false

    @inlinable
    init() {}
  }

  @usableFromInline let entries = SlotArray<Entry>()
  // Has none where entries do not expire.
  @usableFromInline let times = SlotArray<EntryTimes>()
  @usableFromInline let stripes: UnsafeMutablePointer<CacheStripe>
  /// How many stripes there are: a power of two.
  @usableFromInline let stripeCount: Int
  @usableFromInline let lifetimes: EntryLifetimes

  @inlinable
  init(stripeCount: Int, lifetimes: EntryLifetimes) {
    self.stripeCount = stripeCount
    self.lifetimes = lifetimes
    stripes = .allocate(capacity: stripeCount)
    for index in 0..<stripeCount { (stripes + index).initialize(to: CacheStripe()) }
  }

  @inlinable
  deinit {
    for index in 0..<stripeCount {
      (stripes + index).pointee.state.withLock { state in
        for bucket in 0..<state.buckets.count {
          var slot = state.buckets[bucket]
          while slot != .none { slot = entries.pointer(to: slot).move().next }
        }
      }
    }
    stripes.deinitialize(count: stripeCount)
    stripes.deallocate()
  }

  // MARK: Places

  @inlinable
  func stripe(of hash: UInt32) -> UnsafeMutablePointer<CacheStripe> {
    stripes + (Int(hash) & (stripeCount - 1))
  }

  /// The bucket of a hash in its stripe; the bits that choose the stripe do not choose the bucket.
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

  /// Finds the slot of a key, which stays its slot while the lock for writing is held.
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
  ///   - time: What time it is.
  ///   - counts: Whether the read counts, in the statistics and as a use.
  @inlinable
  func read(_ key: Key, hash: UInt32, at time: Int64, counts: Bool) -> Reading {
    stripe(of: hash).pointee.state.withLock { state in
      var reading = Reading()
      let slot = find(key, hash: hash, in: state)
      guard slot != .none else {
        if counts { state.misses += 1 }
        return reading
      }
      if lifetimes.areLimited {
        guard !lifetimes.isOver(times[slot], at: time) else {
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

  /// Whether the time of an entry is over; to be called with the lock for writing held.
  @inlinable
  func isOver(_ slot: Slot, at time: Int64) -> Bool {
    guard lifetimes.areLimited else { return false }
    return stripe(of: entries.pointer(to: slot).pointee.hash).pointee.state.withLock { _ in
      lifetimes.isOver(times[slot], at: time)
    }
  }

  // MARK: Writing

  /// Puts a value into the slot of its key, or into a free one where the key is missing.
  ///
  /// - Returns: The slot that the key has had, or `none`, and the value that was in it.
  @inlinable
  func put(_ value: Value, forKey key: Key, hash: UInt32, at time: Int64, free: Slot) -> (slot: Slot, old: Value?) {
    entries.reserve(free)
    if lifetimes.areLimited { times.reserve(free, repeating: EntryTimes(at: 0)) }
    return stripe(of: hash).pointee.state.withLock { state in
      let slot = find(key, hash: hash, in: state)
      if slot != .none {
        let entry = entries.pointer(to: slot)
        let old = entry.pointee.value
        entry.pointee.value = value
        if lifetimes.areLimited { times[slot] = EntryTimes(at: time) }
        return (slot, old)
      }
      state.quietReads = 0
      if state.count == state.buckets.count { addBuckets(to: &state) }
      state.count += 1
      let bucket = bucket(of: hash, in: state)
      entries.pointer(to: free).initialize(to: Entry(hash: hash, next: state.buckets[bucket], key: key, value: value))
      state.buckets[bucket] = free
      if lifetimes.areLimited { times[free] = EntryTimes(at: time) }
      return (.none, nil)
    }
  }

  @inlinable @inline(never)
  func addBuckets(to state: inout CacheStripe.State) {
    var slots: [Slot] = []
    slots.reserveCapacity(state.count)
    for bucket in 0..<state.buckets.count {
      var slot = state.buckets[bucket]
      while slot != .none {
        slots.append(slot)
        slot = entries.pointer(to: slot).pointee.next
      }
    }
    state.buckets = Array(repeating: .none, count: state.buckets.count * 2)
    for slot in slots {
      let entry = entries.pointer(to: slot)
      let bucket = bucket(of: entry.pointee.hash, in: state)
      entry.pointee.next = state.buckets[bucket]
      state.buckets[bucket] = slot
    }
  }

  /// Takes the entry out of a slot.
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

  // MARK: The whole

  /// The keys of a stripe.
  @inlinable
  func keys(ofStripe index: Int) -> [Key] {
    (stripes + index).pointee.state.withLock { state in
      var keys: [Key] = []
      for bucket in 0..<state.buckets.count {
        var slot = state.buckets[bucket]
        while slot != .none {
          let entry = entries.pointer(to: slot)
          keys.append(entry.pointee.key)
          slot = entry.pointee.next
        }
      }
      return keys
    }
  }
}
