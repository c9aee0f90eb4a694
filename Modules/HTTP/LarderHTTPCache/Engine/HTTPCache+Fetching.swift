#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import Larder

extension HTTPCache {
  // MARK: Collapsing

  /// Returns the response to a request that needs the origin.
  func response(
    to exchange: Exchange, _ entries: [StoredEntry], _ limit: Duration?, _ forward: @escaping Forward
  ) async throws -> Attempt {
    let key = Flights<Fetch>.Key(url: exchange.url, partition: exchange.scope.own)
    let deadline = deadline(limit)
    func leadAlone() async throws -> Attempt {
      try await lead(Fetch(at: elapsed, until: deadline), exchange, entries, forward)
    }
    guard rules.mayCollapse(exchange.request, policy: exchange.policy) else { return try await leadAlone() }
    var limits = WaitLimits(deadline: deadline, mayBeStale: !entries.isEmpty)
    while true {
      let now = elapsed
      switch state.withLock({ $0.flights.admit(key, at: now) { Fetch(at: now, until: deadline) } }) {
      case .lead(let fetch): return try await lead(fetch, exchange, entries, forward, key)
      case .alone: return try await leadAlone()
      case .join(let fetch):
        guard fetch.join() else {
          // Its last caller has cancelled it.
          state.withLock { $0.flights.end(key, fetch) }
          continue
        }
        switch try await share(fetch, exchange, entries, &limits) {
        case .response(let response):
          count { $0.collapsedCount += 1 }
          return .response(response)
        case .stale(let response): return .response(response)
        case .unusable:
          state.withLock { $0.flights.refuse(key, fetch, at: elapsed) }
          return try await leadAlone()
        case .late(isCaller: true): return try await leadAlone()
        case .late(isCaller: false):
          // One of those who have waited leads another flight, and the others join it, so that no herd forms.
          state.withLock { $0.flights.end(key, fetch) }
          limits.hasWaited = true
        }
      }
    }
  }

  /// Returns the time until which a caller waits, or `nil` for no limit.
  func deadline(_ limit: Duration?) -> Duration? { limit.map { elapsed + max(.zero, $0) } }

  /// The limits for waiting for the fetches of other requests.
  private struct WaitLimits {
    enum Cause {
      /// The origin counts as failing.
      case origin
      /// The request need not wait for others any longer.
      case others
      /// The caller does not want to wait for others any longer.
      case caller
    }

    /// The time until which the caller wants to wait for others; `nil` for no limit.
    let deadline: Duration?
    /// A Boolean value that indicates whether a stale response could answer if the origin fails.
    var mayBeStale: Bool
    /// A Boolean value that indicates whether the request has waited for others as long as it must.
    ///
    /// It then waits without this limit, because the next fetch began when it could have been forwarded itself.
    var hasWaited = false

    init(deadline: Duration?, mayBeStale: Bool) {
      (self.deadline, self.mayBeStale) = (deadline, mayBeStale)
    }

    /// Returns the first limit of waiting for a fetch, or `nil`.
    func next(for fetch: Fetch, _ configuration: HTTPCacheConfiguration) -> (time: Duration, cause: Cause)? {
      let limits: [(time: Duration?, cause: Cause)] = [
        (mayBeStale ? fetch.start + configuration.originTimeLimit : nil, .origin),
        (hasWaited ? nil : fetch.start + configuration.waitLimit, .others), (deadline, .caller),
      ]
      return limits.compactMap { limit in limit.time.map { ($0, limit.cause) } }.min { $0.time < $1.time }
    }
  }

  private func lead(
    _ fetch: Fetch, _ exchange: Exchange, _ entries: [StoredEntry], _ forward: @escaping Forward,
    _ key: Flights<Fetch>.Key? = nil
  ) async throws -> Attempt {
    count { $0.forwardCounts[exchange.reason, default: 0] += 1 }
    defer { fetch.leave() }
    fetch.start { await self.perform(fetch, exchange, entries, key, forward) }
    let outcome: Fetch.Outcome
    do {
      // Without a stored response, nothing else could answer.
      outcome = try await fetch.outcome.value(within: entries.isEmpty ? nil : originTimeLimit)
    } catch is SharedResult<Fetch.Outcome>.TimedOut {
      if let response = try await lateAnswer(fetch, exchange, entries) { return .response(response) }
      outcome = try await fetch.outcome.value()
    }
    switch outcome {
    case .response(let received): return try await response(from: fetch, received, entries)
    case .failure(let error): return .response(try await response(afterFailure: error, of: exchange, entries))
    }
  }

  /// The result of waiting for the fetch of another request.
  private enum Shared {
    /// The response of the fetch.
    case response(HTTPCacheResponse)
    /// A stale response, because the origin has not answered in time.
    case stale(HTTPCacheResponse)
    /// There was no response in the time that the request waits for others, or for which its caller wants that.
    case late(isCaller: Bool)
    /// The response of the fetch does not answer the request, which must be forwarded itself.
    case unusable
  }

