/// The policy that decides which entries a full ``MemoryCache`` evicts.
public enum EvictionPolicy: Sendable, Hashable, CaseIterable {
  /// W-TinyLFU, which keeps frequently used entries.
  ///
  /// It estimates how often each key was used recently. New entries enter a window, whose size adapts to the workload.
  /// Unlike ``lru``, it withstands scans and loops. Unlike a pure count of uses, it adapts to workloads that favor
  /// recent keys.
  case adaptive

  /// Evicts the least recently used entry.
  case lru
}

/// The bookkeeping of a ``MemoryCache`` besides its table: the free slots, the eviction order, and the statistics.
@usableFromInline
struct EvictionState: ~Copyable, Sendable {
  private let entryLimit: Int
  private let costLimit: Int
  private var freeSlots: [Slot] = []
  // The number of slots ever used, including free ones.
  private var slotCount: UInt32 = 0
  private var order: AdaptiveOrder
  // In the order of writing, as far as known. It has no records if entries do not expire.
  private var agingRecords: SlotRecords
  private var aging = SlotRecords.List()
  private let expires: Bool

  /// The buffer that is exchanged for the reads of a stripe.
  @usableFromInline var reads: [Slot] = []

  /// The statistics, except for reads.
  @usableFromInline var statistics = CacheStatistics()

  /// The stripe whose reads the next write passes to the eviction order, besides those of its own stripe, so that no
  /// stripe keeps its reads for long.
  @usableFromInline var nextStripe = 0

  @usableFromInline
  init(entryLimit: Int, costLimit: Int?, hasCosts: Bool, policy: EvictionPolicy, expires: Bool) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit ?? .max
    self.expires = expires
    agingRecords = SlotRecords(hasCosts: false)
    order = AdaptiveOrder(policy: policy, entryLimit: entryLimit, costLimit: costLimit, hasCosts: hasCosts)
  }

  // MARK: Entries

  @usableFromInline var count: Int { order.count }

  @usableFromInline var totalCost: Int { order.totalCost }

  /// Whether an entry must be evicted.
  @usableFromInline var isOverLimit: Bool { order.count > entryLimit || order.totalCost > costLimit }

  /// The slot for the next new entry.
  @usableFromInline var freeSlot: Slot { freeSlots.last ?? Slot(slotCount) }

  /// Adds the entry that was stored in ``freeSlot``.
  @usableFromInline
  mutating func insert(hash: UInt32, cost: Int) {
    let slot = freeSlot
    if freeSlots.popLast() == nil { slotCount += 1 }
    order.insert(slot, hash: hash, cost: cost)
    if expires { agingRecords.append(slot, hash: hash, cost: 1, mark: 0, to: &aging) }
    statistics.insertions += 1
  }

  /// Records that an entry was replaced.
  @usableFromInline
  mutating func update(_ slot: Slot, cost: Int) {
    order.update(slot, cost: cost)
    if expires { agingRecords.moveToEnd(slot, of: &aging) }
    statistics.replacements += 1
  }

  /// Records that an entry was removed.
  @usableFromInline
  mutating func remove(_ slot: Slot, _ reason: RemovalReason) {
    order.remove(slot)
    if expires { agingRecords.remove(slot, from: &aging) }
    freeSlots.append(slot)
    statistics.count(reason)
  }

  /// Returns the slot of the entry to evict next, or `none` if there is no entry.
  @usableFromInline
  mutating func nextVictim() -> Slot { order.nextVictim() }

  // MARK: Expiry

  /// The slot of the entry that was written first, as far as known, or `none` if there is no entry or entries do not
  /// expire.
  @usableFromInline var oldest: Slot { aging.first }

  /// Postpones the next check of an entry that has not expired because it was used.
  @usableFromInline
  mutating func postponeCheck(_ slot: Slot) {
    agingRecords.moveToEnd(slot, of: &aging)
  }

  // MARK: Reads

  /// Counts the reads in ``reads`` as uses.
  ///
  /// Afterwards, the buffer is empty.
  @usableFromInline
  mutating func recordReads() {
    order.recordUses(of: reads)
    reads.removeAll(keepingCapacity: true)
  }
}

