#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import Larder

/// Stale responses while an origin fails, and the requests that find out whether it works again.
extension HTTPCache {
  // MARK: Stale responses

  /// Returns the stale response that answers a request because its origin is failing, or `nil` if the request must be
  /// forwarded.
  func staleAnswerWhileFailing(_ exchange: Exchange) -> Reuse? {
    guard !exchange.stored.isEmpty, let kind = state.withLock({ $0.failures.kind(of: exchange.url, at: elapsed) }),
      var reuse = staleAnswer(exchange, after: kind)
    else { return nil }
    var status = CacheStatus(isHit: true)
    (status.timeToLive, status.isStale) = (reuse.status.timeToLive, reuse.status.isStale)
    status.detail = "origin-failed"
    reuse.status = status
    return reuse
  }

  /// Returns the stored response that may answer a request after a failure, or `nil` if there isn't one.
  private func staleAnswer(_ exchange: Exchange, after failure: OriginFailure) -> Reuse? {
    guard case .answer(let reuse) = rules.decide(failureOf: exchange, by: failure, now: now) else { return nil }
    return reuse
  }

  /// Returns the stale response for a caller that has waited for the origin for too long, or `nil` if it must wait.
  ///
  /// The fetch becomes the probe of the origin, unless there is one.
  func lateAnswer(_ fetch: Fetch, _ exchange: Exchange, _ entries: [StoredEntry]) async throws -> HTTPCacheResponse? {
    guard let reuse = staleAnswer(exchange, after: .disconnected),
      case .response(let response) = try await answer(reuse, from: entries[reuse.position])
    else { return nil }
    if state.withLock({ $0.failures.noteLate(exchange.url, at: elapsed) }) {
      fetch.becomeProbe()
      limitTime(of: fetch)
    }
    count { $0.staleCount += 1 }
    return response
  }

  // MARK: Requests in the background

  /// Refreshes a stale response in the background, unless a fetch for it is under way.
  ///
  /// While the origin fails, only a probe does so.
  func refresh(_ exchange: Exchange, _ entries: [StoredEntry], _ limit: Duration?, _ forward: @escaping Forward) {
    let isFailing = state.withLock { $0.failures.kind(of: exchange.url, at: elapsed) } != nil
    fetchInBackground(exchange, entries, isProbe: isFailing, limit, forward)
  }

  /// Finds out in the background whether an origin works again, if a probe is due.
  func probe(_ exchange: Exchange, _ entries: [StoredEntry], _ limit: Duration?, _ forward: @escaping Forward) {
    var request = exchange.request
    // These are about the client's own copy.
    for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince, .range, .ifRange] {
      request.headerFields[fields: name] = []
    }
    let decision = rules.decide(
      request: request, url: exchange.url, scope: exchange.scope, policy: .standard, stored: exchange.stored, now: now)
    if case .forward(let plain) = decision { fetchInBackground(plain, entries, isProbe: true, limit, forward) }
  }

  private func fetchInBackground(
    _ exchange: Exchange, _ entries: [StoredEntry], isProbe: Bool, _ limit: Duration?, _ forward: @escaping Forward
  ) {
    let key = Flights<Fetch>.Key(url: exchange.url, partition: exchange.scope.own)
    let (now, deadline) = (elapsed, deadline(limit))
    func makeFetch() -> Fetch { Fetch(at: now, until: deadline, isBackground: true, isProbe: isProbe) }
    let fetch = state.withLock { state -> Fetch? in
      if isProbe, !state.failures.beginProbe(of: exchange.url, at: now) { return nil }
      switch state.flights.admit(key, at: now, makeFetch: makeFetch) {
      case .lead(let fetch): return fetch
      case .alone where isProbe: return makeFetch()
      case .alone, .join:
        // A request that is under way finds out as well.
        if isProbe { state.failures.cancelProbe(of: exchange.url) }
        return nil
      }
    }
    guard let fetch else { return }
    count { $0.refreshCount += 1 }
    fetch.start { await self.perform(fetch, exchange, entries, key, forward) }
    fetch.leave()
    limitTime(of: fetch)
  }

  /// Cancels a fetch without callers if there is no response, or no more of its body, for a long time.
  private func limitTime(of fetch: Fetch) {
    let limit = waitLimit.with(OriginFailures.longestProbe)
    Task {
      do {
        _ = try await fetch.outcome.value(within: limit)
      } catch {
        return fetch.attach()
      }
      while true {
        let count = fetch.receivedCount
        do {
          return try await fetch.settlement.value(within: limit)
        } catch {
          if fetch.receivedCount == count { return fetch.attach() }
        }
      }
    }
  }

  // MARK: Outcomes

  /// Records that there was no response to a request.
  func noteFailure(of fetch: Fetch, _ exchange: Exchange, _ error: any Error) {
    // A cancelled request says nothing about the origin, unless it was cancelled because the origin had not answered. Some
    // clients throw an error of their own when they are cancelled.
    let isCancelled = error is CancellationError || Task.isCancelled
    guard fetch.isProbe || (exchange.isRetrieval && !isCancelled) else { return }
    // Another caller may wait for longer.
    if let deadline = fetch.deadline, elapsed >= deadline {
      if fetch.isProbe { state.withLock { $0.failures.cancelProbe(of: exchange.url) } }
      return
    }
    noteFailure(.disconnected, of: fetch, exchange)
  }

  /// Records what the head of a response says about the origin.
  ///
  /// - Returns: A Boolean value that indicates whether the URL works if the body is complete.
  func noteHead(_ head: HTTPResponse, of fetch: Fetch, _ exchange: Exchange) -> Bool {
    guard exchange.isRetrieval else {
      state.withLock { $0.failures.noteResponse(from: exchange.url) }
      return false
    }
    if [500, 502, 503, 504].contains(head.status.code) {
      noteFailure(.errorResponse, of: fetch, exchange)
      return false
    }
    state.withLock { $0.failures.noteResponse(from: exchange.url) }
    return true
  }

  /// Records the end of a body whose head had no error.
  ///
  /// - Parameter isCut: A Boolean value that indicates whether the origin has cut the body short.
  func noteBody(isCut: Bool, of fetch: Fetch, _ exchange: Exchange) {
    if isCut {
      noteFailure(.errorResponse, of: fetch, exchange)
    } else {
      state.withLock { $0.failures.noteSuccess(of: exchange.url) }
    }
  }

  private func noteFailure(_ kind: OriginFailure, of fetch: Fetch, _ exchange: Exchange) {
    let wasProbe = fetch.isProbe
    state.withLock { $0.failures.noteFailure(kind, of: exchange.url, wasProbe: wasProbe, at: elapsed) }
  }
}

extension Exchange {
  /// A Boolean value that indicates whether a stale response could answer the request if the origin fails.
  ///
  /// An error of another request can be the fault of its body.
  fileprivate var isRetrieval: Bool {
    (request.method == .get || request.method == .head) && reason != .bypass
  }
}
#endif
