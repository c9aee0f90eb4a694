#if HTTPCache
import HTTPCachingRules
import Larder

/// The changes of one commit of a cache's storage, with the conditions under which they hold.
///
/// This is plain state without any I/O. A commit is one update of the store that changes the record of totals as well,
/// so the counted bytes and the stored bytes agree after every crash.
struct StorageCommit: Sendable {
  /// The reason why the totals refuse a commit, with nothing changed.
  enum Refusal: Sendable {
    /// The commit would exceed the limit.
    ///
    /// The number of bytes that it adds, and the number of those that are not transient, or `nil` if it must evict nothing.
    case needsRoom(bytes: Int, lasting: Int?)
    /// The bodies that are being stored would exceed their share.
    case shareIsFull
    /// The record of totals is damaged, or of a newer version.
    case failed(any Error)
  }

  /// The changes of entries, without that of the totals.
  private(set) var entries = ConditionalCommit<Refusal>()

  /// The removed keys whose old sizes are counted by ``adjustment``.
  private var countedKeys: Set<StoreKey> = []

  /// The number of bytes that the commit adds to the totals, besides the differences of its slots.
  private(set) var adjustment = 0

  /// The number of bytes by which the commit changes those of the chunks of bodies that have a mark or are retired.
  private var transientDelta = 0

  /// The number of responses that the commit adds.
  private(set) var responseDelta = 0

  /// The last place in the order of use that the commit gives, or `nil` if it does not give any.
  private(set) var place: UInt64?

  /// The number of bytes that the totals must not exceed if the commit adds bytes.
  var limit: Int?

  /// The number of bytes that ``StorageTotals/lasting`` must not exceed if the commit adds such bytes.
  ///
  /// `nil` means that the commit adds nothing, and that nothing is evicted to make room for it.
  var lastingLimit: Int?

  /// The number of bytes by which the commit changes what the bodies that are being stored reserve.
  private var reservedDelta = 0

  /// The number of bytes that all bodies which are being stored reserve after the commit, instead of a difference, or
  /// `nil` for none.
  private var reserved: Int?

  /// The number of bytes that the bodies which are being stored must not exceed if the commit reserves bytes.
  var share: Int?

  /// The number of invalidations that must not have changed, or `nil` for any.
  var invalidations: UInt64?

  /// A Boolean value that indicates whether the commit may be made only if no response got a place since the totals
  /// were read.
  var refusesNewPlaces = false

  /// A Boolean value that indicates whether the commit is an invalidation.
  var isInvalidation = false

  let layout: StorageLayout

  /// The totals that were read before.
  let totals: StorageTotals

  init(_ totals: StorageTotals, layout: StorageLayout) {
    self.totals = totals
    self.layout = layout
  }

  // MARK: Collecting changes

  /// Adds a change of an entry, whatever is stored.
  mutating func set(_ key: StoreKey, _ new: [UInt8]?) {
    entries.setValue(new, forKey: key)
  }

  /// Adds a change of an entry that must have a value.
  private mutating func set(_ key: StoreKey, replacing old: [UInt8]?, _ new: [UInt8]?) {
    entries.setValue(new, forKey: key, replacing: old)
  }

  /// Adds the removal of entries whose size is known, because what is stored may be missing or damaged.
  private mutating func remove(_ keys: some Sequence<StoreKey>, counted bytes: Int) {
    for key in keys { set(key, nil) }
    countedKeys.formUnion(keys)
    adjustment -= bytes
  }

  /// Adds a change of the mark of a body.
  ///
  /// - Parameters:
  ///   - key: The key of the mark.
  ///   - stored: The stored mark, or `nil` if there must not be one.
  ///   - footprint: The number of bytes of the chunks that the stored mark counts. Defaults to `nil`, for what it says.
  ///   - mark: The new mark, or `nil` to remove it.
  mutating func setMark(
    _ key: StoreKey, replacing stored: [UInt8]?, counting footprint: Int? = nil, by mark: BodyMark?
  ) {
    let old = stored.flatMap { BodyMark($0) }
    reservedDelta += Int((mark?.reserved ?? 0) - (old?.reserved ?? 0))
    transientDelta += layout.footprint(ofBody: mark?.count ?? 0)
    transientDelta -= footprint ?? layout.footprint(ofBody: old?.count ?? 0)
    set(key, replacing: stored, mark?.bytes)
  }

  /// Sets the number of bytes that the bodies which are being stored reserve after the commit.
  ///
  /// The commit is made only if they are unchanged since the totals were read. It replaces the difference of a damaged
  /// mark, which is unknown.
  mutating func setReserved(_ bytes: Int) {
    reserved = bytes
  }

  /// Adds a new response that counts as used.
  ///
  /// - Throws: ``StorageRefusal/tooLarge``.
  mutating func insert(
    _ key: StoreKey, _ response: StoredResponse, _ parts: [StoredPart], _ bodies: [StoredBody], at now: Int64
  ) throws -> StoredEntry {
    let entry = try StoredEntry(
      key: key, place: nextPlace(), used: now, response: response, parts: parts, bodies: bodies)
    put(entry, replacing: nil)
    responseDelta += 1
    return entry
  }

  /// Adds a change of a response's head that leaves its place in the order of use.
  mutating func replace(_ old: StoredEntry, by entry: StoredEntry) {
    put(entry, replacing: old)
  }

