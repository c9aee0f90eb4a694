public import Foundation
public import Larder
import Synchronization

/// A decorator whose entries expire, over a store that keeps each value with its deadline.
///
/// ```swift
/// let sessions = try await JSONFileStore(path: "sessions.json", codec: .json(Session.self).expiring())
///   .expiring(.after(.seconds(3600)))
/// try await sessions.setValue(session, forKey: "7")                                  // for an hour
/// try await sessions.setValue(guest, forKey: "8", timeToLive: .after(.milliseconds(500)))
/// try await sessions.setValue(robot, forKey: "9", timeToLive: .never)
/// ```
///
/// The value and its deadline are one value of the base, so they change together and survive together.
///
/// ## Expired entries
///
/// An entry is live while the time is before its deadline. From the deadline on, it is absent from every operation:
/// reads, scans, keys, counts and pages, and `update`, whose body finds `nil`. It takes space until it is purged by
/// ``purgeExpired(limit:)``, on a schedule by an ``ExpiryPurger``, or a few entries at a time by writes.
///
/// Every write sets a new deadline. A write without a time to live applies the default of the store, whatever deadline
/// the entry had before. To keep the deadline of an entry, use ``setValueKeepingDeadline(_:forKey:)`` or
/// ``updateKeepingDeadlines(_:_:)``.
///
/// ## Time
///
/// Deadlines are wall-clock times because they outlive the process. An operation reads the clock once, when it begins.
/// An update reads it when its body runs. An entry that expires during a read may therefore still be returned. If the
/// clock is set forward, entries expire that much earlier. If it is set back, they live that much longer, and expired
/// entries become live again unless they were purged. An entry with a sliding deadline lives, from its first read on,
/// no longer than its window and a tenth.
///
/// A read renews a sliding deadline without waiting. The new deadline counts immediately in this process, and a
/// background update that many reads share writes it. No read fails because a renewal cannot be written. ``statistics()``
/// counts such failures.
///
/// ## Cost
///
/// A read costs a reading of the clock. Which keys are live, and how many, is known only from their values. Therefore
/// `keys`, `count` and `contains` read and decode values, `count` those of its whole range in one call. They throw
/// `corrupted` or `undecodable` if a value cannot be decoded.
///
/// ## Position in a stack
///
/// Put an expiring store above a cache. A cache above it would continue to return expired values.
public final class ExpiringStore<Base: DataStore, Value: Sendable>: DataStore where Base.Value == Expiring<Value> {
  /// The store that keeps the values with their deadlines.
  public let base: Base

  /// The time to live of an entry whose write does not specify one.
  public let timeToLive: TimeToLive

  /// A Boolean value that indicates whether writes remove some of the expired entries.
  public let purgesOnWrite: Bool

  /// Returns the current wall-clock time.
  private let date: @Sendable () -> Date

  /// The operations that call the base more than once, for which closing waits.
  @usableFromInline
  let operations = RunningOperations()

  /// The state of the purging by writes.
  let writePurge = Locked(WritePurge())

  /// The renewals of sliding deadlines that are not yet in the base, and the statistics of the background work.
  let renewals = Locked(PendingRenewals())

  /// A Boolean value that indicates whether there may be pending renewals, so other reads take no lock.
  let hasRenewals = Atomic(false)

  /// The task that writes the last batch of renewals.
  let renewing = Locked<Task<RenewalOutcome, Never>?>(nil)

  /// Creates a store whose entries expire.
  ///
  /// - Parameters:
  ///   - base: The store that keeps the values with their deadlines.
  ///   - timeToLive: The time to live of an entry whose write does not specify one. Defaults to `.never`. If it is
  ///     invalid, such as a negative duration, writes that need it throw `invalidArgument`.
  ///   - purgesOnWrite: A Boolean value that indicates whether writes remove some of the expired entries. One write in
  ///     sixteen examines the next 32 entries, so space is freed faster than it is taken. Defaults to `true`.
  ///   - now: A closure that returns the current time. It must not call the store. Defaults to the system time.
  public init(
    _ base: Base, timeToLive: TimeToLive = .never, purgesOnWrite: Bool = true,
    now: @escaping @Sendable () -> Date = { Date.now }
  ) {
    self.base = base
    self.timeToLive = timeToLive
    self.purgesOnWrite = purgesOnWrite
    date = now
  }