  /// Waits for the fetch of another request.
  ///
  /// - Parameters:
  ///   - fetch: The fetch that the caller has joined.
  ///   - exchange: The request.
  ///   - entries: The stored responses that the positions of the request refer to.
  ///   - limits: The limits of waiting.
  private func share(
    _ fetch: Fetch, _ exchange: Exchange, _ entries: [StoredEntry], _ limits: inout WaitLimits
  ) async throws -> Shared {
    // Not before the end of waiting, because the fetch would be cancelled if it has no other caller.
    defer { fetch.leave() }
    while true {
      let limit = limits.next(for: fetch, configuration)
      do {
        switch try await fetch.outcome.value(within: limit.map { waitLimit.until($0.time) }) {
        case .response(let received):
          return try await sharedResponse(from: fetch, received, to: exchange, entries).map(Shared.response)
            ?? .unusable
        case .failure(let error): return .response(try await response(afterFailure: error, of: exchange, entries))
        }
      } catch is SharedResult<Fetch.Outcome>.TimedOut {
        switch limit?.cause {
        case .origin?:
          if let response = try await lateAnswer(fetch, exchange, entries) { return .stale(response) }
          limits.mayBeStale = false
        // The others are gone, and the fetch is this caller's own.
        case .others? where fetch.hasOneCaller: limits.hasWaited = true
        case .others?, nil: return .late(isCaller: false)
        case .caller?: return .late(isCaller: true)
        }
      }
    }
  }

  // MARK: Fetching

  /// A request that was forwarded, with everything that its response is decided and stored with.
  struct Forwarding: Sendable {
    let fetch: Fetch
    /// The stored responses that the positions of a decision refer to.
    let entries: [StoredEntry]
    /// The key of the flight that others may join, or `nil`.
    let key: Flights<Fetch>.Key?
    var exchange: Exchange
    /// The state of the invalidations before the request, or `nil` if the response must not be stored.
    var token: FetchToken?
    var requestTime: Date
    /// A Boolean value that indicates whether the head says that the URL works, so the end of the body decides.
    var isWorking = false
  }

  /// The task of a fetch: forwards the request, decides on the response, and receives the body.
  func perform(
    _ fetch: Fetch, _ first: Exchange, _ entries: [StoredEntry], _ key: Flights<Fetch>.Key?, _ forward: Forward
  ) async {
    var work = Forwarding(fetch: fetch, entries: entries, key: key, exchange: first, token: nil, requestTime: now)
    defer { end(fetch, first.url, key) }
    for attempt in 1... {
      work.token = await token()
      work.requestTime = now
      let forwarded: HTTPForwardedResponse
      do {
        forwarded = try await forward(work.exchange.forwarded)
        guard forwarded.head.status.code >= 200 else { throw HTTPCacheError.interimResponse }
      } catch {
        noteFailure(of: fetch, work.exchange, error)
        fetch.outcome.finish(.success(.failure(error)))
        return
      }
      let responseTime = now
      work.isWorking = noteHead(forwarded.head, of: fetch, work.exchange)
      let decision = rules.decide(
        response: forwarded.head, to: work.exchange, requestTime: work.requestTime, responseTime: responseTime)
      for url in decision.invalidated.map(configuration.queryKey.key) {
        let isStored = url == decision.storing?.response.url
        let new = await invalidateQuietly(url, after: isStored ? work.token : nil)
        // The response to the request that invalidates the others is the new one.
        if isStored { work.token = new }
      }
      if case .again(let next) = decision.delivery, attempt < 3 {
        await change(decision, entries, work.token)
        work.exchange = next
        continue
      }
      await receive(forwarded, at: responseTime, decision, work)
      return
    }
  }

  /// Ends a fetch: later requests find what it has stored.
  private func end(_ fetch: Fetch, _ url: String, _ key: Flights<Fetch>.Key?) {
    state.withLock { state in
      if let key { state.flights.end(key, fetch) }
      guard let fetches = state.settling[url] else { return }
      let others = fetches.filter { $0 !== fetch }
      state.settling[url] = others.isEmpty ? nil : others
    }
    fetch.settlement.finish()
  }

  /// Delays later requests for a URL until a fetch has stored its response.
  private func beginSettling(_ fetch: Fetch, _ url: String) {
    state.withLock { state in
      guard state.settling[url]?.contains(where: { $0 === fetch }) != true else { return }
      state.settling[url, default: []].append(fetch)
    }
  }

  /// Returns the state of the invalidations before a request is forwarded, or `nil` if the store fails, in which case
  /// the response is not stored.
  private func token() async -> FetchToken? {
    do {
      return try await calls { [storage] in try await storage.beginFetch() }
    } catch {
      return nil
    }
  }