  /// Adds the use of a response that gets the last place in the order.
  mutating func use(_ old: StoredEntry, at now: Int64) throws {
    let entry = try old.moved(to: nextPlace(), at: now)
    set(layout.useKey(of: old.key, at: old.place), nil)
    put(entry, replacing: old)
  }

  /// Adds the removal of a response, and the retirement of its bodies except for some.
  mutating func remove(_ old: StoredEntry, keeping kept: [StoredBody] = [], at now: Int64) {
    set(old.key, replacing: old.bytes, nil)
    set(layout.useKey(of: old.key, at: old.place), nil)
    responseDelta -= 1
    for body in old.bodies where !kept.contains(body) { retire(body, at: now) }
  }

  /// Adds the eviction of a response by its entry in the order of use.
  mutating func evict(_ useKey: StoreKey, _ bytes: [UInt8], _ use: UseRecord, at now: Int64) {
    set(useKey, replacing: bytes, nil)
    remove(CollectionOfOne(use.responseKey), counted: use.responseKey.count + use.recordLength)
    responseDelta -= 1
    for body in use.bodies { retire(body, at: now) }
  }

  /// Adds the retirement of a body, whose chunks count until they are removed.
  mutating func retire(_ body: StoredBody, at now: Int64) {
    retire(body.identifier, footprint: layout.footprint(ofBody: body.length), at: now)
  }

  /// Adds the retirement of a body whose chunks have some number of bytes.
  mutating func retire(_ body: BodyIdentifier, footprint: Int, at now: Int64) {
    transientDelta += footprint
    set(layout.retiredKey(of: body, at: now), UInt64(footprint).bigEndianBytes)
  }

  /// Adds the removal of chunks of a retired body.
  ///
  /// - Parameters:
  ///   - chunks: The keys of its first chunks.
  ///   - retiredKey: The key of the retired body.
  ///   - stored: The value of this key.
  ///   - footprint: The number of bytes that the remaining chunks count.
  ///   - isRest: A Boolean value that indicates whether these are all remaining chunks. If not, none of them is the
  ///     last one of the body.
  /// - Returns: The number of bytes by which the totals decrease.
  mutating func free(
    _ chunks: some Collection<StoreKey>, of retiredKey: StoreKey, _ stored: [UInt8], footprint: Int, isRest: Bool
  ) -> Int {
    // All that the body counts ends with its last chunk, also if a chunk is missing.
    let bytes = isRest ? footprint : min(footprint, chunks.count * layout.fullChunkFootprint)
    remove(chunks, counted: bytes)
    transientDelta -= bytes
    set(retiredKey, replacing: stored, isRest ? nil : UInt64(footprint - bytes).bigEndianBytes)
    return isRest ? bytes + retiredKey.count + stored.count : bytes
  }

  private mutating func nextPlace() -> UInt64 {
    let place = (self.place ?? totals.place) + 1
    self.place = place
    return place
  }

  private mutating func put(_ entry: StoredEntry, replacing old: StoredEntry?) {
    set(entry.key, replacing: old?.bytes, entry.bytes)
    set(layout.useKey(of: entry.key, at: entry.place), entry.use.bytes(layout: layout))
  }

  // MARK: Committing

  /// Returns the changes of entries with that of the totals, which is computed in the update.
  ///
  /// - Parameter store: The name of the store, for errors.
  func withTotals(store: String) -> ConditionalCommit<Refusal> {
    var commit = entries
    commit.computeValue(forKey: layout.totalsKey) { stored in
      do {
        return totals(after: try StorageTotals(stored(layout.totalsKey), store: store, for: .update), stored)
      } catch {
        return .refuse(.failed(error))
      }
    }
    return commit
  }

  /// Returns the change of the totals.
  private func totals(
    after old: StorageTotals, _ stored: (StoreKey) -> [UInt8]?
  ) -> ConditionalCommit<Refusal>.ComputedChange {
    var totals = old
    if let invalidations, totals.invalidations != invalidations { return .isStale }
    if refusesNewPlaces, totals.place != self.totals.place { return .isStale }
    if reserved != nil, totals.unfinished != self.totals.unfinished { return .isStale }
    var (delta, transient) = (adjustment, transientDelta)
    for (key, new) in entries.changes {
      var difference = new.map { key.count + $0.count } ?? 0
      if !countedKeys.contains(key), let old = stored(key) { difference -= key.count + old.count }
      delta += difference
      if layout.isTransient(key) { transient += difference }
    }
    let unfinished = reserved ?? max(0, totals.unfinished + reservedDelta)
    if let share, reservedDelta > 0, unfinished > share { return .refuse(.shareIsFull) }
    let lasting = delta - transient
    if exceeds(limit, totals.bytes, by: delta) || exceeds(lastingLimit, totals.lasting, by: lasting) {
      return .refuse(.needsRoom(bytes: delta, lasting: lastingLimit == nil ? nil : lasting))
    }
    // Sums below zero mean that another program has removed entries.
    totals.bytes = max(0, totals.bytes + delta)
    totals.transient = max(0, totals.transient + transient)
    totals.responses = max(0, totals.responses + responseDelta)
    // If another process has counted further in the meantime, two responses have the same place, and the next one has
    // a greater one.
    if let place { totals.place = max(totals.place + 1, place) }
    if isInvalidation { totals.invalidations += 1 }
    totals.unfinished = unfinished
    return .set(totals.record)
  }

  private func exceeds(_ limit: Int?, _ sum: Int, by delta: Int) -> Bool {
    guard let limit, delta > 0 else { return false }
    return sum + delta > limit
  }
}
#endif
