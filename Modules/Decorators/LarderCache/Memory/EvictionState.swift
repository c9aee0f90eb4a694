/// What a ``MemoryCache`` keeps of its entries beside their keys and values: which slots are free, in which order
/// entries go, and what was counted.
@usableFromInline
struct EvictionState: ~Copyable, Sendable {
  private let entryLimit: Int
  private let costLimit: Int
  private var freeSlots: [Slot] = []
  // How many slots have been in use, the free ones included.
  private var slotCount: UInt32 = 0
  private var order: AdaptiveOrder
  // By the time of writing, as far as it is known; has no records where entries do not expire.
  private var agingRecords: SlotRecords
  private var aging = SlotRecords.List()
  private let expires: Bool

  /// Room for the reads of a stripe, to which it is given in exchange.
  @usableFromInline var reads: [Slot] = []

  /// What was counted, but for reads.
  @usableFromInline var statistics = CacheStatistics()

  /// The stripe whose reads are told to the order with the next write beside those of its own stripe, so that no stripe
  /// keeps its reads for long.
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

  /// Whether an entry has to go.
  @usableFromInline var isOver: Bool { order.count > entryLimit || order.totalCost > costLimit }

  /// The slot for the next new entry.
  @usableFromInline var freeSlot: Slot { freeSlots.last ?? Slot(slotCount) }

  /// Takes in an entry that was put into ``freeSlot``.
  @usableFromInline
  mutating func insert(hash: UInt32, cost: Int) {
    let slot = freeSlot
    if freeSlots.popLast() == nil { slotCount += 1 }
    order.insert(slot, hash: hash, cost: cost)
    if expires { agingRecords.append(slot, hash: hash, cost: 1, mark: 0, to: &aging) }
    statistics.insertions += 1
  }

  /// Takes note that an entry was replaced.
  @usableFromInline
  mutating func update(_ slot: Slot, cost: Int) {
    order.update(slot, cost: cost)
    if expires { agingRecords.moveToEnd(slot, of: &aging) }
    statistics.replacements += 1
  }

  /// Takes note that an entry is gone.
  @usableFromInline
  mutating func remove(_ slot: Slot, _ reason: RemovalReason) {
    order.remove(slot)
    if expires { agingRecords.remove(slot, from: &aging) }
    freeSlots.append(slot)
    statistics.count(reason)
  }

  /// The slot whose entry has to go next; `none` where there is no entry.
  @usableFromInline
  mutating func nextVictim() -> Slot { order.nextVictim() }

  // MARK: Expiry

  /// The slot whose entry was written first, as far as it is known; `none` where there is none or entries do not
  /// expire.
  @usableFromInline var oldest: Slot { aging.first }

  /// Puts off the next look at an entry, whose time is not over since it was used.
  @usableFromInline
  mutating func putOff(_ slot: Slot) {
    agingRecords.moveToEnd(slot, of: &aging)
  }

  // MARK: Reads

  /// Lets reads count as uses.
  ///
  /// They are those in ``reads``, and none are there afterwards.
  @usableFromInline
  mutating func recordReads() {
    order.recordUses(of: reads)
    reads.removeAll(keepingCapacity: true)
  }
}
