/// The policy that decides which entries a full ``MemoryCache`` evicts.
///
/// ```swift
/// let cache = MemoryCache<String, Page>(entryLimit: 1000, policy: .lru)
/// ```
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
///
/// It orders slots only, and knows neither keys nor values. The order is W-TinyLFU with a window whose size adapts to
/// the workload, or LRU, which is a window of the whole cache. See ``WindowedOrder`` for the lists,
/// ``FrequencySketch`` for the admission to the main part, and ``WindowClimber`` for the size of the window.
@usableFromInline
struct EvictionState: ~Copyable, Sendable {
  /// The assumed number of entries of a full cache that is limited by cost only and was never full.
  private static var likelyCapacity: Int { 10_000 }

  private let entryLimit: Int
  private let costLimit: Int
  private let adapts: Bool
  private var freeSlots: [Slot] = []
  // The number of slots ever used, including free ones.
  private var slotCount: UInt32 = 0
  // The number of entries of the full cache.
  private var capacity: Int
  private var sketch: FrequencySketch
  private var climber: WindowClimber
  private var order: WindowedOrder
  // In the order of writing, as far as known. It has no records if entries do not expire.
  private var agingRecords = SlotRecords(hasCosts: false)
  private var aging = SlotRecords.List()
  private let expires: Bool

  /// The buffer that is exchanged for the reads of a stripe.
  @usableFromInline var reads: [Slot] = []

  /// The statistics, except for reads.
  @usableFromInline var statistics = CacheStatistics()

  /// The stripe whose reads the next write passes to the eviction order, besides those of its own stripe, so no stripe
  /// keeps its reads for long.
  @usableFromInline var nextStripe = 0

  /// Creates the state of an empty cache.
  ///
  /// - Parameters:
  ///   - entryLimit: The maximum number of entries.
  ///   - costLimit: The maximum total cost, or `nil` for no limit.
  ///   - hasCosts: A Boolean value that indicates whether entries may have a cost other than 1.
  ///   - policy: The policy that decides which entries to evict.
  ///   - expires: A Boolean value that indicates whether entries expire.
  @usableFromInline
  init(entryLimit: Int, costLimit: Int?, hasCosts: Bool, policy: EvictionPolicy, expires: Bool) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit ?? .max
    self.expires = expires
    adapts = policy == .adaptive
    capacity = costLimit == nil ? entryLimit : min(entryLimit, EvictionState.likelyCapacity)
    sketch = FrequencySketch(capacity: adapts ? capacity : 1)
    climber = WindowClimber(capacity: adapts ? capacity : 1, best: WindowClimber.initialBest)
    order = WindowedOrder(
      entryLimit: entryLimit, costLimit: costLimit, hasCosts: hasCosts,
      windowShare: adapts ? WindowClimber.shares[WindowClimber.initialBest] : 1)
  }

  // MARK: Entries

  @usableFromInline var count: Int { order.count }

  @usableFromInline var totalCost: Int { order.totalCost }

  /// A Boolean value that indicates whether an entry must be evicted.
  @usableFromInline var isOverLimit: Bool { order.count > entryLimit || order.totalCost > costLimit }

  /// The slot for the next new entry.
  @usableFromInline var freeSlot: Slot { freeSlots.last ?? Slot(slotCount) }

  /// Adds the entry that was stored in ``freeSlot``.
  ///
  /// - Parameters:
  ///   - hash: A part of the hash of its key.
  ///   - cost: The cost of the entry.
  @usableFromInline
  mutating func insert(hash: UInt32, cost: Int) {
    let slot = freeSlot
    if freeSlots.popLast() == nil { slotCount += 1 }
    if adapts { sketch.reserve(count + 1) }
    noteUse(of: hash)
    order.insert(slot, hash: hash, cost: cost)
    if expires { agingRecords.append(slot, hash: hash, cost: 1, mark: 0, to: &aging) }
    statistics.insertions += 1
  }

  /// Records that an entry was replaced, which is also a use of it.
  @usableFromInline
  mutating func update(_ slot: Slot, cost: Int) {
    noteUse(of: order.hash(of: slot))
    order.use(slot)
    order.setCost(cost, of: slot)
    if expires { agingRecords.moveToEnd(slot, of: &aging) }
    statistics.replacements += 1
  }

  /// Records that an entry was removed, by eviction or otherwise.
  @usableFromInline
  mutating func remove(_ slot: Slot, _ reason: RemovalReason) {
    order.remove(slot)
    if expires { agingRecords.remove(slot, from: &aging) }
    freeSlots.append(slot)
    statistics.count(reason)
  }

  /// Returns the slot of the entry to evict next, or `none` if there is no entry.
  @usableFromInline
  mutating func nextVictim() -> Slot {
    followCapacity()
    return order.nextVictim(by: sketch)
  }

  /// Adapts the capacity to the number of entries that fill the cache, if that depends on their costs.
  private mutating func followCapacity() {
    guard adapts, totalCost > costLimit, count > capacity * 2 || count < capacity / 2 else { return }
    capacity = max(1, count)
    sketch.setCapacity(capacity)
    climber = WindowClimber(capacity: capacity, best: climber.best)
  }

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

  /// Counts the reads in ``reads`` as uses, except for those of slots that are no longer in use.
  ///
  /// Afterward, the buffer is empty.
  @usableFromInline
  mutating func recordReads() {
    // Two loops, so that the processor waits for the memory of several slots at a time.
    for slot in reads where order.isInUse(slot) { noteUse(of: order.hash(of: slot)) }
    for slot in reads where order.isInUse(slot) { order.use(slot) }
    reads.removeAll(keepingCapacity: true)
  }

  private mutating func noteUse(of hash: UInt32) {
    guard adapts else { return }
    sketch.increment(hash)
    guard climber.noteUse(of: hash, by: sketch) else { return }
    order.setWindowShare(WindowClimber.shares[climber.best])
  }
}
