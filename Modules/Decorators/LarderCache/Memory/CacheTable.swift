public import Synchronization

/// The entries of a ``MemoryCache`` by key: chains of slots by hash, in memory that is reserved once.
///
/// Who may touch what:
///
/// - The stripe of a bucket, by its lock, guards the chain of the bucket and the entries in it.
/// - An entry is put in and taken out, and a chain changed, only by who holds the cache's lock for writing *and* that
///   of the stripe. So who holds the lock for writing may follow chains, and read hashes and keys, without that of the
///   stripe.
/// - A slot that is in no chain belongs to who holds the lock for writing.
///
/// The methods here lock stripes; those that change anything are to be called with the lock for writing held.
///
/// It is `Sendable` since all memory that it points to is allocated once, freed by `deinit`, and used in between by
/// these rules alone, and keys and values are `Sendable`.
@usableFromInline
struct CacheTable<Key: Hashable & Sendable, Value: Sendable>: ~Copyable, @unchecked Sendable {
  @usableFromInline
  struct Entry {
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

  @usableFromInline let slotCount: Int
  @usableFromInline let entries: UnsafeMutablePointer<Entry>
  @usableFromInline let times: UnsafeMutablePointer<EntryTimes>?
  @usableFromInline let buckets: UnsafeMutablePointer<Slot>
  @usableFromInline let bucketMask: UInt32
  @usableFromInline let stripes: UnsafeMutablePointer<CacheStripe>
  @usableFromInline let stripeCount: Int
  @usableFromInline let stripeShift: UInt32
  @usableFromInline let lifetimes: EntryLifetimes

  @inlinable
  init(slotCount: Int, stripeCount: Int, lifetimes: EntryLifetimes) {
    self.slotCount = slotCount
    self.lifetimes = lifetimes
    entries = .allocate(capacity: slotCount)
    times = lifetimes.areLimited ? .allocate(capacity: slotCount) : nil
    times?.initialize(repeating: EntryTimes(at: 0), count: slotCount)
    var bucketBits: UInt32 = 0
    while 1 << Int(bucketBits) < max(slotCount, stripeCount) { bucketBits += 1 }
    var stripeBits: UInt32 = 0
    while 1 << Int(stripeBits) < stripeCount { stripeBits += 1 }
    bucketMask = UInt32(1 << Int(bucketBits) - 1)
    stripeShift = bucketBits - stripeBits
    self.stripeCount = 1 << Int(stripeBits)
    buckets = .allocate(capacity: 1 << Int(bucketBits))
    buckets.initialize(repeating: .none, count: 1 << Int(bucketBits))
    stripes = .allocate(capacity: self.stripeCount)
    let capacity = slotCount / self.stripeCount
    for index in 0..<self.stripeCount { (stripes + index).initialize(to: CacheStripe(capacity: capacity)) }
  }

  @inlinable
  deinit {
    for bucket in 0...Int(bucketMask) {
      var slot = buckets[bucket]
      while slot != .none {
        let entry = (entries + Int(slot.index)).move()
        slot = entry.next
      }
    }
    stripes.deinitialize(count: stripeCount)
    stripes.deallocate()
    buckets.deallocate()
    times?.deallocate()
    entries.deallocate()
  }

  // MARK: Places

  @inlinable
  func bucket(of hash: UInt32) -> Int { Int(hash & bucketMask) }

  @inlinable
  func stripe(ofBucket bucket: Int) -> UnsafeMutablePointer<CacheStripe> {
    stripes + (bucket >> Int(stripeShift))
  }

  @inlinable
  func entry(_ slot: Slot) -> UnsafeMutablePointer<Entry> {
    precondition(Int(slot.index) < slotCount)
    return entries + Int(slot.index)
  }

  /// Finds the slot of a key; the lock of the stripe, or that for writing, has to be held.
  @inlinable
  func find(_ key: Key, hash: UInt32, inBucket bucket: Int) -> Slot {
    var slot = buckets[bucket]
    while slot != .none {
      let entry = entry(slot)
      if entry.pointee.hash == hash, entry.pointee.key == key { return slot }
      slot = entry.pointee.next
    }
    return .none
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
    let bucket = bucket(of: hash)
    return stripe(ofBucket: bucket).pointee.state.withLock { state in
      var reading = Reading()
      let slot = find(key, hash: hash, inBucket: bucket)
      guard slot != .none else {
        if counts { state.misses += 1 }
        return reading
      }
      if let times {
        guard !lifetimes.isOver(times[Int(slot.index)], at: time) else {
          if counts { state.misses += 1 }
          reading.isExpired = true
          return reading
        }
        if counts { times[Int(slot.index)].used = time }
      }
      if counts {
        reading.isFull = state.noteRead(of: slot)
      }
      reading.value = entry(slot).pointee.value
      return reading
    }
  }

  /// Whether the time of an entry is over; to be called with the lock for writing held.
  @inlinable
  func isOver(_ slot: Slot, at time: Int64) -> Bool {
    guard let times else { return false }
    let hash = entry(slot).pointee.hash
    return stripe(ofBucket: bucket(of: hash)).pointee.state.withLock { _ in
      lifetimes.isOver(times[Int(slot.index)], at: time)
    }
  }

  // MARK: Writing

  /// Puts a value into the slot of its key, or into a free one where the key is missing.
  ///
  /// - Returns: The slot that the key has had, or `none`, and the value that was in it.
  @inlinable
  func put(_ value: Value, forKey key: Key, hash: UInt32, at time: Int64, free: Slot) -> (slot: Slot, old: Value?) {
    let bucket = bucket(of: hash)
    return stripe(ofBucket: bucket).pointee.state.withLock { state in
      let slot = find(key, hash: hash, inBucket: bucket)
      if slot != .none {
        let old = entry(slot).pointee.value
        entry(slot).pointee.value = value
        times?[Int(slot.index)] = EntryTimes(at: time)
        return (slot, old)
      }
      guard free != .none else { return (.none, nil) }
      state.quietReads = 0
      entry(free).initialize(to: Entry(hash: hash, next: buckets[bucket], key: key, value: value))
      buckets[bucket] = free
      times?[Int(free.index)] = EntryTimes(at: time)
      return (.none, nil)
    }
  }

  /// Takes the entry out of a slot.
  @inlinable
  func take(_ slot: Slot) -> Entry {
    let hash = entry(slot).pointee.hash
    let bucket = bucket(of: hash)
    return stripe(ofBucket: bucket).pointee.state.withLock { _ in
      let removed = entry(slot).move()
      if buckets[bucket] == slot {
        buckets[bucket] = removed.next
      } else {
        var previous = buckets[bucket]
        while entry(previous).pointee.next != slot { previous = entry(previous).pointee.next }
        entry(previous).pointee.next = removed.next
      }
      return removed
    }
  }

  // MARK: The whole

  /// The keys of a stripe.
  @inlinable
  func keys(ofStripe index: Int) -> [Key] {
    (stripes + index).pointee.state.withLock { _ in
      var keys: [Key] = []
      for bucket in index << Int(stripeShift)..<(index + 1) << Int(stripeShift) {
        var slot = buckets[bucket]
        while slot != .none {
          keys.append(entry(slot).pointee.key)
          slot = entry(slot).pointee.next
        }
      }
      return keys
    }
  }
}
