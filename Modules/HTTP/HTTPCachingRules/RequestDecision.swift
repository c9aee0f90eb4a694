#if HTTPCache
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The decision on a request, by ``HTTPCacheRules/decide(request:url:scope:policy:stored:now:)``.
public enum RequestDecision: Sendable {
  /// A stored response answers the request.
  case answer(Reuse)

  /// The request is forwarded: as it is, with conditions, or for missing bytes.
  ///
  /// Send ``Exchange/forwarded`` to the origin and decide on its response.
  case forward(Exchange)

  /// The request is answered by this head, which is 504, because it may not be forwarded and no stored response may be reused.
  case refuse(head: HTTPResponse, status: CacheStatus)
}

extension HTTPCacheRules {
  /// Decides on a request (RFC 9111, section 4).
  ///
  /// - Parameters:
  ///   - request: The request of the client.
  ///   - url: The URL of the request, as ``RequestURL`` writes it.
  ///   - scope: The scope of the request. Defaults to that of all requests.
  ///   - policy: The policy of the request. Defaults to `standard`.
  ///   - stored: The stored responses for this URL in this scope, in any order. Positions in decisions refer to this list.
  ///   - now: The present time.
  /// - Returns: The decision.
  public func decide(
    request: HTTPRequest, url: String, scope: CacheScope = CacheScope(), policy: HTTPCachePolicy = .standard,
    stored: [StoredResponse], now: Date
  ) -> RequestDecision {
    let facts = RequestFacts(request.headerFields, now: now.timeIntervalSince1970)
    let exchange = Exchange(
      request: request, forwarded: request, url: url, scope: scope, policy: policy, stored: stored,
      purpose: .forward, reason: .uriMiss)
    let isHead = request.method == .head
    guard isHead || request.method == .get else { return forward(exchange, facts, because: .method) }
    guard !facts.hasBody else { return forward(exchange, facts, because: .bypass) }
    // Only the origin can evaluate If-Match and If-Unmodified-Since (RFC 9111, section 4.3.2).
    guard !facts.hasOriginCondition, policy != .reload, policy != .reloadEndToEnd else {
      return forward(exchange, facts, because: .request)
    }
    let selection = Selection(stored, request: facts, fields: request.headerFields, isHead: isHead, self)
    guard let (position, answer) = selection.chosen else {
      return decideMiss(exchange, facts, selection)
    }
    let response = stored[position]
    let state = Freshness(response, at: now, self)
    switch verdict(on: state, request: facts, policy: policy) {
    case .reuse(let refreshes):
      var reuse = self.reuse(response, at: position, as: answer, state, CacheStatus(isHit: true))
      if refreshes, !facts.cacheControl.onlyIfCached {
        reuse.refresh = validation(of: exchange.refreshing(), RequestFacts(HTTPFields(), now: 0), selection)
      }
      return .answer(reuse)
    case .validate(let reason):
      var validation = validation(of: exchange, facts, selection)
      validation.reason = reason
      return forward(validation, facts, because: reason)
    }
  }

  /// Returns a stored response as an answer.
  func reuse(
    _ response: StoredResponse, at position: Int, as answer: Reuse.Answer, _ state: Freshness, _ status: CacheStatus
  ) -> Reuse {
    var status = status
    status.isStale = !state.isFresh && !status.isValidated
    status.timeToLive = Int(max(-1e9, min(1e9, (state.lifetime - state.age).rounded(.down))))
    return Reuse(
      position: position, response: response, answer: answer, age: state.age, status: status, cacheName: name)
  }

