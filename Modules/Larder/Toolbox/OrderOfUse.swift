/// The order in which the entries of a store were used, for a store that evicts the least recently used ones.
///
/// The order itself is a range of keys of the base: an entry of the store has a place there, and gets the last one when it
/// is used. Writing a place for each read would be slow, so this object remembers the uses by this process in memory, and
/// hands the keys of those that are due over to be written, in batches and in the background. A walk through the order spares
/// entries that were used since they got their place.
///
/// ```swift
/// let order = OrderOfUse(interval: .seconds(600))
///
/// // After a read:
/// if order.note(key, at: now) { order.startWriting(at: now) { keys in await writePlaces(of: keys) } }
///
/// // To make room:
/// let spared = try await order.evict(
///   in: places, page: readPage, until: { plan.freed >= needed }, key: \.key) { plan.evict($0) }
/// ```
///
/// Times are in microseconds since 1970. It remembers the uses and places of the last entries, some 100,000 to 200,000 of
/// them, and at most 10,000 keys that wait to be written.
public final class OrderOfUse: Sendable {
  /// The number of entries that are written in one batch, and that a walk spares.
  public static let batchSize = 128

  private let interval: Int64

  /// The entries that were used, in stripes with locks of their own, because each read notes a use.
  private let stripes: [Stripe]

  private final class Stripe: Sendable {
    let recent: Locked<RecentUses>

    init(interval: Duration) {
      recent = Locked(RecentUses(interval: interval))
    }
  }

  private let pending: Locked<PendingUses>

  /// The task that writes the last batch.
  private let writing = Locked<Task<Void, Never>?>(nil)

  /// Creates the order without any uses.
  ///
  /// - Parameters:
  ///   - interval: The time after which a further use of an entry is due to be written.
  ///   - delay: The time after which a batch that is not full no longer waits for further uses. It is then started by the
  ///     next use that is due to be written. Defaults to `interval`.
  public init(interval: Duration, collectingFor delay: Duration? = nil) {
    self.interval = interval.wholeMicroseconds
    stripes = (0..<RecentUses.stripeCount).map { _ in Stripe(interval: interval) }
    pending = Locked(PendingUses(delay: delay ?? interval))
  }

  /// Runs a closure with what is remembered of an entry and of others.
  private func withRecent<Result: Sendable>(_ key: StoreKey, _ body: (inout RecentUses) -> Result) -> Result {
    stripes[key.hashValue & (RecentUses.stripeCount - 1)].recent.withLock { body(&$0) }
  }

  /// Records a use.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - persisted: The time of the last use that was written, or `nil` if it is unknown, so the first use is due.
  ///   - now: The current time.
  /// - Returns: A Boolean value that indicates whether you must call ``startWriting(at:_:)``.
  public func note(_ key: StoreKey, persisted: Int64? = nil, at now: Int64) -> Bool {
    guard withRecent(key, { $0.note(key, persisted: persisted, at: now) }) else { return false }
    let (isRecorded, mustStart) = pending.withLock { ($0.append(key, at: now), $0.schedule(at: now)) }
    if !isRecorded { withRecent(key) { $0.postpone(key) } }
    return mustStart
  }

  /// Writes the batches that are due, in a task that no reader waits for or cancels.
  ///
  /// The method never waits.
  ///
  /// - Parameters:
  ///   - now: The current time.
  ///   - write: A closure that gives entries the last places in the order, and returns whether it could. If it could not,
  ///     the entries keep their places until they are used again.
  public func startWriting(at now: Int64, _ write: @escaping @Sendable ([StoreKey]) async -> Bool) {
    writeBatches(at: now, all: false, write)
  }

  /// Writes all recorded uses, until one batch fails.
  ///
  /// - Parameters:
  ///   - now: The current time.
  ///   - write: The closure of ``startWriting(at:_:)``.
  public func settle(at now: Int64, _ write: @escaping @Sendable ([StoreKey]) async -> Bool) async {
    await writeBatches(at: now, all: true, write).value
  }

  /// Writes batches after the previous ones.
  ///
  /// - Parameter all: A Boolean value that indicates whether to write those as well that are not due, except after a
  ///   failure.
  @discardableResult
  private func writeBatches(
    at now: Int64, all: Bool, _ write: @escaping @Sendable ([StoreKey]) async -> Bool
  ) -> Task<Void, Never> {
    writing.withLock { last in
      let task = Task.detached { [last, self] in
        await last?.value
        while true {
          let keys = pending.withLock { $0.takeBatch(at: now, all: all) }
          if keys.isEmpty { return }
          if await !write(keys), all { return }
        }
      }
      last = task
      return task
    }
  }

