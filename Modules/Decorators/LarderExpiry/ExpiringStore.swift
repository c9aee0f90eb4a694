public import Larder
import Synchronization

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Lets entries expire: a store over one that keeps each value with its deadline.
///
/// ```swift
/// let sessions = try await JSONFileStore(path: "sessions.json", codec: .json(Session.self).expiring())
///   .expiring(.after(.seconds(3600)))
/// try await sessions.setValue(session, forKey: "7")                                  // for an hour
/// try await sessions.setValue(guest, forKey: "8", expires: .after(.milliseconds(500)))
/// try await sessions.setValue(robot, forKey: "9", expires: .never)
/// ```
///
/// The value and its deadline are one value of the store below, so they change together and survive together.
///
/// ## Expired is absent
///
/// An entry is live while the time is before its deadline; from then on it is absent from everything: reads, scans, keys,
/// counts and pages, and `update`, whose body finds `nil`. It takes space until it is purged: by ``purgeExpired(limit:)``,
/// on a schedule by an ``ExpiryPurger``, and a few at a time by writes.
///
/// Every write decides anew when its entry expires. One that does not say gives what the store was made with, whatever the
/// entry had before; ``setValueKeepingDeadline(_:forKey:)`` and ``updateKeepingDeadlines(_:_:)`` leave that alone.
///
/// ## Time
///
/// Deadlines are by the clock on the wall, since they outlive the process. An operation looks at it once, when it begins;
/// an update when its body runs. So an entry whose deadline comes while it is read may still be returned. Where the
/// clock is put forward, entries expire earlier by as much; where it is put back, they live longer by as much, and what has
/// expired since is live again unless it was purged. One that slides lives no longer than its window and a tenth from the
/// first read on.
///
/// A read renews a sliding deadline without waiting: in this process the new deadline counts at once, and a background
/// update that many reads share writes it. No read fails because a renewal could not be written; ``statistics`` counts such
/// failures.
///
/// ## What it costs
///
/// A read costs a look at the clock. Which keys there are and how many is known only from their values: so `keys`, `count`
/// and `contains` read and decode values, `count` all of its range at once, and where one cannot be decoded they throw
/// `corrupted`.
///
/// ## Where it stands
///
/// Outside of a cache: a cache above it would go on giving what has expired.
public final class ExpiringStore<Base: DataStore, Value: Sendable>: DataStore where Base.Value == Expiring<Value> {
  /// The store that keeps the values with their deadlines.
  public let base: Base

  /// When an entry expires where its write does not say.
  public let expiration: Expiration

  /// Whether writes remove some of what has expired.
  public let purgesOnWrite: Bool

  /// What the clock on the wall shows.
  private let date: @Sendable () -> Date

  /// The operations that call the base more than once, for which closing waits.
  let running = RunningOperations()

  /// What is due of the purging by writes.
  let writePurge = Mutex(WritePurge())

  /// The renewals of sliding deadlines that are not yet in the base, and what was done in the background.
  let renewals = Mutex(PendingRenewals())

  /// Whether there may be such renewals, so that reads that need none take no lock.
  let hasRenewals = Atomic(false)

  /// The task that writes the last batch of renewals.
  let renewing = Mutex<Task<RenewalOutcome, Never>?>(nil)

  /// Lets the entries of a store expire.
  ///
  /// - Parameters:
  ///   - base: The store that keeps the values with their deadlines.
  ///   - expiration: When an entry expires where its write does not say; never unless given. Writes that need it are refused
  ///     with `invalidArgument` where it makes no sense.
  ///   - purgesOnWrite: Whether writes remove some of what has expired: one in sixteen looks at the next 32 entries, so
  ///     that space is given back faster than it is taken. `true` unless said.
  ///   - now: Tells the time; that of the system unless given. It must not call the store.
  public init(
    _ base: Base, expiration: Expiration = .never, purgesOnWrite: Bool = true,
    now: @escaping @Sendable () -> Date = { Date.now }
  ) {
    self.base = base
    self.expiration = expiration
    self.purgesOnWrite = purgesOnWrite
    date = now
  }

