#if HTTPCache
import Foundation
public import HTTPCachingRules
public import HTTPTypes
public import Larder

/// An HTTP cache by RFC 9111 over any store of bytes.
///
/// ```swift
/// let store = try await LMDBStore(path: folder + "/http", codec: .raw)
/// let cache = try await HTTPCache(store, configuration: .private)
/// let response = try await cache.response(to: request) { forwarded in
///   let (head, body) = try await client.send(forwarded)
///   return HTTPForwardedResponse(head: head, body: body)
/// }
/// for try await chunk in response.body { … }
/// ```
///
/// The cache answers a request from the store if it may, and forwards it otherwise, through the closure that you pass. It
/// contains no client. Bodies are streamed both ways: memory is bounded whatever the size of a body.
///
/// ## Failing stores
///
/// A failing store never fails a request. An operation that throws or exceeds ``HTTPCacheConfiguration/storeTimeLimit``
/// counts in ``statistics()``, and the origin answers instead.
///
/// ## Failing origins
///
/// While an origin fails or hangs, a stale response that may be used answers immediately, and one request at a time probes
/// the origin in the background.
///
/// ## Concurrency
///
/// All methods can be called from any task. Requests for the same URL that need the origin at the same time share one
/// forwarded request, if its response answers them all.
public final class HTTPCache: Sendable {
  /// A closure that sends a request to the origin.
  public typealias Forward = @Sendable (_ request: HTTPRequest) async throws -> HTTPForwardedResponse

  /// The settings.
  public let configuration: HTTPCacheConfiguration

  let rules: HTTPCacheRules
  let storage: CacheStorage
  let calls: StoreCalls
  let waitLimit: TimeLimit
  let originTimeLimit: TimeLimit
  let stallLimit: TimeLimit

  struct State {
    var flights: Flights<Fetch>
    /// The fetches that are changing the responses stored for a URL after their callers were answered.
    var settling: [String: [Fetch]] = [:]
    /// The invalidations that the store has not carried out yet, because it failed.
    var pending = PendingInvalidations()
    /// The failures of origins that requests must know.
    var failures = OriginFailures()
    var statistics = HTTPCacheStatistics()
  }

  let state: Locked<State>

  #if Metrics
  private let instruments: HTTPCacheInstruments?
  #endif

  /// Opens a cache.
  ///
  /// Opening removes what a program left behind that was killed while it stored bodies. It reads no responses.
  ///
  /// ```swift
  /// let store = try await SQLiteStore(path: folder + "/http.db", codec: .raw)
  /// let cache = try await HTTPCache(store, configuration: .private)
  /// ```
  ///
  /// - Parameters:
  ///   - store: The store of bytes. Other entries are left alone. Several caches can use one store at the same time if the
  ///     store can be shared, also in different processes, with the same capacity and prefix.
  ///   - configuration: The settings.
  /// - Throws: ``HTTPCacheError`` with `invalidConfiguration`; `StoreError` with `versionMismatch` if a newer version of
  ///   Larder wrote the entries; `corrupted`; the errors of the store.
  public init(_ store: some DataStore<[UInt8]>, configuration: HTTPCacheConfiguration) async throws {
    try configuration.check()
    self.configuration = configuration
    rules = HTTPCacheRules(configuration)
    storage = try await CacheStorage(AnyDataStore(store), options: StorageOptions(configuration))
    let clock = configuration.clock
    calls = StoreCalls(of: store.information.name, limit: configuration.storeTimeLimit, clock: clock)
    waitLimit = TimeLimit(configuration.waitLimit, clock: clock)
    originTimeLimit = waitLimit.with(configuration.originTimeLimit)
    stallLimit = waitLimit.with(configuration.stallLimit)
    #if Metrics
    instruments = configuration.metering.flatMap { HTTPCacheInstruments($0, clock: clock) }
    #endif
    state = Locked(State(flights: Flights(coolDown: configuration.coolDown)))
  }

  /// The present time for the rules.
  var now: Date { configuration.now() }

  /// The present time for time limits.
  var elapsed: Duration { waitLimit.now }

  // MARK: Requests

  /// Returns the response to a request, from the store or from the origin.
  ///
  /// If the task is cancelled, the request to the origin is cancelled as well, unless it serves other callers.
  ///
  /// ```swift
  /// let response = try await cache.response(to: request, policy: .preferCache, forward: forward)
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request. It must have a scheme, an authority, and a path without a fragment, no credentials in the
  ///     authority, and at most one field `Host`. A `Host` that names another server than the authority has responses of
  ///     its own. The body of the request, if it has one, is the business of `forward`. A request to the origin may have
  ///     a range, conditions and directives; the cache obeys them all.
  ///   - policy: The policy. Defaults to `standard`.
  ///   - partition: The partition of the request. Defaults to `nil`, for the one of
  ///     ``HTTPCacheConfiguration/partition``.
  ///   - identity: The identity of the user of the request. Defaults to `nil`, for the one of
  ///     ``HTTPCacheConfiguration/identity``.
  ///   - waitLimit: The time that the request waits for the responses to others before it is forwarded by itself.
  ///     Defaults to `nil`, for no limit other than those of ``HTTPCacheConfiguration/waitLimit``. If it is less than
  ///     one second, an error that `forward` throws after this time does not count as a failure of the origin.
  ///   - forward: A closure that sends a request to the origin. The request that it receives has the method and the URL of
  ///     `request`, with the scheme and the host in lower case and without the scheme's default port. It may have other
  ///     conditions or another range. The closure can be called after this method has returned, to refresh a stale response
  ///     in the background or to probe an origin that fails. An error that it throws counts as a failure of the origin, except
  ///     for a `CancellationError`.
  /// - Returns: The response.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`; `CancellationError`; the error of `forward` if no stored response may
  ///   be used in its place.
  public func response(
    to request: HTTPRequest, policy: HTTPCachePolicy = .standard, partition: [UInt8]? = nil,
    identity: [UInt8]? = nil, waitLimit: Duration? = nil, forward: @escaping Forward
  ) async throws -> HTTPCacheResponse {
    #if Metrics
    if let instruments {
      return try await instruments.measureRequest {
        try await respond(
          to: request, policy, partition, identity, waitLimit, instruments.measuring(forward))
      }
    }
    #endif
    return try await respond(to: request, policy, partition, identity, waitLimit, forward)
  }