  /// Returns whether a use is due to be written after the last one, or the clock was set back.
  ///
  /// - Parameters:
  ///   - now: The current time.
  ///   - last: The time of the last use that was written.
  public func isDue(at now: Int64, after last: Int64) -> Bool {
    RecentUses.isDue(at: now, after: last, interval)
  }

  /// Records that entries got a place in the order, and that others were removed.
  ///
  /// The next use of an entry that got a place is due after the interval, without reading when it got the place.
  ///
  /// - Parameters:
  ///   - placed: The keys of the entries that got a place.
  ///   - removed: The keys of the entries that were removed.
  ///   - now: The current time.
  public func finish(placed: [StoreKey] = [], removed: [StoreKey] = [], at now: Int64) {
    for key in removed { withRecent(key) { $0.forget(key) } }
    for key in placed { withRecent(key) { $0.settle(key, at: now) } }
  }

  /// Walks through the order, the least recently used entry first, and evicts entries until it is enough.
  ///
  /// An entry that was used in this process since it got its place is spared, as long as there are others; at most
  /// ``batchSize`` of them.
  ///
  /// - Parameters:
  ///   - order: The range of the order in the base.
  ///   - page: A closure that reads the first candidates of a range, and returns the range of the rest, if any.
  ///   - isEnough: A closure that returns whether enough is evicted.
  ///   - key: A closure that returns the key of the entry of a candidate, or `nil` to pass over it.
  ///   - evict: A closure that evicts a candidate.
  /// - Returns: The spared candidates. They must get a new place.
  /// - Throws: The errors of the closures.
  public func evict<Candidate>(
    in order: KeyRange, page: (KeyRange) async throws -> (candidates: [Candidate], rest: KeyRange?),
    until isEnough: () -> Bool, key: (Candidate) throws -> StoreKey?, _ evict: (Candidate) throws -> Void
  ) async throws -> [Candidate] {
    var spared: [Candidate] = []
    var rest: KeyRange? = order
    while !isEnough(), let range = rest {
      let page = try await page(range)
      for candidate in page.candidates where !isEnough() {
        guard let key = try key(candidate) else { continue }
        if spared.count < Self.batchSize, withRecent(key, { $0.isRecent(key) }) {
          spared.append(candidate)
        } else {
          try evict(candidate)
        }
      }
      rest = page.rest
    }
    // If there are no others, used entries go as well.
    var kept = spared[...]
    while !isEnough(), let first = kept.popFirst() { try evict(first) }
    return Array(kept)
  }
}

/// The uses of entries by this process that are to be written.
///
/// This is plain state without any I/O.
struct PendingUses: Sendable {
  /// The maximum number of uses that wait to be written.
  ///
  /// Further ones only count in memory.
  static let limit = 10_000

  /// The keys whose uses are to be written, the first recorded one first.
  private(set) var keys: [StoreKey] = []

  private let delay: Int64
  private var firstTime: Int64 = 0
  private var isScheduled = false

  /// Creates an empty state.
  ///
  /// - Parameter delay: The time after which a batch that is not full no longer waits for further uses.
  init(delay: Duration) {
    self.delay = delay.wholeMicroseconds
  }

  /// Records a use that is due, and returns whether there was room for it.
  mutating func append(_ key: StoreKey, at now: Int64) -> Bool {
    guard keys.count < Self.limit else { return false }
    if keys.isEmpty { firstTime = now }
    keys.append(key)
    return true
  }

  /// Returns whether the caller must ensure that the batches that are due are taken.
  mutating func schedule(at now: Int64) -> Bool {
    guard !isScheduled else { return false }
    isScheduled = isDue(at: now)
    return isScheduled
  }

  /// A Boolean value that indicates whether a batch is full, or its first use has waited for the delay.
  private func isDue(at now: Int64) -> Bool {
    let (waited, overflow) = now.subtractingReportingOverflow(firstTime)
    return !keys.isEmpty
      && (keys.count >= OrderOfUse.batchSize || overflow || waited < 0 || waited >= delay)
  }

