import Larder

/// The changes of one commit of a bounded store, with the conditions under which they hold.
///
/// This is plain state without any I/O. A commit is one update of the base: the totals are read and changed in it, and
/// everything else that was read before must not have changed.
struct BoundedCommit: Sendable {
  /// The totals, as they were read.
  let totals: Totals

  /// The changes of entries and their records, without those of the order of use and the totals.
  private(set) var entries = ConditionalCommit<any Error>()

  /// The changes of the order of use, by the number of the record.
  private var order: [UInt64: OrderChange] = [:]

  /// The entries that leave a record of the order of use, and those that follow the remaining ones.
  private struct OrderChange: Sendable {
    var removed: [StoreKey] = []
    var added: [StoreKey] = []
  }

  /// The sums that the commit adds to the totals.
  private(set) var byteDelta = 0
  private(set) var countDelta = 0

  /// The greatest place in the order of use after the commit.
  private(set) var place: UInt64

  private var insertionCount: UInt64 = 0

  /// A Boolean value that indicates whether the commit may be made only if no key was inserted since the totals were
  /// read.
  var refusesInsertions = false

  /// The totals that a commit which increases them must not exceed afterward.
  var ceiling: (bytes: Int, entries: Int)?

  /// The entries that the limit removes or keeps out.
  private(set) var evictions: [BoundedEviction] = []

  /// The entries that the commit puts into the order of use.
  private(set) var used: [StoreKey] = []

  init(_ totals: Totals) {
    self.totals = totals
    place = totals.place
  }

  /// A Boolean value that indicates whether the commit neither requires nor changes anything.
  var isEmpty: Bool { entries.keys.isEmpty && order.isEmpty }

  // MARK: Collecting changes

  /// Prepares the commit for changes of a number of further entries, each of a value and its record.
  mutating func reserveCapacity(_ count: Int) {
    // Each record of the order of use has the places of several entries.
    entries.reserveCapacity(entries.keys.count + count * 2 + count / 4)
  }

  /// Returns whether the commit requires or changes the value of a key of the base.
  func concerns(_ key: StoreKey) -> Bool { entries.concerns(key) }

  /// Requires that a key of the base has a value.
  mutating func require(_ value: [UInt8]?, forKey key: StoreKey) {
    entries.require(value, forKey: key)
  }

  /// Reports a key, also if its value stays as it is.
  mutating func report(_ key: StoreKey) {
    entries.report(key)
  }

  /// Adds a change of any record, whatever is stored.
  mutating func set(_ key: StoreKey, _ new: [UInt8]?) {
    entries.setValue(new, forKey: key)
  }

  /// Adds the insertion or replacement of an entry.
  mutating func set(
    _ key: StoreKey, _ old: EntryRecord?, _ value: [UInt8], at now: Int64, _ layout: BoundedLayout
  ) {
    place(key, old, size: key.count + value.count, at: now, layout)
    set(layout.valueKey(key), value)
    report(layout.valueKey(key))
    if old == nil { insertionCount += 1 }
  }

  /// Adds the removal of an entry.
  mutating func remove(_ key: StoreKey, _ old: EntryRecord?, _ layout: BoundedLayout) {
    replaceRecord(of: key, old, with: nil, layout)
    set(layout.valueKey(key), nil)
    report(layout.valueKey(key))
  }

  /// Adds the use of an entry.
  mutating func use(_ key: StoreKey, _ record: EntryRecord, at now: Int64, _ layout: BoundedLayout) {
    place(key, record, size: record.size, at: now, layout)
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

  /// Removes a key from a record of the order of use.
  mutating func removeFromOrder(_ key: StoreKey, number: UInt64) {
    order[number, default: OrderChange()].removed.append(key)
  }

  /// Adds a key to a record of the order of use.
  mutating func addToOrder(_ key: StoreKey, number: UInt64) {
    order[number, default: OrderChange()].added.append(key)
  }

  /// Gives an entry the last place.
  private mutating func place(
    _ key: StoreKey, _ old: EntryRecord?, size: Int, at now: Int64, _ layout: BoundedLayout
  ) {
    place += 1
    replaceRecord(of: key, old, with: EntryRecord(place: place, microseconds: now, size: size), layout)
    used.append(key)
  }

  /// Replaces the record of an entry, its place in the order and its size in the sums, provided that the record is still the
  /// one that was read.
  private mutating func replaceRecord(
    of key: StoreKey, _ old: EntryRecord?, with new: EntryRecord?, _ layout: BoundedLayout
  ) {
    entries.setValue(new?.bytes, forKey: layout.entryKey(key), replacing: old?.bytes)
    if let old {
      removeFromOrder(key, number: layout.orderNumber(of: old.place))
      byteDelta -= old.size
      countDelta -= 1
    }
    if let new {
      addToOrder(key, number: layout.orderNumber(of: new.place))
      byteDelta += new.size
      countDelta += 1
    }
  }

  // MARK: Committing

  /// Returns the new values of a base without any accounting, without those of the totals.
  func initialValues(_ layout: BoundedLayout) -> [StoreKey: [UInt8]] {
    var values: [StoreKey: [UInt8]] = [:]
    for (key, value) in entries.changes { values[key] = value }
    for (number, change) in order { values[layout.orderKey(number)] = OrderRecord(change.added).bytes }
    return values
  }

  /// Takes the complete commit out of this one, with the changes of the order of use and of the totals.
  ///
  /// These are computed in the update, so other processes that change the same records don't make it stale.
  ///
  /// - Parameters:
  ///   - layout: The keys of the records.
  ///   - store: The name of the store, for errors.
  ///   - operation: The operation, for errors.
  mutating func takeComplete(
    with layout: BoundedLayout, store: String, for operation: StoreOperation
  ) -> ConditionalCommit<any Error> {
    // Not a copy, which would retain each value.
    var commit = ConditionalCommit<any Error>()
    swap(&commit, &entries)
    for (number, change) in order {
      let key = layout.orderKey(number)
      commit.computeValue(forKey: key) { stored in
        let bytes = stored(key)
        guard var record = bytes.map({ OrderRecord($0) }) ?? OrderRecord() else {
          return .refuse(BoundedLayout.damage("a record of the order of use is damaged", store: store, for: operation))
        }
        record.keys.removeAll { change.removed.contains($0) }
        record.keys += change.added
        return .set(record.bytes)
      }
    }
    commit.computeValue(forKey: layout.totalsKey) { [self] stored in
      do {
        let totals = try Totals(stored(layout.totalsKey), store: store, for: operation)
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
    var (bytes, count) = (totals.bytes + byteDelta, totals.count + countDelta)
    if totals.isInRepair {
      // The sums are counted again at the end of the repair.
      (bytes, count) = (max(0, bytes), max(0, count))
    }
    guard bytes >= 0, count >= 0 else {
      throw BoundedLayout.damage("the totals are less than the entries", store: store, for: operation)
    }
    if let ceiling, byteDelta > 0 && bytes > ceiling.bytes || countDelta > 0 && count > ceiling.entries { return nil }
    (totals.bytes, totals.count) = (bytes, count)
    // If another process has counted further in the meantime, the place must still change: another writer that walks
    // through the order of use sees by it that an entry may have moved away from where the walk would have come.
    if !used.isEmpty { totals.place = max(totals.place + 1, place) }
    totals.insertions &+= insertionCount
    return totals
  }
}