  private func respond(
    to request: HTTPRequest, _ policy: HTTPCachePolicy, _ partition: [UInt8]?, _ identity: [UInt8]?,
    _ waitLimit: Duration?, _ forward: @escaping Forward
  ) async throws -> HTTPCacheResponse {
    let target = try RequestTarget(request, configuration.queryKey)
    let (request, url) = (target.request, target.url)
    let scope = CacheScope(
      partition: target.partition(in: partition ?? configuration.partition(request)),
      identity: identity ?? configuration.identity(request))
    count { $0.requestCount += 1 }
    try await settle(url, waitLimit)
    var entries = try await entries(url: url, scope)
    while true {
      let decision = rules.decide(
        request: request, url: url, scope: scope, policy: policy, stored: entries.map(\.response), now: now)
      let attempt: Attempt
      switch decision {
      case .answer(let reuse):
        attempt = try await answer(reuse, from: entries[reuse.position])
        if case .response = attempt {
          count(reuse)
          storage.noteUse(of: entries[reuse.position])
          if let refresh = reuse.refresh { self.refresh(refresh, entries, waitLimit, forward) }
        }
      case .refuse(let head, let status):
        attempt = .response(refusal(head, status))
      case .forward(let exchange):
        if let reuse = staleAnswerWhileFailing(exchange) {
          attempt = try await answer(reuse, from: entries[reuse.position])
          if case .response = attempt {
            count(reuse)
            storage.noteUse(of: entries[reuse.position])
            probe(exchange, entries, waitLimit, forward)
          }
        } else {
          attempt = try await response(to: exchange, entries, waitLimit, forward)
        }
      }
      switch attempt {
      case .response(let response): return response
      case .unreadable(let position): entries.remove(at: position)
      }
    }
  }

  /// The result of an attempt to answer a request.
  enum Attempt {
    case response(HTTPCacheResponse)
    /// The stored response at a position cannot be read, and must be left out of the next attempt.
    case unreadable(Int)
  }

  /// Waits until earlier fetches have stored their responses, so a caller that has read the whole of a response finds
  /// it in the cache.
  private func settle(_ url: String, _ limit: Duration?) async throws {
    let fetches = state.withLock { $0.settling.isEmpty ? [] : $0.settling[url] ?? [] }
    guard !fetches.isEmpty else { return }
    let limit = limit.map { waitLimit.with(max(.zero, min($0, configuration.waitLimit))) } ?? waitLimit
    for fetch in fetches {
      do {
        try await fetch.settlement.value(within: limit)
      } catch is SharedResult<Void>.TimedOut {
        return
      }
    }
  }

  /// Reads the stored responses for a URL: those of a user, and the public ones of all.
  ///
  /// If the store fails, the array is empty.
  private func entries(url: String, _ scope: CacheScope) async throws -> [StoredEntry] {
    guard !isInvalidated(url) else { return [] }
    do {
      return try await calls { [storage, rules] in
        let own = try await storage.entries(url: url, partition: scope.own)
        guard scope.hasIdentity else { return own }
        return own
          + (try await storage.entries(url: url, partition: scope.common)).filter { rules.isPublic($0.response) }
      }
    } catch let error as CancellationError {
      throw error
    } catch {
      // The failure is counted. The origin answers.
      return []
    }
  }

  // MARK: Statistics

  /// Returns the events since the cache was opened, in this process.
  ///
  /// ```swift
  /// let statistics = cache.statistics()
  /// print(statistics.hitCount, "of", statistics.requestCount, "requests were answered without the origin")
  /// ```
  public func statistics() -> HTTPCacheStatistics {
    var statistics = state.withLock { $0.statistics }
    let (counters, counts) = (storage.counters, calls.counts)
    statistics.evictionCount = counters.evictions
    statistics.evictedBytes = counters.evictedBytes
    statistics.damageCount = counters.damagedResponses
    statistics.storeFailureCount = counts.failures + counters.failedUses
    statistics.storeTimeoutCount = counts.timeouts
    return statistics
  }

  func count(_ change: (inout HTTPCacheStatistics) -> Void) {
    state.withLock { change(&$0.statistics) }
    #if Metrics
    if let instruments { instruments.report(statistics()) }
    #endif
  }

  private func count(_ reuse: Reuse) {
    count { statistics in
      statistics.hitCount += 1
      if reuse.status.isStale { statistics.staleCount += 1 }
    }
  }
}
#endif