  /// The information of the base, with entries that stay until their deadline.
  public var information: StoreInformation {
    var information = base.information
    information.entryLifetime = .untilDeadline
    return information
  }

  /// Returns the current time.
  @usableFromInline
  func now() -> WallTime {
    WallTime(date())
  }

  // MARK: Reading

  // The clock is read before the base. If it were read afterward, a read could find an entry, another call could move
  // its deadline, and the entry would be reported absent although it was live throughout.

  /// Returns the value of a key; see `DataStore`.
  ///
  /// A sliding deadline that is due is renewed in the background, unless the task is cancelled.
  @inlinable
  public func value(forKey key: StoreKey) async throws -> Value? {
    let now = now()
    let renewal = renewal(of: key)
    guard let found = try await base.value(forKey: key) else { return nil }
    guard let deadline = found.deadline else { return found.value }
    let isLive =
      deadline.windowMicroseconds == nil ? !deadline.isPast(at: now) : readSliding(key, deadline, renewal, at: now)
    return isLive ? found.value : nil
  }

  /// Returns the values of several keys in one snapshot; see `DataStore`.
  ///
  /// Sliding deadlines that are due are renewed in the background, unless the task is cancelled.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    let now = now()
    let pending = pendingRenewals(of: keys)
    let found = try await base.values(forKeys: keys)
    var due: [(key: StoreKey, deadline: ExpiryDeadline, seen: Renewal?)] = []
    let values = found.indices.map { index -> Value? in
      guard let entry = found[index], let stored = entry.deadline else { return found[index]?.value }
      let renewal = pending.isEmpty ? nil : pending[index]
      guard let isDue = isRenewalDue(for: stored, renewal, at: now) else { return nil }
      if isDue { due.append((keys[index], stored, renewal)) }
      return entry.value
    }
    renew(due)
    return values
  }

  /// Returns the first live entries of a range in one snapshot; see `DataStore`.
  ///
  /// It does not move sliding deadlines. If expired entries lie between the live ones, it reads the range again from
  /// its start, each time twice as much, until it has enough.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try base.information.check(limit: limit, for: .entries)
    return try await liveEntries(in: range, limit: limit, order: order, for: .entries).map { entry in
      StoreEntry(key: entry.key, value: entry.value.value)
    }
  }

  /// Returns the first live keys of a range in one snapshot; see `DataStore`.
  ///
  /// It has to decode the values.
  ///
  /// - Throws: The errors of ``entries(in:limit:order:)``, including `corrupted` and `undecodable`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.information.check(limit: limit, for: .keys)
    return try await liveEntries(in: range, limit: limit, order: order, for: .keys).map { $0.key }
  }

  /// Returns the number of live entries in a range; see `DataStore`.
  ///
  /// It has to decode all values of the range and holds them in memory. If the values are bytes, with a view of the type
  /// above, decoding is a copy.
  ///
  /// - Throws: The errors of ``entries(in:limit:order:)``, including `corrupted` and `undecodable`.
  @inlinable
  public func count(in range: KeyRange) async throws -> Int {
    let (now, renewals) = (now(), allRenewals())
    let entries = try await operations.run(.count, of: base.information) {
      try await reporting(.count) { try await base.entries(in: range, limit: .max, order: .ascending) }
    }
    // Inlinable for this loop: in unspecialized code, it takes longer than reading the entries.
    return entries.count { $0.value.isLive(at: now, with: renewals[$0.key]) }
  }

  private func liveEntries(
    in range: KeyRange, limit: Int, order: ScanOrder, for operation: StoreOperation
  ) async throws -> [StoreEntry<Expiring<Value>>] {
    guard operations.begin() else { throw base.information.closedError(for: operation) }
    defer { operations.end() }
    let now = now()
    let renewals = allRenewals()
    func isLive(_ entry: StoreEntry<Expiring<Value>>) -> Bool { entry.value.isLive(at: now, with: renewals[entry.key]) }
    var size = limit
    while true {
      let found = try await reporting(operation) {
        try await firstEntries(in: range, limit: size, order: order, needed: limit, isLive)
      }
      let live = found.filter(isLive)
      // A page that is not full is the last one.
      if live.count >= limit || found.count < size { return live.count > limit ? Array(live.prefix(limit)) : live }
      size = size > .max / 2 ? .max : size * 2
    }
  }

  /// Reads the first entries of a range, or only those before damage if enough of them are live.
  private func firstEntries(
    in range: KeyRange, limit: Int, order: ScanOrder, needed: Int, _ isLive: (StoreEntry<Expiring<Value>>) -> Bool
  ) async throws -> [StoreEntry<Expiring<Value>>] {
    do {
      return try await base.entries(in: range, limit: limit, order: order)
    } catch let error as StoreError where limit > needed {
      // Damage beyond the requested entries was met only because this read asked for more than the caller did.
      guard let lost = error.lostKeys else { throw error }
      let readable = order == .ascending ? range.part(before: lost) : range.part(after: lost)
      guard let readable else { throw error }
      let found = try await base.entries(in: readable, limit: limit, order: order)
      guard found.count(where: isLive) >= needed else { throw error }
      return found
    }
  }

  // MARK: Writing

  /// Applies several changes atomically, with the default time to live; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await apply(ExpiringBatch(changes))
  }

  /// Applies several changes atomically, each with its own or the default time to live.
  ///
  /// - Parameter batch: The changes.
  /// - Throws: The errors of `apply(_:)` of a `ChangeBatch`; `invalidArgument` if a time to live is invalid.
  public func apply(_ batch: ExpiringBatch<Value>) async throws {
    try await operations.run(.apply, of: base.information) {
      await purgeIfDue(beforeWriting: batch.changes.count)
      try await base.apply(stored(batch, at: now()))
    }
  }

  /// Returns the changes to the base that correspond to a batch.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if a time to live is invalid.
  private func stored(_ batch: ExpiringBatch<Value>, at now: WallTime) throws -> ChangeBatch<Expiring<Value>> {
    let changes = batch.changes.changes
    var stored = ChangeBatch<Expiring<Value>>()
    stored.reserveCapacity(changes.count)
    // In unspecialized generic code, pairs and key paths would cost more than everything else here.
    for index in changes.indices {
      switch changes[index] {
      case .set(let key, let value):
        let timeToLive = batch.timesToLive[index] ?? timeToLive
        try timeToLive.check(for: .apply, of: base.information)
        let deadline = timeToLive.deadline(from: now)
        let isOver = deadline?.isPast(at: now) ?? false
        stored.append(isOver ? .remove(key) : .set(key, Expiring(value, deadline: deadline)))
      case .remove(let key): stored.append(.remove(key))
      case .removeAll(let range): stored.append(.removeAll(range))
      }
    }
    return stored
  }

  /// Reads and writes several values as one atomic step; see `DataStore`.
  ///
  /// Every value that `body` assigns gets the default time to live, also if it is the same as before. The others keep their
  /// deadlines.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await update(keys, timeToLive, keepsDeadlines: false, deciding: body)
  }

  /// Writes pending renewals and ensures that every earlier write is durable; see `DataStore`.
  ///
  /// A renewal that cannot be written is not an error of this method. It appears in ``statistics()``.
  public func synchronize() async throws {
    await settleRenewals()
    try await base.synchronize()
  }

  /// Waits for running operations, writes pending renewals as far as possible, and closes the base; see `DataStore`.
  public func close() async throws {
    await operations.close()
    await settleRenewals()
    try await base.close()
  }
}