  /// Takes the next batch of keys whose uses are to be written, in the order of their uses.
  ///
  /// - Parameters:
  ///   - now: The current time.
  ///   - all: A Boolean value that indicates whether to take a batch that is not due.
  /// - Returns: The keys, or nothing if no batch is due.
  mutating func takeBatch(at now: Int64, all: Bool = false) -> [StoreKey] {
    // A use that was noted after the time of the task is not one before the clock was set back.
    guard isDue(at: max(now, firstTime)) || all && !keys.isEmpty else {
      isScheduled = false
      return []
    }
    firstTime = now
    let batch = keys.prefix(OrderOfUse.batchSize)
    keys.removeFirst(batch.count)
    // An entry can occur twice, with an interval in between. Its last use counts.
    var seen: Set<StoreKey> = []
    return batch.reversed().filter { seen.insert($0).inserted }.reversed()
  }
}

/// The entries that this process has used or put into the order of use, in memory.
///
/// This is plain state without any I/O. It remembers a limited number of keys, in two generations: when the younger one is
/// full, it becomes the older one, whose keys are forgotten. Times are in microseconds since 1970.
struct RecentUses: Sendable {
  /// The number of objects of this type that an order of use has, for different keys.
  ///
  /// It is a power of two.
  static let stripeCount = 16

  /// The maximum number of keys in a generation, which fills a dictionary of 200 KB.
  static let generationSize = 6_144

  private struct Use {
    /// A Boolean value that indicates whether the entry was used since it was last put into the order of use.
    var isRecent: Bool
    /// The time when a use was last due, or the entry was last put into the order of use.
    var recorded: Int64
  }

  private let interval: Int64

  // By the hash of the key, because keys are long. Two keys with the same one, of 64 bits, would count as one entry, which
  // is then evicted too early or too late.
  private var young: [Int: Use] = [:]
  private var old: [Int: Use] = [:]

  /// Creates an empty state.
  ///
  /// - Parameter interval: The time after which a further use of an entry is due to be persisted.
  init(interval: Duration) {
    self.interval = interval.wholeMicroseconds
  }

  /// Returns whether a use is due to be persisted after the last one, or the clock was set back.
  static func isDue(at now: Int64, after last: Int64, _ interval: Int64) -> Bool {
    let (difference, overflow) = now.subtractingReportingOverflow(last)
    return overflow || difference < 0 || difference >= interval
  }

  /// Records a use.
  ///
  /// - Parameters:
  ///   - key: The key of the entry.
  ///   - persisted: The time of the last use that was persisted, or `nil` if it is unknown, so the first use is due.
  ///   - now: The current time.
  /// - Returns: A Boolean value that indicates whether the use is due to be persisted. It counts as recorded from now on.
  mutating func note(_ key: StoreKey, persisted: Int64? = nil, at now: Int64) -> Bool {
    let hash = key.hashValue
    let last = use(hash)
    let recorded = last?.recorded ?? persisted
    let isDue = recorded.map { Self.isDue(at: now, after: $0, interval) } ?? true
    guard isDue || last?.isRecent != true else { return false }
    remember(hash, Use(isRecent: true, recorded: isDue ? now : recorded ?? now))
    return isDue
  }

  /// Records that there was no room for a use that was due, so the next one is due again.
  mutating func postpone(_ key: StoreKey) {
    // No clock shows this time.
    remember(key.hashValue, Use(isRecent: true, recorded: .max))
  }

  /// Returns whether an entry was used since it was last put into the order of use.
  func isRecent(_ key: StoreKey) -> Bool { use(key.hashValue)?.isRecent == true }

  /// Records that an entry was put into the order of use at its current place.
  mutating func settle(_ key: StoreKey, at now: Int64) {
    remember(key.hashValue, Use(isRecent: false, recorded: now))
  }

  /// Forgets an entry that was removed.
  mutating func forget(_ key: StoreKey) {
    let hash = key.hashValue
    young[hash] = nil
    old[hash] = nil
  }

  private func use(_ hash: Int) -> Use? { young[hash] ?? old[hash] }

  private mutating func remember(_ hash: Int, _ use: Use) {
    if young.count >= Self.generationSize, young[hash] == nil {
      swap(&old, &young)
      young.removeAll(keepingCapacity: true)
    }
    young[hash] = use
  }
}
