#if HTTPCache
internal import Foundation
internal import HTTPCachingRules
internal import HTTPTypes
internal import Larder

extension HTTPCache {
  /// The largest number of bytes that the hook may add to a response.
  static var largestUserData: Int { 65_536 }

  // MARK: Collapsing

  /// Returns the response to a request that needs the origin.
  func response(
    to exchange: Exchange, _ entries: [StoredEntry], _ limit: Duration?, _ forward: @escaping Forward
  ) async throws -> Attempt {
    let key = Flights<Fetch>.Key(url: exchange.url, partition: exchange.scope.own)
    guard rules.mayCollapse(exchange.request, policy: exchange.policy) else {
      return try await lead(Fetch(), exchange, entries, forward)
    }
    while true {
      switch state.withLock({ $0.flights.admit(key, at: elapsed) { Fetch() } }) {
      case .lead(let fetch): return try await lead(fetch, exchange, entries, forward, key)
      case .alone: return try await lead(Fetch(), exchange, entries, forward)
      case .join(let fetch):
        guard fetch.join() else {
          // Its last caller has cancelled it.
          state.withLock { $0.flights.end(key, fetch) }
          continue
        }
        if let response = try await share(fetch, exchange, entries, waitLimit(limit)) {
          count { $0.collapsedCount += 1 }
          return .response(response)
        }
        state.withLock { $0.flights.refuse(key, fetch, at: elapsed) }
        return try await lead(Fetch(), exchange, entries, forward)
      }
    }
  }

  private func lead(
    _ fetch: Fetch, _ exchange: Exchange, _ entries: [StoredEntry], _ forward: @escaping Forward,
    _ key: Flights<Fetch>.Key? = nil
  ) async throws -> Attempt {
    count { $0.forwardCounts[exchange.reason, default: 0] += 1 }
    defer { fetch.leave() }
    fetch.start { await self.perform(fetch, exchange, entries, key, forward) }
    switch try await fetch.outcome.value() {
    case .response(let received): return try await response(from: fetch, received, entries)
    case .failure(let error): return .response(try await response(afterFailure: error, of: exchange, entries))
    }
  }

  /// Waits for the fetch of another request.
  ///
  /// - Returns: The response, or `nil` if the request must be forwarded itself.
  private func share(
    _ fetch: Fetch, _ exchange: Exchange, _ entries: [StoredEntry], _ limit: TimeLimit
  ) async throws -> HTTPCacheResponse? {
    defer { fetch.leave() }
    do {
      switch try await fetch.outcome.value(within: limit) {
      case .response(let received): return try await sharedResponse(from: fetch, received, to: exchange, entries)
      case .failure(let error): return try await response(afterFailure: error, of: exchange, entries)
      }
    } catch is SharedResult<Fetch.Outcome>.TimedOut {
      return nil
    }
  }

  /// Refreshes a stale response in the background, unless a fetch for it is under way.
  func refresh(_ exchange: Exchange, _ entries: [StoredEntry], _ forward: @escaping Forward) {
    let key = Flights<Fetch>.Key(url: exchange.url, partition: exchange.scope.own)
    guard case .lead(let fetch) = state.withLock({ $0.flights.admit(key, at: elapsed) { Fetch(isBackground: true) } })
    else {
      return
    }
    count { $0.refreshCount += 1 }
    fetch.start { await self.perform(fetch, exchange, entries, key, forward) }
    fetch.leave()
  }

  // MARK: Fetching

  /// A request that was forwarded, with everything that its response is decided and stored with.
  private struct Forwarding: Sendable {
    let fetch: Fetch
    /// The stored responses to which the positions of a decision refer.
    let entries: [StoredEntry]
    /// The key of the flight that others may join, or `nil` for none.
    let key: Flights<Fetch>.Key?
    var exchange: Exchange
    /// The state of the invalidations before the request, or `nil` if the response must not be stored.
    var token: FetchToken?
    var requestTime: Date
  }

  /// The task of a fetch: forwards the request, decides on the response, and receives the body.
  private func perform(
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
        fetch.outcome.finish(.success(.failure(error)))
        return
      }
      let responseTime = now
      let decision = rules.decide(
        response: forwarded.head, to: work.exchange, requestTime: work.requestTime, responseTime: responseTime)
      for url in decision.invalidated {
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
    fetch.beginBody(writer)
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
    // These tasks continue if the fetch is cancelled.
    let changing = changesStore ? Task { [decision] in await self.change(decision, entries, work.token) } : nil
    var storing: Task<Void, Never>?
    if let writer, let response = decision.storing, let token = work.token {
      storing = Task { await self.store(response, writer, work, token) }
    }
    if isReceiving {
      await receiveBody(forwarded, fetch, decision, exchange)
    } else {
      beginSettling(fetch, exchange.url)
      fetch.finishBody()
    }
    await changing?.value
    await storing?.value
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
    _ forwarded: HTTPForwardedResponse, _ fetch: Fetch, _ decision: ResponseDecision, _ exchange: Exchange
  ) async {
    let expected = decision.expectedLength
    do {
      try await forwarded.forEachChunk { bytes in
        if let expected, fetch.receivedCount + Int64(bytes.count) >= expected {
          // The caller may repeat the request as soon as it has these bytes.
          self.beginSettling(fetch, exchange.url)
          fetch.detach()
        }
        try await fetch.append(bytes, stallLimit: self.stallLimit)
      }
    } catch {
      fetch.finishBody(error)
      return
    }
    let received = fetch.receivedCount
    if let expected, received < expected { return fetch.finishBody(HTTPCacheError.incompleteBody) }
    if let expected, received > expected { fetch.stopStoring() }
    beginSettling(fetch, exchange.url)
    fetch.detach()
    fetch.finishBody()
  }

