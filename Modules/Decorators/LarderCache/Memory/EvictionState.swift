/// What a ``MemoryCache`` keeps of its entries beside their keys and values: which slots are free, in which order
/// entries go, and what was counted.
///
/// It is `Sendable` since its queue, the only part that would not be, is made by it and given to no one.
@usableFromInline
struct EvictionState: ~Copyable, @unchecked Sendable {
  private let entryLimit: Int
  private let costLimit: Int
  private var pool: SlotPool
  private let queue: any EvictionQueue
  // By the time of writing, as far as it is known; has no records where entries do not expire.
  private var agingRecords: SlotRecords
  private var aging = SlotRecords.List()
  private let expires: Bool

  /// Room for the reads of a stripe, to which it is given in exchange.
  @usableFromInline var reads = NotedReads()

  /// What was counted, but for reads.
  @usableFromInline var statistics = CacheStatistics()

  @usableFromInline
  init(entryLimit: Int, costLimit: Int?, slotCount: Int, hasCosts: Bool, order: CacheOrder, expires: Bool) {
    self.entryLimit = entryLimit
    self.costLimit = costLimit ?? .max
    self.expires = expires
    pool = SlotPool(slotCount: slotCount)
    agingRecords = SlotRecords(slotCount: expires ? slotCount : 0, hasCosts: false)
    queue =
      switch order {
      case .policy(.lru):
        BoxedEvictionOrder(RecencyOrder(slotCount: slotCount, hasCosts: hasCosts))
      case .policy(.s3FIFO):
        BoxedEvictionOrder(
          S3FIFOOrder(entryLimit: entryLimit, costLimit: costLimit, slotCount: slotCount, hasCosts: hasCosts))
      case .policy(.adaptive):
        BoxedEvictionOrder(
          AdaptiveOrder(entryLimit: entryLimit, costLimit: costLimit, slotCount: slotCount, hasCosts: hasCosts))
      case .fixedWindow(let share):
        BoxedEvictionOrder(
          AdaptiveOrder(
            entryLimit: entryLimit, costLimit: costLimit, slotCount: slotCount, hasCosts: hasCosts,
            fixedWindowShare: share))
      }
  }

  // MARK: Entries

  @usableFromInline var count: Int { queue.count }

  @usableFromInline var totalCost: Int { queue.totalCost }

  /// Whether an entry has to go.
  @usableFromInline var isOver: Bool { queue.count > entryLimit || queue.totalCost > costLimit }

  /// The slot for the next new entry.
  @usableFromInline var freeSlot: Slot { pool.next }

  /// Takes in an entry that was put into ``freeSlot``.
  @usableFromInline
  mutating func insert(hash: UInt32, cost: Int) {
    let slot = pool.next
    guard slot != .none else { return }
    pool.take()
    queue.insert(slot, hash: hash, cost: cost)
    if expires { agingRecords.append(slot, hash: hash, cost: 1, mark: 0, to: &aging) }
    statistics.insertions += 1
  }

  /// Takes note that an entry was replaced.
  @usableFromInline
  mutating func update(_ slot: Slot, cost: Int) {
    queue.update(slot, cost: cost)
    if expires { agingRecords.moveToEnd(slot, of: &aging) }
    statistics.replacements += 1
  }

  /// Takes note that an entry is gone.
  @usableFromInline
  mutating func remove(_ slot: Slot, _ reason: RemovalReason) {
    queue.remove(slot)
    if expires { agingRecords.remove(slot, from: &aging) }
    pool.giveBack(slot)
    statistics.count(reason)
  }

  /// The slot whose entry has to go next; `none` where there is no entry.
  @usableFromInline
  mutating func nextVictim() -> Slot { queue.nextVictim() }

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
    queue.recordUses(of: reads.slots, count: reads.count)
    reads.removeAll()
  }
}
