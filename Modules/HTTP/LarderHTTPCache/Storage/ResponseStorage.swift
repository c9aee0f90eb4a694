#if HTTPCache
import Foundation
import HTTPCachingRules
import Larder

/// The settings of a ``ResponseStorage``.
struct StorageOptions: Sendable {
  /// The prefix of all keys.
  var prefix: StoreKey = "http/"

  /// The number of bytes that all entries of the cache may have, bodies that are being stored and retired ones included.
  var capacity: Int

  /// The length in bytes above which a body is not stored.
  var largestBody: Int

  /// The number of responses for one URL in one partition, beyond which the oldest is removed.
  var maximumVariants = 32

  /// The time that a retired body remains for readers in other processes.
  var retention: Duration = .seconds(60)

  /// The time without a renewal after which a body that is being stored counts as abandoned.
  var markTimeout: Duration = .seconds(60)

  /// The processes that may use the store.
  var processes = ProcessTable.system

  /// The time after which a further use of a response is persisted.
  var useInterval: Duration = .seconds(600)

  /// A closure that returns the current time.
  var now: @Sendable () -> Date = { Date.now }

  /// The number of bytes that the bodies which are being stored may have together: a fifth of the capacity, or the
  /// largest body if that is more, but at most half of the capacity.
  ///
  /// Responses leave this share free, so the unfinished bodies of a program that is killed again and again evict
  /// nothing. A larger share would leave no room for a response with a body of this size.
  var unfinishedShare: Int { max(capacity / 5, min(largestBody, capacity / 2)) }

  /// Creates settings.
  ///
  /// - Parameters:
  ///   - capacity: The capacity in bytes.
  ///   - largestBody: The length above which a body is not stored. Defaults to a twentieth of the capacity.
  init(capacity: Int, largestBody: Int? = nil) {
    self.capacity = capacity
    self.largestBody = largestBody ?? capacity / 20
  }
}

/// A reason why ``ResponseStorage`` does not store a response, besides an error of the store.
enum StorageRefusal: Error, Equatable {
  /// The body is larger than ``StorageOptions/largestBody``, or the head than the limit of a record.
  case tooLarge

  /// There is no room, because all other bytes are in use, or because the bodies that are being stored and the retired
  /// ones that are still being read have used up their share.
  case noRoom

  /// The URL was invalidated after the request was forwarded.
  case invalidated

  /// Another writer has removed what the response builds on, or the body was swept as abandoned.
  case superseded
}

/// The state of the invalidations when a request is forwarded.
struct FetchToken: Sendable, Equatable {
  /// The number of invalidations so far.
  let invalidations: UInt64
}

/// The size of the cache, by its totals.
struct StorageUsage: Sendable, Equatable {
  /// The number of bytes of all entries.
  var bytes: Int

  /// The number of responses.
  var responses: Int
}

/// The events in a storage since it was opened.
struct StorageCounters: Sendable, Equatable {
  /// The number of responses that were removed to make room for others, and the bytes of their bodies.
  var evictions = 0
  var evictedBytes = 0

  /// The number of times that a damaged response was found and skipped.
  var damagedResponses = 0

  /// The number of times that persisting uses in the background failed.
  var failedUses = 0
}

/// The responses of an HTTP cache in a store of bytes.
///
/// Every change is one update of the store, with the totals, so several storages, also of different processes, can
/// share a store. A response is written last, in one update with everything that depends on it: the end of its body's
/// mark, the retirement of the bodies that it replaces, and the check that no invalidation came since its request.
final class ResponseStorage<Base: DataStore>: Sendable where Base.Value == [UInt8] {
  let base: Base
  let options: StorageOptions
  let layout: StorageLayout

  /// The number of bytes that all entries but the transient ones may have: the capacity without the share of the bodies
  /// that are being stored.
  let lastingCapacity: Int

  /// The random identifier of this object, the owner of its marks.
  let owner = UInt64.random(in: 0 ... .max)

  /// The bodies that readers and writers of this object use.
  let leases = BodyLeases()

  let uses: OrderOfUse
  let counted = Locked(StorageCounters())

  /// The lock of storing and invalidating responses.
  let storeGate = WriteGate()

  /// The lock of making room, so not all writers evict at the same time.
  let roomGate = WriteGate()

  /// The number of entries that one step of a walk reads, and the number of chunks that one commit removes.
  static var pageSize: Int { 64 }
  static var sliceLength: Int { 32 }