  /// Lets the entries of a store expire, and removes first what has expired.
  ///
  /// - Parameters:
  ///   - base: The store that keeps the values with their deadlines.
  ///   - expiration: When an entry expires where its write does not say; never unless given.
  ///   - purgesOnWrite: Whether writes remove some of what has expired; `true` unless said.
  ///   - limit: The most entries to remove first; `Int.max` for all that have expired.
  ///   - now: Tells the time; that of the system unless given. It must not call the store.
  /// - Throws: As ``purgeExpired(limit:)``. The base stays open.
  public convenience init(
    _ base: Base, expiration: Expiration = .never, purgesOnWrite: Bool = true, purgingUpTo limit: Int,
    now: @escaping @Sendable () -> Date = { Date.now }
  ) async throws {
    self.init(base, expiration: expiration, purgesOnWrite: purgesOnWrite, now: now)
    try await purgeExpired(limit: limit)
  }

  /// What the base says of itself; its statistics tell live and expired entries apart.
  public var information: StoreInformation {
    var information = base.information
    if let maintenance = information.maintenance {
      information.maintenance = ExpiringStoreMaintenance(store: self, base: maintenance)
    }
    return information
  }

  /// The time.
  @usableFromInline
  func now() -> WallTime {
    WallTime(date())
  }

  // MARK: Reading

  // The time is taken before the base is read. Taken behind it, an entry could be found past a deadline that was put
  // off between the two, and be reported absent though it never was.

  /// Reads the value of one key; see `DataStore`.
  ///
  /// A sliding deadline that is due is renewed in the background, but not in a cancelled task.
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