  // MARK: Receiving

  /// Passes the head of a response to the callers, then receives the body and carries out the changes of the store.
  private func receive(
    _ forwarded: HTTPForwardedResponse, at responseTime: Date, _ decided: ResponseDecision, _ work: Forwarding
  ) async {
    var decision = decided
    let (head, fetch, entries, exchange) = (forwarded.head, work.fetch, work.entries, work.exchange)
    let writer = makeWriter(&decision, forwarded, exchange, work.token)
    let hasBody = exchange.request.method != .head && ![204, 304].contains(head.status.code)
    let isDelivered: Bool
    var reader: CacheReader?
    switch decision.delivery {
    case .forwarded, .again: isDelivered = true
    case .stored(let reuse):
      isDelivered = false
      reader = await openReader(reuse, entries)
    case .combined(let reuse, _):
      isDelivered = true
      reader = await openReader(reuse, entries)
    }
    // A refresh in the background has no caller for a body that is not stored.
    let isReceiving = hasBody && (writer != nil || (isDelivered && !fetch.isBackground))
    let changesStore = !decision.freshened.isEmpty || !decision.removed.isEmpty
    if changesStore { beginSettling(fetch, exchange.url) }
    if !isReceiving { fetch.detach() }
    fetch.beginBody(writer, longestDelay: configuration.stallLimit)
    if writer == nil, !changesStore, let key = work.key {
      // Those who wait may still look at this response, but no later request waits for it.
      state.withLock { $0.flights.end(key, fetch) }
    }
    fetch.outcome.finish(
      .success(
        .response(
          Fetch.Received(
            head: head, exchange: exchange, decision: decision, requestTime: work.requestTime,
            responseTime: responseTime, entries: entries, reader: reader, isStoring: writer != nil, hasBody: hasBody))))
    // A probe without callers ends here if its body is not stored.
    if writer == nil, isReceiving { fetch.attach() }
    // These tasks continue if the fetch is cancelled.
    let changing = changesStore ? Task { [decision] in await self.change(decision, entries, work.token) } : nil
    var storing: Task<Void, Never>?
    if let writer, let response = decision.storing, let token = work.token {
      storing = Task { await self.store(response, writer, work, token) }
    }
    if isReceiving {
      await receiveBody(forwarded, work, decision)
    } else {
      beginSettling(fetch, exchange.url)
      end(work)
    }
    await changing?.value
    await storing?.value
  }

  /// Ends the body of a fetch.
  ///
  /// - Parameters:
  ///   - work: The fetch.
  ///   - failure: The error of the readers if the body was cut short. Defaults to `nil`.
  private func end(_ work: Forwarding, _ failure: (any Error)? = nil) {
    // Readers that repeat the request must find the outcome. A fetch that was cancelled had no reader left, and its body was
    // not cut by the origin.
    if work.isWorking { noteBody(isCut: failure != nil && !Task.isCancelled, of: work.fetch, work.exchange) }
    work.fetch.finishBody(failure)
  }

  private func openReader(_ reuse: Reuse, _ entries: [StoredEntry]) async -> CacheReader? {
    guard reuse.hasBody else { return nil }
    do {
      return try await reader(of: entries[reuse.position])
    } catch {
      // The failure is counted. The caller tries again, or the origin answers.
      return nil
    }
  }

  private func receiveBody(
    _ forwarded: HTTPForwardedResponse, _ work: Forwarding, _ decision: ResponseDecision
  ) async {
    let (fetch, url, expected) = (work.fetch, work.exchange.url, decision.expectedLength)
    do {
      try await forwarded.forEachChunk { bytes in
        if let expected, fetch.receivedCount + Int64(bytes.count) >= expected {
          // The caller may repeat the request as soon as it has these bytes.
          self.beginSettling(fetch, url)
          fetch.detach()
        }
        try await fetch.append(bytes, stallLimit: self.stallLimit)
      }
      // A sequence such as `AsyncStream` ends when its task is cancelled, as if the body was whole.
      if expected == nil { try Task.checkCancellation() }
    } catch {
      countNotStored(fetch, Task.isCancelled ? "abandoned" : "cut")
      return end(work, error)
    }
    let received = fetch.receivedCount
    if let expected, received != expected { countNotStored(fetch, "length") }
    if let expected, received < expected { return end(work, HTTPCacheError.incompleteBody) }
    if let expected, received > expected { fetch.stopStoring() }
    beginSettling(fetch, url)
    fetch.detach()
    end(work)
  }

  /// Counts a body that was being stored until now.
  private func countNotStored(_ fetch: Fetch, _ reason: String) {
    if fetch.isStoring { count { $0.notStoredCounts[reason, default: 0] += 1 } }
  }
}
#endif