  // MARK: Storing

  /// Returns the writer of a body that is to be stored.
  ///
  /// If it must not be stored, the decision says why.
  private func makeWriter(
    _ decision: inout ResponseDecision, _ forwarded: HTTPForwardedResponse, _ exchange: Exchange, _ token: FetchToken?
  ) -> CacheWriter? {
    guard decision.storing != nil else {
      if let refusal = decision.refusal { count { $0.notStoredCounts[refusal.rawValue, default: 0] += 1 } }
      return nil
    }
    guard forwarded.isStorable else { return refuse("client", &decision) }
    switch configuration.willStore?(exchange.request, forwarded.head) {
    case nil: break
    case .refuse: return refuse("refused", &decision)
    case .store(let userData):
      guard userData.count <= Self.largestUserData else { return refuse("userData", &decision) }
      decision.storing?.response.userData = userData
    }
    guard token != nil else { return refuse("storeFailed", &decision) }
    do {
      return try storage.makeWriter(expectedLength: decision.expectedLength)
    } catch {
      return refuse("tooLarge", &decision)
    }
  }

  private func refuse(_ reason: String, _ decision: inout ResponseDecision) -> CacheWriter? {
    decision.refuseStoring(because: reason, name: rules.name)
    count { $0.notStoredCounts[reason, default: 0] += 1 }
    return nil
  }

  /// The task that stores a body while it is received.
  private func store(
    _ storing: ResponseDecision.Storing, _ writer: CacheWriter, _ work: Forwarding, _ token: FetchToken
  ) async {
    let fetch = work.fetch
    do {
      storing: while true {
        switch try await fetch.nextBatch() {
        case .stop: break storing
        case .bytes(let bytes, let isLast):
          try await calls { try await writer.append(bytes) }
          fetch.notePersisted(writer.storedCount)
          guard isLast else { continue }
          try await commit(storing, writer, work.entries, token)
          fetch.notePersisted(writer.storedCount)
          count { $0.storedCount += 1 }
          return
        }
      }
    } catch let refusal as StorageRefusal {
      count { $0.notStoredCounts["\(refusal)", default: 0] += 1 }
    } catch {
      count { $0.notStoredCounts["storeFailed", default: 0] += 1 }
    }
    fetch.stopStoring()
    if let key = work.key { state.withLock { $0.flights.end(key, fetch) } }
    Task {
      // Nothing else depends on this, so that the fetch can end.
      do {
        try await fetch.waitForReadersInStore()
        try await calls { try await writer.abandon() }
      } catch {
        // The failure is counted, and the body is swept later.
      }
    }
  }

  private func commit(
    _ storing: ResponseDecision.Storing, _ writer: CacheWriter, _ entries: [StoredEntry], _ token: FetchToken
  ) async throws {
    var response = storing.response
    let range = storing.receiving ?? 0..<writer.count
    if storing.isWhole { response.length = response.length ?? writer.count }
    let kept = storing.extending.map { entries[$0].parts.pieces(of: response.ranges) } ?? []
    let parts = (kept + [StoredPart(range: range, body: writer.body, bodyStart: range.lowerBound)])
      .sorted { $0.range.lowerBound < $1.range.lowerBound }
    guard !isInvalidated(response.url) else { throw StorageRefusal.invalidated }
    let replaced = storing.replacing.map { entries[$0] }
    try await calls { [storage, response] in
      try await storage.store(response, parts: parts, body: writer, replacing: replaced, token: token)
    }
  }

  /// Carries out the changes of stored responses that a response implies.
  private func change(_ decision: ResponseDecision, _ entries: [StoredEntry], _ token: FetchToken?) async {
    do {
      for (position, response) in decision.freshened {
        guard let token else { break }
        try await calls { [storage] in try await storage.freshen(entries[position], by: response, token: token) }
      }
    } catch {
      // The failure is counted, or an invalidation came. The stored response stays as it is, and is validated again.
    }
    await remove(decision.removed.map { entries[$0] })
  }

  /// Removes stored responses.
  ///
  /// If the store fails, they stay, and are decided on again by the next request.
  func remove(_ entries: [StoredEntry]) async {
    guard !entries.isEmpty else { return }
    do {
      try await calls { [storage] in try await storage.remove(entries) }
    } catch {
      // The failure is counted.
    }
  }
}
#endif
