public import Foundation
public import Larder

/// A decorator that keeps copies of the entries of a slow base in a faster store, where they outlive the process.
///
/// ```swift
/// let disk = try await LMDBStore(path: folder + "/cache", codec: .raw, durability: .buffered).bounded(bytes: 200_000_000)
/// let articles = try origin.cached(
///   in: disk, codec: .cbor(Article.self), configuration: TieredStoreConfiguration(timeToLive: .seconds(3600)))
/// ```
///
/// Reads take an entry from the cache or else load it from the base, and tasks that miss the same key share one load.
/// Writes go through to the base, with all its guarantees. Every read that begins after a write sees its changes, as
/// with ``CachedStore``, also after a restart.
///
/// A write first removes the cached entries of its keys, durably, and writes to the base only then. If the process dies
/// in the meantime, the next one finds nothing in the cache and asks the base. The first copy after opening, and after
/// a write whose outcome is unknown, synchronizes the base, so no copy outlives what a power failure takes back.
///
/// **Writes beside the cache.** If the base is an `ObservableStore`, copies that are older than a report of their key are not
/// used. If it reports the commits of all hosts, as a `PostgresStore` can, no copy is used that was replaced more than
/// ``TieredStoreConfiguration/maximumLag`` ago, and none of an earlier process, as with ``CachedStore``. Over any other base,
/// writes that are not made through this object leave the cached entries as they are until their
/// ``TieredStoreConfiguration/timeToLive`` is over. If other programs can write to the base, or if it
/// can lose accepted writes, the initializer requires a time to live. For an exclusive
/// base, empty the cache after you have changed the base in another way. Only one `TieredStore` at a time should use a
/// cache, and always for the same base; several share a store of bytes by different ``TieredStoreConfiguration/keyPrefix``es.
/// If several use the same prefix, such as those of hosts that share their loads, each of them can serve a copy until its time
/// to live is over, even if it has written the key itself: another one may have stored the copy from an earlier read, with the
/// time of another clock.
///
/// **If the cache fails,** reads go to the base, and the error is reported to ``TieredStoreConfiguration/onCacheFailure``. A
/// write throws the error and leaves the base unchanged if the former entries cannot be removed from the cache.
///
/// Scans and counts go to the base. A key that is too long for the cache isn't cached. Closing waits for running
/// operations and closes the cache and the base.
public final class TieredStore<Base: DataStore, Cache: DataStore>: DataStore where Cache.Value == [UInt8] {
  /// The type of the values in the base.
  public typealias Value = Base.Value

  typealias Keys = BusyKeys<SharedLoad.Part>

  struct State: Sendable {
    var busy = Keys()
    var refreshes = Refreshes()
    var reported = ReportedTimes()
    var statistics = TieredStoreStatistics()
  }

  /// The store that is decorated.
  public let base: Base

  /// The store of bytes that keeps the copies.
  public let cache: Cache

  /// The times and the prefix of the copies.
  public let configuration: TieredStoreConfiguration

  /// The copies.
  let copies: TypedView<Cache, CachedCopy<Value>>

  let state = Locked(State())

  /// A lock that insertions into the cache share, so a write can wait for those that are running.
  ///
  /// An insertion checks whether it is allowed while it holds the lock. A write first marks its keys as busy, which
  /// forbids every later insertion, and then waits until it has had the lock alone.
  let insertions = WriteGate()

  /// The doubts whether the stores still show the same entries after a power failure.
  let baseDoubt = Doubt()
  let cacheDoubt = Doubt()

  /// The running operations that closing waits for.
  let operations = RunningOperations()

  private let date: @Sendable () -> Date

  /// The observation of the base, if it reports its changes.
  private let observation = Locked<StoreObservation?>(nil)

  /// A Boolean value that indicates whether the lag of the base's reports decides whether copies are used.
  private let limitsLag: Bool

  /// Creates a store that keeps copies of entries in another store.
  ///
  /// - Parameters:
  ///   - base: The store to decorate.
  ///   - cache: The store of bytes for the copies. It may be bounded, and has to be writable. With the durability
  ///     `Durability.buffered` or `Durability.accepted`, each write calls `synchronize()` on it before it writes to the
  ///     base.
  ///   - codec: The codec of the copies.
  ///   - configuration: The times and the prefix of the copies.
  ///   - now: A closure that returns the current time. It must not call the store. Defaults to the system time.
  /// - Throws: `StoreError`: `invalidArgument` if an option is not as described, or if there is no time to live and others
  ///   can write to the base or the base can lose accepted writes; `notPermitted` if the cache is read-only; `unsupported`
  ///   if the entries of the base expire: put the expiring store above the cache; or if the values of the base are encrypted,
  ///   and those of the cache are not.
  public init(
    _ base: Base, in cache: Cache, codec: some Codec<Value>,
    configuration: TieredStoreConfiguration = TieredStoreConfiguration(),
    now: @escaping @Sendable () -> Date = { Date.now }
  ) throws {
    self.base = base
    self.cache = cache
    self.configuration = configuration
    date = now
    let observable = AnyDataStore(base).observation
    limitsLag = observable != nil && configuration.whenReportsLag == .loadFromBase
    copies = TypedView(cache, prefix: configuration.keyPrefix, codec: CachedCopyCodec(codec))
    try cache.information.checkWritable(for: .open)
    try configuration.check(for: base.information)
    try base.information.checkEncryption(
      ofCopies: copies.information.valuesAtRest, in: cache.information.name,
      allowsPlainCopies: configuration.allowsPlainCopies)
    guard !AnyDataStore(base).expires else {
      throw StoreError(
        .unsupported, during: .open, store: base.information.name,
        message: "copies of entries that expire would outlive them; put the expiring store above the cache")
    }
    let information = base.information
    if limitsLag, information.sharing == .betweenHosts, information.reportsAllCommits {
      // Of what happened before, there are no reports.
      let time = self.now()
      state.withLock { $0.reported.note(.range(.all), at: time) }
    }
    let observation = observable?.observe(.all) { [weak self] event in
      if case .changed(let changes) = event { self?.receive(changes) }
    }
    self.observation.withLock { $0 = observation }
  }