  /// Creates the storage without reading or changing anything.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if a setting is invalid.
  init(unopened base: Base, options: StorageOptions) throws {
    func refuse(_ message: String) -> StoreError {
      StoreError(.invalidArgument, during: .open, store: base.information.name, message: message)
    }
    guard let layout = StorageLayout(prefix: options.prefix, maximumKeyLength: base.information.maximumKeyLength) else {
      throw refuse(
        "the prefix of the HTTP cache has \(options.prefix.count) bytes, which leaves too few of the "
          + "\(base.information.maximumKeyLength) bytes of a key; choose a shorter one")
    }
    guard options.capacity >= 1 else { throw refuse("the capacity must be at least 1 byte, not \(options.capacity)") }
    guard options.largestBody >= 0 else {
      throw refuse("the largest body must have at least 0 bytes, not \(options.largestBody)")
    }
    guard options.maximumVariants >= 1 else {
      throw refuse("the maximum number of variants must be at least 1, not \(options.maximumVariants)")
    }
    let valueLimit = base.information.maximumValueSize ?? .max
    guard valueLimit >= StorageLayout.chunkLength else {
      throw refuse(
        "the store's values have at most \(valueLimit) bytes; an HTTP cache needs \(StorageLayout.chunkLength)")
    }
    self.base = base
    self.options = options
    self.layout = layout
    lastingCapacity = max(0, options.capacity - layout.footprint(ofUnfinished: options.unfinishedShare))
    // The next use of a response may be in another process, which evicts by what is written.
    uses = OrderOfUse(interval: options.useInterval, collectingFor: .zero)
  }

  /// Opens the storage, sweeps abandoned and retired bodies, and evicts if there is more than the capacity.
  ///
  /// - Throws: `StoreError` with `invalidArgument` if a setting is invalid; `versionMismatch` if a newer version of
  ///   Larder wrote the entries; `corrupted` if the totals are missing or damaged; the errors of the store.
  convenience init(_ base: Base, options: StorageOptions) async throws {
    try self.init(unopened: base, options: options)
    if try await base.value(forKey: layout.totalsKey) == nil,
      let key = try await base.keys(in: layout.everything, limit: 1, order: .ascending).first
    {
      throw StoreError(
        .corrupted, during: .open, store: base.information.name, key: key,
        message: "there are entries with the prefix of the HTTP cache, but no totals; remove all entries with the "
          + "prefix, or choose another one")
    }
    try await sweep()
    _ = try await makeRoom(for: 0, lasting: 0)
  }

  /// The current time in microseconds since 1970.
  var now: Int64 { options.now().microsecondsSince1970 }

  /// The events since the storage was opened.
  var counters: StorageCounters { counted.withLock { $0 } }

  /// Returns whether a duration has passed since a time, or the clock was set back by as much.
  func has(_ duration: Duration, passedSince time: Int64, at now: Int64) -> Bool {
    let (difference, overflow) = now.subtractingReportingOverflow(time)
    return overflow || .microseconds(difference) >= duration || .zero - .microseconds(difference) >= duration
  }

  // MARK: Reading

  func totals(for operation: StoreOperation) async throws -> StorageTotals {
    try StorageTotals(
      try await base.value(forKey: layout.totalsKey), store: base.information.name, for: operation)
  }

  /// Returns the number of bytes and of responses, from the totals.
  func usage() async throws -> StorageUsage {
    let totals = try await totals(for: .statistics)
    return StorageUsage(bytes: totals.bytes, responses: totals.responses)
  }

  /// Returns the state of the invalidations, for a request that is forwarded afterward.
  func beginFetch() async throws -> FetchToken {
    FetchToken(invalidations: try await totals(for: .value).invalidations)
  }

  /// Returns the stored responses for a URL in a partition, the newest first, and those from the future last.
  ///
  /// A damaged response is skipped and counted.
  func entries(url: String, partition: [UInt8]) async throws -> [StoredEntry] {
    // Another program may have written any number of them.
    let limit = 2 * options.maximumVariants
    let page = try await entries(in: layout.variants(url: url, partition: partition), limit: limit)
    let now = options.now()
    // The newest of a clock that was wrong would keep the others out for as long as the clock was ahead.
    func order(_ response: StoredResponse) -> Date {
      response.isFromFuture(at: now) ? .distantPast : response.responseTime
    }
    return page.entries.filter { $0.response.url == url && $0.response.partition == partition }
      .sorted { order($0.response) > order($1.response) }
  }

  /// Reads the first responses of a range, without the damaged ones.
  ///
  /// - Returns: The responses, and the range of those that were not read.
  func entries(in range: KeyRange, limit: Int) async throws -> (entries: [StoredEntry], rest: KeyRange?) {
    let page = try await page(in: range, limit: limit)
    let entries = page.entries.compactMap { StoredEntry($0.key, $0.value) }
    if entries.count < page.entries.count {
      counted.withLock { $0.damagedResponses += page.entries.count - entries.count }
    }
    return (entries, page.rest)
  }