  /// Decides on a request that no stored response could answer as it is.
  private func decideMiss(_ exchange: Exchange, _ facts: RequestFacts, _ selection: Selection) -> RequestDecision {
    var exchange = exchange
    if let (position, missing) = selection.completable, !facts.hasCondition, facts.ifRange == nil,
      let condition = rangeCondition(for: exchange.stored[position])
    {
      exchange.purpose = .complete(position, missing: missing)
      let last = missing.upperBound == exchange.stored[position].length ? "" : "\(missing.upperBound - 1)"
      exchange.forwarded.headerFields[.range] = "bytes=\(missing.lowerBound)-\(last)"
      exchange.forwarded.headerFields[fields: .ifRange] = [HTTPField(name: .ifRange, value: condition)]
      return forward(exchange, facts, because: .partial)
    }
    if !selection.matching.isEmpty { return forward(exchange, facts, because: .partial) }
    if exchange.stored.isEmpty { return forward(exchange, facts, because: .uriMiss) }
    // The origin may choose one of the responses that are stored for other requests (RFC 9111, section 4.1).
    let offered = exchange.stored.indices.filter { isOffered(exchange.stored[$0]) }
    if !offered.isEmpty, !facts.hasCondition, !facts.hasRange {
      exchange.purpose = .validate(offered)
      exchange.forwarded.headerFields[fields: .ifNoneMatch] = [noneMatch(offered, exchange.stored, and: [])]
    }
    return forward(exchange, facts, because: .varyMiss)
  }

  /// Returns whether a response that is stored for other selecting fields is offered to the origin.
  ///
  /// An encoded one isn't, because many servers give all encodings of a representation the same tag.
  private func isOffered(_ response: StoredResponse) -> Bool {
    guard let tag = response.facts.validator.entityTag, !tag.isWeak, response.isComplete else { return false }
    return !response.fields.contains(.contentEncoding)
  }

  /// Returns the value of `If-Range` that protects the completion of a stored response.
  private func rangeCondition(for response: StoredResponse) -> [UInt8]? {
    let validator = response.facts.validator
    guard validator.isStrong else { return nil }
    return validator.entityTag?.bytes ?? response.fields[fields: .lastModified].first?.bytes
  }

  /// Returns the exchange that validates the response that was chosen (RFC 9111, section 4.3.1).
  ///
  /// It forwards the request as it is if the response has no validator that can be used.
  private func validation(of exchange: Exchange, _ facts: RequestFacts, _ selection: Selection) -> Exchange {
    guard let chosen = selection.chosen?.position else { return exchange }
    let stored = exchange.stored
    let isHead = exchange.request.method == .head
    var exchange = exchange
    var positions = [chosen]
    for position in selection.matching where position != chosen && stored[position].facts.validator.entityTag != nil {
      if case .answer = form(of: stored[position], for: facts, isHead: isHead) { positions.append(position) }
    }
    let tagged = positions.filter { stored[$0].facts.validator.entityTag != nil }
    let dates = stored[chosen].facts.validator.lastModified == nil ? [] : stored[chosen].fields[fields: .lastModified]
    // A list with "*", and a date beside the client's own tags, can't say which response is meant.
    guard facts.ifNoneMatch?.hasAny != true, !tagged.isEmpty || (!dates.isEmpty && facts.ifNoneMatch == nil) else {
      return exchange
    }
    exchange.purpose = .validate(tagged.isEmpty ? [chosen] : positions)
    if !tagged.isEmpty {
      let field = noneMatch(tagged, stored, and: facts.ifNoneMatch?.tags ?? [])
      exchange.forwarded.headerFields[fields: .ifNoneMatch] = [field]
    }
    exchange.forwarded.headerFields[fields: .ifModifiedSince] = dates.prefix(1).map {
      HTTPField(name: .ifModifiedSince, value: $0.bytes)
    }
    return exchange
  }

  /// Returns `If-None-Match` with the tags of stored responses and those of the client.
  private func noneMatch(_ positions: [Int], _ stored: [StoredResponse], and others: [EntityTag]) -> HTTPField {
    var opaque: Set<[UInt8]> = []
    let tags = (positions.compactMap { stored[$0].facts.validator.entityTag } + others)
      .filter { opaque.insert($0.opaque).inserted }
    return HTTPField(name: .ifNoneMatch, value: Array(tags.map(\.bytes).joined(separator: ", ".utf8)))
  }