extension ExpiringStore: StoreDecorator {
  /// Performs an operation of a capability on the base, a flush after writing pending renewals.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    if operation == .flush { await settleRenewals() }
    return try await body()
  }
}

extension ExpiringStore: InvalidatableStore where Base: InvalidatableStore {}
extension ExpiringStore: FlushableStore where Base: FlushableStore {}
extension ExpiringStore: ObservableStore where Base: ObservableStore {}

extension DataStore {
  /// Returns a decorator of this store whose entries expire; see ``ExpiringStore``.
  ///
  /// - Parameters:
  ///   - timeToLive: The time to live of an entry whose write does not specify one. Defaults to `.never`.
  ///   - purgesOnWrite: Whether writes remove some of the expired entries. One write in sixteen examines the next 32
  ///     entries first. Defaults to `true`.
  ///   - now: A closure that returns the current time. It must not call the store. Defaults to the system time.
  public func expiring<Kept: Sendable>(
    _ timeToLive: TimeToLive = .never, purgesOnWrite: Bool = true,
    now: @escaping @Sendable () -> Date = { Date.now }
  ) -> ExpiringStore<Self, Kept> where Value == Expiring<Kept> {
    ExpiringStore(self, timeToLive: timeToLive, purgesOnWrite: purgesOnWrite, now: now)
  }
}

