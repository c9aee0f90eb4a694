import Larder

/// The changes of one commit of a bounded store, with the conditions under which they hold.
///
/// This is plain state without any I/O. A commit is one update of the base: the totals are read and changed in it, and
/// everything else that was read before must not have changed.
struct BoundedCommit: Sendable {
  /// A change of one entry of the base.
  struct Slot: Sendable {
    /// The condition on the stored bytes.
    enum Condition: Sendable {
      case any
      case equals([UInt8]?)
    }

    let condition: Condition
    let new: [UInt8]?
  }

  /// The error of a commit whose conditions do not hold, with nothing changed.
  struct IsStale: Error {}

  /// The totals, as they were read.
  let totals: Totals

  private(set) var slots: [StoreKey: Slot] = [:]

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
  private(set) var evictions: [Eviction] = []

  /// The entries that the commit puts into the order of use.
  private(set) var used: [StoreKey] = []

  /// The entries that the commit removes.
  private(set) var removed: [StoreKey] = []

  init(_ totals: Totals) {
    self.totals = totals
    place = totals.place
  }

  // MARK: Collecting changes

  /// Adds a change of any record.
  mutating func set(_ key: StoreKey, _ condition: Slot.Condition, _ new: [UInt8]?) {
    slots[key] = Slot(condition: condition, new: new)
  }

  /// Adds the insertion or replacement of an entry.
  mutating func set(
    _ key: StoreKey, _ old: EntryRecord?, _ condition: Slot.Condition, _ value: [UInt8], at now: Int64,
    _ layout: BoundedLayout
  ) {
    removeRecords(of: key, old, layout)
    addRecords(of: key, old, size: key.count + value.count, at: now, layout)
    set(layout.valueKey(key), condition, value)
    if old == nil { insertionCount += 1 }
  }

  /// Adds the removal of an entry.
  mutating func remove(_ key: StoreKey, _ old: EntryRecord?, _ condition: Slot.Condition, _ layout: BoundedLayout) {
    removeRecords(of: key, old, layout)
    set(layout.valueKey(key), condition, nil)
    removed.append(key)
  }

  /// Adds the use of an entry.
  mutating func use(_ key: StoreKey, _ record: EntryRecord, at now: Int64, _ layout: BoundedLayout) {
    removeRecords(of: key, record, layout)
    addRecords(of: key, record, size: record.size, at: now, layout)
  }

  /// Adds the eviction of an entry.
  mutating func evict(_ key: StoreKey, _ record: EntryRecord, _ layout: BoundedLayout) {
    remove(key, record, .any, layout)
    evictions.append(Eviction(key: key, byteCount: record.size, reason: .limit))
  }

  /// Adds the report of an entry that is too large.
  mutating func refuse(_ key: StoreKey, byteCount: Int) {
    evictions.append(Eviction(key: key, byteCount: byteCount, reason: .share))
  }

  private mutating func removeRecords(of key: StoreKey, _ old: EntryRecord?, _ layout: BoundedLayout) {
    set(layout.entryKey(key), .equals(old?.bytes), nil)
    guard let old else { return }
    set(layout.orderKey(key, at: old.place), .any, nil)
    byteDelta -= old.size
    countDelta -= 1
  }

  private mutating func addRecords(
    of key: StoreKey, _ old: EntryRecord?, size: Int, at now: Int64, _ layout: BoundedLayout
  ) {
    place += 1
    let record = EntryRecord(place: place, microseconds: now, size: size)
    set(layout.entryKey(key), .equals(old?.bytes), record.bytes)
    set(layout.orderKey(key, at: place), .any, [])
    byteDelta += size
    countDelta += 1
    used.append(key)
  }

  // MARK: Committing

  /// Performs the changes in an update of the base whose first slot is the record of totals.
  ///
  /// - Parameters:
  ///   - stored: The slots of the update: the record of totals, and those of `keys`.
  ///   - keys: The keys of the commit's slots, in the order of the update.
  ///   - store: The name of the store, for errors.
  ///   - operation: The operation, for errors.
  /// - Throws: ``IsStale``; `StoreError` with `corrupted` if the totals are less than the size of what is removed.
  func perform(
    on stored: inout UpdateSlots<[UInt8]>, keys: [StoreKey], store: String, for operation: StoreOperation
  ) throws {
    var totals = try Totals(stored[0], store: store, for: operation)
    if refusesInsertions, totals.insertions != self.totals.insertions { throw IsStale() }
    for (number, key) in keys.enumerated() {
      guard let slot = slots[key] else { continue }
      if case .equals(let expected) = slot.condition, stored[number + 1] != expected { throw IsStale() }
      if stored[number + 1] != slot.new { stored[number + 1] = slot.new }
    }
    guard byteDelta != 0 || countDelta != 0 || insertionCount != 0 || !used.isEmpty else { return }
    var (bytes, count) = (totals.bytes + byteDelta, totals.count + countDelta)
    if totals.isInRepair {
      // The sums are counted again at the end of the repair.
      (bytes, count) = (max(0, bytes), max(0, count))
    }
    guard bytes >= 0, count >= 0 else {
      throw BoundedLayout.damage("the totals are less than the entries", store: store, for: operation)
    }
    if let limit, bytes > limit.bytes || count > limit.entries { throw IsStale() }
    (totals.bytes, totals.count) = (bytes, count)
    // If another process has counted further in the meantime, the place must still change: another writer that walks
    // through the order of use sees by it that an entry may have moved away from where the walk would have come.
    if !used.isEmpty { totals.place = max(totals.place + 1, place) }
    totals.insertions &+= insertionCount
    stored[0] = totals.record
  }
}