  /// Reads the values of several keys as they are at one moment; see `DataStore`.
  ///
  /// Sliding deadlines that are due are renewed in the background, but not in a cancelled task.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    let now = now()
    let pending = pendingRenewals(of: keys)
    let found = try await base.values(forKeys: keys)
    var due: [(key: StoreKey, deadline: Deadline)] = []
    let values = found.indices.map { index -> Value? in
      guard let entry = found[index], let stored = entry.deadline else { return found[index]?.value }
      let renewal = pending.isEmpty ? nil : pending[index]
      let deadline = renewal?.deadline(inPlaceOf: stored) ?? stored
      guard !deadline.isPast(at: now) else { return nil }
      if deadline.moved(byReadAt: now) != nil || needsRetry(renewal, at: now) { due.append((keys[index], stored)) }
      return entry.value
    }
    renew(due)
    return values
  }

  /// Reads the first live entries of a range as they are at one moment; see `DataStore`.
  ///
  /// It puts off no deadline. Where expired entries lie between the live ones, it reads the range again from its start,
  /// each time twice as much, until it has enough.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try base.information.check(limit: limit, for: .entries)
    return try await liveEntries(in: range, limit: limit, order: order, for: .entries).map { entry in
      StoreEntry(key: entry.key, value: entry.value.value)
    }
  }

  /// Reads the first live keys of a range as they are at one moment, which takes decoding the values; see `DataStore`.
  ///
  /// - Throws: As ``entries(in:limit:order:)``, `corrupted` included.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.information.check(limit: limit, for: .keys)
    return try await liveEntries(in: range, limit: limit, order: order, for: .keys).map { $0.key }
  }

  /// Counts the live entries of a range, which takes decoding all their values and holding them in memory; see `DataStore`.
  ///
  /// - Throws: As ``entries(in:limit:order:)``, `corrupted` included.
  public func count(in range: KeyRange) async throws -> Int {
    try await liveEntries(in: range, limit: .max, order: .ascending, for: .count).count
  }

  private func liveEntries(
    in range: KeyRange, limit: Int, order: ScanOrder, for operation: StoreOperation
  ) async throws -> [StoreEntry<Expiring<Value>>] {
    guard running.begin() else { throw base.information.closedError(for: operation) }
    defer { running.end() }
    let now = now()
    let renewals = allRenewals()
    func isLive(_ entry: StoreEntry<Expiring<Value>>) -> Bool { entry.value.isLive(at: now, with: renewals[entry.key]) }
    var size = limit
    while true {
      let found = try await reporting(operation) {
        try await firstEntries(in: range, limit: size, order: order, needed: limit, isLive)
      }
      let live = found.filter(isLive)
      // Fewer than asked for: there are no more.
      if live.count >= limit || found.count < size { return live.count > limit ? Array(live.prefix(limit)) : live }
      size = size > .max / 2 ? .max : size * 2
    }
  }

  /// Reads the first entries of a range, or those before what cannot be read if enough of them are live.
  private func firstEntries(
    in range: KeyRange, limit: Int, order: ScanOrder, needed: Int, _ isLive: (StoreEntry<Expiring<Value>>) -> Bool
  ) async throws -> [StoreEntry<Expiring<Value>>] {
    do {
      return try await base.entries(in: range, limit: limit, order: order)
    } catch let error as StoreError where limit > needed {
      // Damage behind what was asked for is met only since more is read than that.
      guard let lost = error.lostKeys else { throw error }
      let readable = order == .ascending ? range.part(before: lost) : range.part(after: lost)
      guard let readable else { throw error }
      let found = try await base.entries(in: readable, limit: limit, order: order)
      guard found.count(where: isLive) >= needed else { throw error }
      return found
    }
  }

  // MARK: Writing

  /// Makes several changes, all or none of them, and gives what is set the expiration of the store; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await apply(ExpiringBatch(changes))
  }

  /// Makes several changes, all or none of them, and gives what is set the expiration of its own or of the store.
  ///
  /// - Parameter batch: The changes.
  /// - Throws: As `apply(_:)` of a `ChangeBatch`; `invalidArgument` where an expiration makes no sense.
  public func apply(_ batch: ExpiringBatch<Value>) async throws {
    try await writing(batch.changes.count, for: .apply) {
      try await base.apply(stored(batch, at: now()))
    }
  }

  /// The changes of a batch as the base makes them.
  ///
  /// - Throws: `StoreError` with `invalidArgument` where an expiration makes no sense.
  private func stored(_ batch: ExpiringBatch<Value>, at now: WallTime) throws -> ChangeBatch<Expiring<Value>> {
    let changes = batch.changes.changes
    var stored = ChangeBatch<Expiring<Value>>()
    stored.reserveCapacity(changes.count)
    // Neither pairs nor key paths: in generic code that is not specialized they cost more than all the rest.
    for index in changes.indices {
      switch changes[index] {
      case .set(let key, let value):
        let expiration = batch.expiration(at: index) ?? expiration
        try expiration.check(for: .apply, of: base.information)
        let deadline = expiration.deadline(from: now)
        let isOver = deadline?.isPast(at: now) ?? false
        stored.append(isOver ? .remove(key) : .set(key, Expiring(value, deadline: deadline)))
      case .remove(let key): stored.append(.remove(key))
      case .removeAll(let range): stored.append(.removeAll(range))
      }
    }
    return stored
  }

  /// Reads, changes and writes back the values of some keys as one step; see `DataStore`.
  ///
  /// Everything that `body` leaves gets the expiration of the store, also what it has not changed.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await update(keys, DeadlineRule(expiration: expiration, keepsDeadlines: false), body)
  }

  /// Writes pending renewals, and makes everything written before durable; see `DataStore`.
  ///
  /// A renewal that cannot be written is not an error here: ``statistics`` has it.
  public func synchronize() async throws {
    await settleRenewals()
    try await base.synchronize()
  }

  /// Waits for running operations, writes pending renewals as far as possible, and closes the base; see `DataStore`.
  public func close() async throws {
    await running.close()
    await settleRenewals()
    try await base.close()
  }
}

extension ExpiringStore: CustomStringConvertible {
  /// The base, in brackets.
  public var description: String { "ExpiringStore[\(base)]" }
}

extension ExpiringStore: InvalidatableStore where Base: InvalidatableStore {
  /// Lets the base forget its copy of one key; see `InvalidatableStore`.
  public func invalidate(_ key: StoreKey) throws {
    try base.invalidate(key)
  }

  /// Lets the base forget all copies; see `InvalidatableStore`.
  public func invalidateAll() throws {
    try base.invalidateAll()
  }
}

extension ExpiringStore: FlushableStore where Base: FlushableStore {
  /// Writes pending renewals, and waits until everything accepted before has been written below the base; see
  /// `FlushableStore`.
  public func flush() async throws {
    await settleRenewals()
    try await base.flush()
  }
}
