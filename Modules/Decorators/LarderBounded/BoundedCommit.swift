import Larder

/// The changes of one commit of a bounded store, with the conditions under which they hold.
///
/// This is plain state without any I/O. A commit is one update of the base: the totals are read and changed in it, and
/// everything else that was read before must not have changed.
struct BoundedCommit: Sendable {
  /// The totals, as they were read.
  let totals: Totals

  /// The changes of entries and records, without those of the totals.
  private(set) var entries = ConditionalCommit<any Error>()

  /// The sums that the commit adds to the totals.
  private(set) var byteDelta = 0
  private(set) var countDelta = 0

  /// The greatest place in the order of use after the commit.
  private(set) var place: UInt64

  private var insertionCount: UInt64 = 0

  /// Whether the commit may be made only if no key was inserted since the totals were read.
  var refusesInsertions = false

  /// The limit that the totals must not exceed afterwards.
  var limit: (bytes: Int, entries: Int)?

  /// The entries that the limit removes or keeps out.
  private(set) var evictions: [BoundedEviction] = []

  /// The entries that the commit puts into the order of use.
  private(set) var used: [StoreKey] = []

  /// The entries that the commit removes.
  private(set) var removed: [StoreKey] = []

  init(_ totals: Totals) {
    self.totals = totals
    place = totals.place
  }

  // MARK: Collecting changes

  /// Returns whether the commit requires or changes the value of a key of the base.
  func concerns(_ key: StoreKey) -> Bool { entries.concerns(key) }

  /// Requires that a key of the base has a value.
  mutating func require(_ value: [UInt8]?, forKey key: StoreKey) {
    entries.require(value, forKey: key)
  }

  /// Adds a change of any record, whatever is stored.
  mutating func set(_ key: StoreKey, _ new: [UInt8]?) {
    entries.setValue(new, forKey: key)
  }

  /// Adds the insertion or replacement of an entry.
  mutating func set(
    _ key: StoreKey, _ old: EntryRecord?, _ value: [UInt8], at now: Int64, _ layout: BoundedLayout
  ) {
    removeRecords(of: key, old, layout)
    addRecords(of: key, size: key.count + value.count, at: now, layout)
    set(layout.valueKey(key), value)
    if old == nil { insertionCount += 1 }
  }

  /// Adds the removal of an entry.
  mutating func remove(_ key: StoreKey, _ old: EntryRecord?, _ layout: BoundedLayout) {
    removeRecords(of: key, old, layout)
    set(layout.valueKey(key), nil)
    removed.append(key)
  }

  /// Adds the use of an entry.
  mutating func use(_ key: StoreKey, _ record: EntryRecord, at now: Int64, _ layout: BoundedLayout) {
    removeRecords(of: key, record, layout)
    addRecords(of: key, size: record.size, at: now, layout)
  }

  /// Adds the eviction of an entry.
  mutating func evict(_ key: StoreKey, _ record: EntryRecord, _ layout: BoundedLayout) {
    remove(key, record, layout)
    evictions.append(BoundedEviction(key: key, byteCount: record.size, reason: .limit))
  }

  /// Adds the report of an entry that is too large.
  mutating func refuse(_ key: StoreKey, byteCount: Int) {
    evictions.append(BoundedEviction(key: key, byteCount: byteCount, reason: .share))
  }

  private mutating func removeRecords(of key: StoreKey, _ old: EntryRecord?, _ layout: BoundedLayout) {
    require(old?.bytes, forKey: layout.entryKey(key))
    set(layout.entryKey(key), nil)
    guard let old else { return }
    set(layout.orderKey(key, at: old.place), nil)
    byteDelta -= old.size
    countDelta -= 1
  }

  private mutating func addRecords(of key: StoreKey, size: Int, at now: Int64, _ layout: BoundedLayout) {
    place += 1
    let record = EntryRecord(place: place, microseconds: now, size: size)
    set(layout.entryKey(key), record.bytes)
    set(layout.orderKey(key, at: place), [])
    byteDelta += size
    countDelta += 1
    used.append(key)
  }

  // MARK: Committing

  /// Returns the changes of entries and records with that of the totals, which is computed in the update.
  ///
  /// - Parameters:
  ///   - key: The key of the record of totals.
  ///   - store: The name of the store, for errors.
  ///   - operation: The operation, for errors.
  func withTotals(at key: StoreKey, store: String, for operation: StoreOperation) -> ConditionalCommit<any Error> {
    var commit = entries
    commit.computeValue(forKey: key) { stored in
      do {
        let totals = try Totals(stored(key), store: store, for: operation)
        guard let new = try self.totals(after: totals, store: store, for: operation) else { return .isStale }
        return new == totals ? .keep : .set(new.record)
      } catch {
        return .refuse(error)
      }
    }
    return commit
  }

  /// Returns the totals after the commit, or `nil` if it is stale.
  ///
  /// - Throws: `StoreError` with `corrupted` if the totals are less than the size of what is removed.
  private func totals(after stored: Totals, store: String, for operation: StoreOperation) throws -> Totals? {
    var totals = stored
    if refusesInsertions, totals.insertions != self.totals.insertions { return nil }
    guard byteDelta != 0 || countDelta != 0 || insertionCount != 0 || !used.isEmpty else { return totals }
    var (bytes, count) = (totals.bytes + byteDelta, totals.count + countDelta)
    if totals.isInRepair {
      // The sums are counted again at the end of the repair.
      (bytes, count) = (max(0, bytes), max(0, count))
    }
    guard bytes >= 0, count >= 0 else {
      throw BoundedLayout.damage("the totals are less than the entries", store: store, for: operation)
    }
    if let limit, bytes > limit.bytes || count > limit.entries { return nil }
    (totals.bytes, totals.count) = (bytes, count)
    // If another process has counted further in the meantime, the place must still change: another writer that walks
    // through the order of use sees by it that an entry may have moved away from where the walk would have come.
    if !used.isEmpty { totals.place = max(totals.place + 1, place) }
    totals.insertions &+= insertionCount
    return totals
  }
}