/// The order in which entries are evicted.
///
/// It orders slots only, knows neither keys nor values, and has no lock. It is W-TinyLFU with a window whose size
/// adapts to the workload, or LRU, which is a window of the whole cache.
///
/// See ``WindowedOrder`` for the lists, ``FrequencySketch`` for the admission to the main part, and ``WindowClimber``
/// for the size of the window.
struct AdaptiveOrder: ~Copyable {
  private let costLimit: Int?
  private let adapts: Bool
  // The number of entries of the full cache.
  private var capacity: Int
  private var sketch: FrequencySketch
  private var climber: WindowClimber
  private var order: WindowedOrder

  /// The assumed number of entries of a full cache that is limited by cost only and was never full.
  private static var likelyCapacity: Int { 10_000 }

  /// Creates an order.
  ///
  /// - Parameters:
  ///   - policy: The policy that decides which entries to evict.
  ///   - entryLimit: The maximum number of entries.
  ///   - costLimit: The maximum total cost, or `nil` for no limit.
  ///   - hasCosts: Whether entries may have a cost other than 1.
  init(policy: EvictionPolicy, entryLimit: Int, costLimit: Int?, hasCosts: Bool) {
    self.costLimit = costLimit
    adapts = policy == .adaptive
    capacity = costLimit == nil ? entryLimit : min(entryLimit, AdaptiveOrder.likelyCapacity)
    sketch = FrequencySketch(capacity: adapts ? capacity : 1)
    climber = WindowClimber(capacity: adapts ? capacity : 1, best: WindowClimber.initialBest)
    order = WindowedOrder(
      entryLimit: entryLimit, costLimit: costLimit, hasCosts: hasCosts,
      windowShare: adapts ? WindowClimber.shares[WindowClimber.initialBest] : 1)
  }

  /// The number of slots in the order.
  var count: Int { order.count }

  /// The total cost of their entries.
  var totalCost: Int { order.totalCost }

  /// Adds a slot with a new key.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - hash: A part of the hash of its key.
  ///   - cost: The cost of its entry.
  mutating func insert(_ slot: Slot, hash: UInt32, cost: Int) {
    if adapts { sketch.reserve(count + 1) }
    noteUse(of: hash)
    order.insert(slot, hash: hash, cost: cost)
  }

  /// Records that the entry of a slot was replaced, which is also a use of it.
  ///
  /// - Parameters:
  ///   - slot: The slot.
  ///   - cost: The cost of the new entry.
  mutating func update(_ slot: Slot, cost: Int) {
    noteUse(of: order.hash(of: slot))
    order.use(slot)
    order.setCost(cost, of: slot)
  }

  /// Records that entries were read.
  ///
  /// - Parameter slots: Their slots. Slots that are no longer in use are skipped.
  mutating func recordUses(of slots: [Slot]) {
    // Two loops, so that the processor waits for the memory of several slots at a time.
    for slot in slots where order.isInUse(slot) { noteUse(of: order.hash(of: slot)) }
    for slot in slots where order.isInUse(slot) { order.use(slot) }
  }

  private mutating func noteUse(of hash: UInt32) {
    guard adapts else { return }
    sketch.increment(hash)
    guard climber.noteUse(of: hash, by: sketch) else { return }
    order.setWindowShare(WindowClimber.shares[climber.best])
  }

  /// Records that the entry of a slot was removed, by eviction or otherwise.
  mutating func remove(_ slot: Slot) {
    order.remove(slot)
  }

  /// Returns the slot of the entry to evict next, or `none` if there is no entry.
  mutating func nextVictim() -> Slot {
    followCapacity()
    return order.nextVictim(by: sketch)
  }

  /// Adapts the capacity to the number of entries that fill the cache, if that depends on their costs.
  private mutating func followCapacity() {
    guard adapts, let costLimit, totalCost > costLimit else { return }
    let isNear = count <= capacity * 2 && count >= capacity / 2
    guard !isNear else { return }
    capacity = max(1, count)
    sketch.setCapacity(capacity)
    climber = WindowClimber(capacity: capacity, best: climber.best)
  }
}