  /// Notes what the base has reported, except for the first report of a key during a write that changes it, which is the
  /// write's own; see ``BusyKeys``.
  private func receive(_ changes: [StoreChange]) {
    let time = now()
    state.withLock { state in
      for change in changes {
        switch change {
        case .key(let key):
          if state.busy.report(key) { state.reported.note(change, at: time) }
        case .range(let range):
          if let key = range.onlyKey {
            state.busy.invalidate(key)
            state.reported.note(.key(key), at: time)
          } else {
            state.busy.invalidate(in: range)
            state.reported.note(change, at: time)
          }
        }
      }
    }
  }

  /// Counts keys and ranges as reported by the base, after a write of them that did not take place.
  ///
  /// A report that came since the write began was taken for its own, and the copies are still there.
  func noteReports(of keys: [StoreKey], in ranges: [KeyRange]) {
    let time = now()
    state.withLock { state in
      for change in keys.map(StoreChange.key) + ranges.map(StoreChange.range) { state.reported.note(change, at: time) }
    }
  }

  /// A Boolean value that indicates whether the reports of the base are recent enough to use copies.
  var isCurrent: Bool {
    guard limitsLag, let observation = observation.withLock(\.self) else { return true }
    return observation.lag <= configuration.maximumLag
  }

  /// Returns the time of a copy whose load or write begins now.
  func beginCopying() -> Int64 {
    let time = now()
    state.withLock { $0.reported.note(time) }
    return time
  }

  /// The information of the base, but reads may be copies, and values of a base in memory are at rest as their copies are.
  public var information: StoreInformation {
    var information = base.information
    information.readsMayBeCopies = true
    // The base decides in all other cases, because each value that is read has been there.
    if information.valuesAtRest == .absent { information.valuesAtRest = copies.information.valuesAtRest }
    return information
  }

  /// Returns the statistics since the store was created.
  ///
  /// ```swift
  /// let statistics = articles.statistics()
  /// print(statistics.hits, statistics.loads, statistics.cacheFailures)
  /// ```
  public func statistics() -> TieredStoreStatistics { state.withLock { $0.statistics } }

  /// The current time, in microseconds since 1970.
  func now() -> Int64 { date().microsecondsSince1970 }

  // MARK: Lifecycle

  /// Ensures that every earlier write is durable in the base; see `DataStore`.
  public func synchronize() async throws {
    try await base.synchronize()
  }

  /// Waits for running operations, including background loads, and closes the cache and the base.
  ///
  /// - Throws: The first error of the cache and the base, both of which are closed in any case.
  public func close() async throws {
    await operations.close()
    var failure: (any Error)?
    do { try await cache.close() } catch { failure = error }
    try await base.close()
    if let failure { throw failure }
  }

  /// Records an error of the cache that no caller receives.
  func report(_ error: any Error) {
    state.withLock { $0.statistics.cacheFailures += 1 }
    configuration.onCacheFailure?(error)
  }
}

extension TieredStore: CustomStringConvertible {
  /// The descriptions of the base and the cache, in brackets.
  public var description: String { "TieredStore[\(base), in: \(cache)]" }
}

extension TieredStore: ReadForwardingStore {
  /// Calls the base.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await body()
  }
}
extension TieredStore: FlushableStore where Base: FlushableStore {}
extension TieredStore: ObservableStore where Base: ObservableStore {}
extension TieredStore: MaintainableStore where Base: MaintainableStore {}

extension DataStore {
  /// Returns a decorator that keeps copies of the entries of this store in a faster one; see ``TieredStore``.
  ///
  /// - Parameters:
  ///   - cache: The store of bytes for the copies. They may be bounded.
  ///   - codec: The codec of the copies.
  ///   - configuration: The times and the prefix of the copies.
  ///   - now: A closure that returns the current time. It must not call the store. Defaults to the system time.
  /// - Throws: `StoreError`: `invalidArgument` if an option is not as described, or if there is no time to live and others
  ///   can write to this store or it can lose accepted writes; `notPermitted` if the cache is read-only; `unsupported` if
  ///   the entries of this store expire, or its values are encrypted and those of the cache are not.
  public func cached<Cache: DataStore>(
    in cache: Cache, codec: some Codec<Value>, configuration: TieredStoreConfiguration = TieredStoreConfiguration(),
    now: @escaping @Sendable () -> Date = { Date.now }
  ) throws -> TieredStore<Self, Cache> where Cache.Value == [UInt8] {
    try TieredStore(self, in: cache, codec: codec, configuration: configuration, now: now)
  }
}