extension ExpiringStore: MaintainableStore where Base: MaintainableStore {
  /// Returns the statistics of the base, with counts of live and expired entries.
  ///
  /// Entries that cannot be decoded count as live. The detail `expiredEntries` is the number of expired entries.
  ///
  /// - Throws: The errors of `MaintainableStore/storeStatistics()`.
  public func storeStatistics() async throws -> StoreStatistics {
    var statistics = try await base.storeStatistics()
    let (now, renewals) = (now(), allRenewals())
    var (present, expired) = (0, 0)
    var remaining: KeyRange? = .all
    while let range = remaining {
      let slice = try await reporting(.statistics) {
        try await decodableEntries(in: range, limit: ExpiringStore.sliceSize, during: .statistics)
      }
      let liveCount = slice.entries.count { $0.value.isLive(at: now, with: renewals[$0.key]) }
      present += liveCount + (slice.isDamaged ? 1 : 0)
      expired += slice.entries.count - liveCount
      remaining = slice.remaining
    }
    statistics.entryCount = present
    statistics.details.insert(StoreStatistics.Detail(name: "expiredEntries", value: Int64(expired)), at: 0)
    return statistics
  }
}

/// A batch of changes to an ``ExpiringStore``, each value with an optional time to live.
///
/// The changes are applied atomically and in sequence.
///
/// ```swift
/// var batch = ExpiringBatch<Session>()
/// batch.removeAll(in: .prefix("session:7:"))
/// batch.setValue(session, forKey: "session:7:1", timeToLive: .after(.seconds(60)))
/// batch.setValue(profile, forKey: "session:7:2")
/// try await store.apply(batch)
/// ```
public struct ExpiringBatch<Value> {
  /// The changes, in the order they take effect.
  public private(set) var changes: ChangeBatch<Value>

  /// The specified times to live, by the index of the change.
  fileprivate var timesToLive: [Int: TimeToLive] = [:]

  /// Creates a batch.
  ///
  /// - Parameter changes: The first changes, with the default time to live of the store. Defaults to an empty list.
  public init(_ changes: ChangeBatch<Value> = []) {
    self.changes = changes
  }

  /// Adds a change that stores a value under a key.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - timeToLive: The time to live of the entry. Defaults to `nil`, to apply the default of the store.
  public mutating func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive? = nil) {
    timesToLive[changes.count] = timeToLive
    changes.setValue(value, forKey: key)
  }

  /// Adds a change that removes a key.
  ///
  /// - Parameter key: The key. It need not exist.
  public mutating func removeValue(forKey key: StoreKey) {
    changes.removeValue(forKey: key)
  }

  /// Adds a change that removes all keys of a range.
  ///
  /// - Parameter range: The range of keys to remove. Defaults to all keys.
  public mutating func removeAll(in range: KeyRange = .all) {
    changes.removeAll(in: range)
  }
}

extension ExpiringBatch: Sendable where Value: Sendable {}
extension ExpiringBatch: Equatable where Value: Equatable {}