  /// Returns the decision to forward, or to refuse if the client wants no forwarding.
  private func forward(
    _ exchange: Exchange, _ facts: RequestFacts, because reason: CacheStatus.ForwardReason
  ) -> RequestDecision {
    if exchange.policy == .cacheOnly || facts.cacheControl.onlyIfCached { return refusal(detail: "only-if-cached") }
    var exchange = exchange
    exchange.reason = reason
    switch exchange.policy {
    case .revalidate where facts.cacheControl.maxAge != 0:
      exchange.forwarded.headerFields.append(HTTPField(name: .cacheControl, value: "max-age=0"))
    case .reloadEndToEnd where !facts.cacheControl.noCache:
      exchange.forwarded.headerFields.append(HTTPField(name: .cacheControl, value: "no-cache"))
    default: break
    }
    return .forward(exchange)
  }

  /// Returns the answer 504.
  func refusal(detail: String) -> RequestDecision {
    var status = CacheStatus()
    status.detail = detail
    var head = HTTPResponse(status: .gatewayTimeout, headerFields: [.contentLength: "0"])
    head.add(status, name: name)
    return .refuse(head: head, status: status)
  }
}

extension Exchange {
  /// Returns the exchange for a refresh in the background: the request without the conditions and the range of the
  /// client that caused it.
  fileprivate func refreshing() -> Exchange {
    var copy = self
    for name in [HTTPField.Name.ifNoneMatch, .ifModifiedSince, .range, .ifRange] {
      copy.request.headerFields[fields: name] = []
    }
    copy.forwarded = copy.request
    copy.reason = .stale
    return copy
  }
}

extension HTTPCacheRules {
  /// Returns whether a request may wait for the response to another request for the same URL, and whether others may
  /// wait for the response to this one.
  ///
  /// Only plain `GET` requests do: without a body, a condition, a range, or a directive that demands an answer of its
  /// own. ``share(_:with:url:now:)`` decides whether the response answers the request that waited.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - policy: The policy of the request.
  /// - Returns: A Boolean value that indicates whether the request may wait.
  public func mayCollapse(_ request: HTTPRequest, policy: HTTPCachePolicy) -> Bool {
    guard request.method == .get, policy == .standard || policy == .preferCache else { return false }
    let facts = RequestFacts(request.headerFields, now: 0)
    let control = facts.cacheControl
    return !facts.hasBody && !facts.hasCondition && !facts.hasOriginCondition && !facts.hasRange
      && !facts.demandsValidation && !control.noStore && !control.onlyIfCached && control.maxAge == nil
      && control.minFresh == nil
  }

  /// Decides whether a whole response to one request also answers another request that waited for it (RFC 9111,
  /// section 4).
  ///
  /// ```swift
  /// if let reuse = rules.share(newResponse, with: waitingRequest, url: url, now: .now) { answer(waitingRequest, with: reuse) }
  /// ```
  ///
  /// - Parameters:
  ///   - response: The response, as ``ResponseDecision/Storing`` or ``Reuse`` has it. Its body may still be incoming.
  ///   - request: The request that waited.
  ///   - url: The URL of both requests.
  ///   - now: The present time.
  /// - Returns: The answer, or `nil` if the request must be forwarded.
  public func share(_ response: StoredResponse, with request: HTTPRequest, url: String, now: Date) -> Reuse? {
    let decision = decide(request: request, url: url, policy: .standard, stored: [response], now: now)
    guard case .answer(var reuse) = decision, reuse.refresh == nil else { return nil }
    reuse.status.isHit = false
    reuse.status.forward = .uriMiss
    reuse.status.isCollapsed = true
    return reuse
  }
}

extension ResponseDecision.Storing {
  /// A Boolean value that indicates whether the body that is being received is the whole representation, so requests
  /// that waited may share it.
  public var isWhole: Bool {
    guard let receiving else { return true }
    return receiving == response.length.map { 0..<$0 }
  }
}
#endif