  /// Reads the first entries of a range, with an empty value for one that the store can't read.
  ///
  /// - Returns: The entries, and the range of those that were not read, or `nil` if there are no more.
  func page(
    in range: KeyRange, limit: Int
  ) async throws -> (entries: [StoreEntry<[UInt8]>], rest: KeyRange?) {
    var entries: [StoreEntry<[UInt8]>] = []
    do {
      entries = try await base.entries(in: range, limit: limit, order: .ascending)
    } catch let error as StoreError where error.isValueUnreadable {
      for key in try await base.keys(in: range, limit: limit, order: .ascending) {
        entries.append(StoreEntry(key: key, value: try await readableValue(forKey: key, unreadable: []) ?? []))
      }
    }
    let last = entries.count < limit ? nil : entries.last
    return (entries, try last.map { try range.rest(behind: $0.key, of: base.information.name, during: .entries) })
  }

  /// Returns the responses with some keys, or `nil` for those that are gone or damaged.
  func entries(forKeys keys: [StoreKey]) async throws -> [StoredEntry?] {
    do {
      return zip(keys, try await base.values(forKeys: keys)).map { StoredEntry($0, $1) }
    } catch let error as StoreError where error.isValueUnreadable {
      var entries: [StoredEntry?] = []
      for key in keys { entries.append(StoredEntry(key, try await readableValue(forKey: key, unreadable: nil))) }
      return entries
    }
  }

  /// Returns the value of a key, `nil` if it is missing, or another one if the store can't read it.
  func readableValue(forKey key: StoreKey, unreadable: [UInt8]?) async throws -> [UInt8]? {
    do {
      return try await base.value(forKey: key)
    } catch let error as StoreError where error.isValueUnreadable {
      return unreadable
    }
  }

  // MARK: Committing

  /// Plans and commits changes, again if another writer changes something between planning and committing, and after
  /// making room.
  ///
  /// - Throws: ``StorageRefusal/noRoom``; `StoreError` with `conflict`; the errors of `plan` and of the store.
  func committing<Result>(
    _ plan: (inout StorageCommit) async throws -> Result
  ) async throws -> Result {
    // All writers of this object commit at the same time, so that one of them is stale more often than where they wait.
    try await base.information.repeating(.update, attempts: 1_000) { _ in
      var commit = StorageCommit(try await totals(for: .update), layout: layout)
      let result = try await plan(&commit)
      switch try await perform(commit) {
      case .performed: return result
      case .isStale: return nil
      case .refused(.needsRoom(let bytes, let lasting)):
        guard try await makeRoom(for: bytes, lasting: lasting) else { throw StorageRefusal.noRoom }
      case .refused(.shareIsFull):
        guard try await retireAbandoned() > 0 else { throw StorageRefusal.noRoom }
      case .refused(.failed(let error)): throw error
      }
      return nil
    }
  }

  private func perform(_ commit: StorageCommit) async throws -> ConditionalCommit<StorageCommit.Refusal>.Outcome {
    guard !commit.entries.keys.isEmpty else { return .performed }
    do {
      return try await base.perform(commit.withTotals(store: base.information.name))
    } catch let error as StoreError where error.isValueUnreadable {
      // A value that is to be replaced or removed can't be read. An update reads it, so make it empty first. No reader
      // takes an empty value for a response or a chunk.
      guard let key = error.key, commit.entries.concerns(key) else { throw error }
      try await base.apply([.set(key, [])])
      return .isStale
    }
  }

  // MARK: Uses

  /// Records that a stored response was used, and persists it in the background if that is due.
  ///
  /// The method never waits for the store.
  func noteUse(of entry: StoredEntry) {
    let now = now
    guard uses.note(entry.key, persisted: entry.used, at: now) else { return }
    uses.startWriting(at: now) { [self] keys in await persistUses(of: keys) }
  }

  /// Waits until the uses so far are persisted.
  func settleUses() async {
    await uses.settle(at: now) { [self] keys in await persistUses(of: keys) }
  }

  /// Persists the uses of responses, and returns whether it could.
  private func persistUses(of keys: [StoreKey]) async -> Bool {
    do {
      let moved = try await committing { commit in
        let now = now
        var moved: [StoreKey] = []
        for case let old? in try await entries(forKeys: keys) {
          // Another process may have persisted a use in the meantime.
          guard uses.isDue(at: now, after: old.used) else { continue }
          try commit.use(old, at: now)
          moved.append(old.key)
        }
        return moved
      }
      uses.finish(placed: moved, at: now)
      return true
    } catch {
      // The responses keep their places. Their next uses after the interval are recorded again.
      counted.withLock { $0.failedUses += 1 }
      return false
    }
  }
}
#endif
