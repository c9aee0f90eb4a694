#if HTTPCache
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The age and the freshness of a stored response at one time.
///
/// A response from the future, whose age isn't known, is stale by the largest age that HTTP has: see
/// ``StoredResponse/isFromFuture(at:)``.
public struct Freshness: Sendable {
  /// The age in seconds (RFC 9111, section 4.2.3).
  public var age: Double

  /// The freshness lifetime in seconds (RFC 9111, section 4.2.1), negative if `Expires` is before `Date`.
  public var lifetime: Double

  /// The largest value of `Age` (RFC 9111, section 1.2.2).
  static let largestAge: Double = 2_147_483_648

  /// The directives of the response for this cache.
  var directives: HTTPCacheRules.Directives

  /// A Boolean value that indicates whether the response is fresh.
  public var isFresh: Bool { lifetime > age }

  /// The seconds since the response became stale; 0 if it is fresh.
  public var staleness: Double { max(0, age - lifetime) }

  /// A Boolean value that indicates whether the response has `no-cache`, so it is validated before each use, also if it
  /// is fresh.
  public var requiresValidation: Bool { directives.control.noCache }

  init(_ response: StoredResponse, at now: Date, _ rules: HTTPCacheRules) {
    directives = rules.directives(of: response.fields, response.facts)
    lifetime = rules.freshnessLifetime(of: response, directives)
    age =
      response.isFromFuture(at: now) ? max(0, lifetime) + Self.largestAge : response.currentAge(at: now)
  }
}

extension StoredResponse {
  /// Returns whether the response was received more than a minute later than a time.
  ///
  /// The clock was wrong then, either when the response was received or now, so the age of the response isn't known. The
  /// minute allows for the clocks of the hosts that share a store.
  ///
  /// - Parameter now: The present time.
  /// - Returns: A Boolean value that indicates whether the response is from the future.
  public func isFromFuture(at now: Date) -> Bool {
    responseTime.timeIntervalSince(now) > 60
  }
}

extension HTTPCacheRules {
  /// Returns the age and the freshness of a stored response.
  ///
  /// ```swift
  /// let freshness = rules.freshness(of: response, at: now)
  /// print(freshness.isFresh, freshness.lifetime - freshness.age)
  /// ```
  ///
  /// - Parameters:
  ///   - response: The stored response.
  ///   - now: The present time.
  /// - Returns: The age and the freshness at this time.
  public func freshness(of response: StoredResponse, at now: Date) -> Freshness {
    Freshness(response, at: now, self)
  }
}

extension HTTPCacheRules {
  /// The decision on the reuse of a stored response.
  enum Verdict: Equatable {
    /// It is reused, and refreshed in the background if it says so.
    case reuse(refreshes: Bool)

    /// It must be validated.
    case validate(CacheStatus.ForwardReason)
  }

  /// Decides whether a stored response may be reused without validation (RFC 9111, sections 4.2.4 and 5.2; RFC 5861;
  /// RFC 8246).
  func verdict(on state: Freshness, request: RequestFacts, policy: HTTPCachePolicy) -> Verdict {
    let control = state.directives.control
    if control.noCache { return .validate(.stale) }
    if request.demandsValidation || policy == .revalidate { return .validate(.request) }
    let ignoresAge = policy == .preferCache || policy == .cacheOnly
    if !ignoresAge, !acceptsAge(of: state, request) { return .validate(.request) }
    if state.isFresh { return .reuse(refreshes: false) }
    if forbidsStale(control) { return .validate(.stale) }
    if ignoresAge { return .reuse(refreshes: false) }
    if let seconds = control.staleWhileRevalidate, state.staleness <= Double(seconds), acceptsStale(request) {
      return .reuse(refreshes: true)
    }
    if let seconds = request.cacheControl.maxStale, state.staleness <= Double(seconds) {
      return .reuse(refreshes: false)
    }
    return .validate(.stale)
  }

  /// Returns whether the age is within `max-age` and `min-fresh` of a request.
  ///
  /// A reload in a browser sends `max-age=0`. A fresh response with `immutable` is exempt from it (RFC 8246).
  private func acceptsAge(of state: Freshness, _ request: RequestFacts) -> Bool {
    if let seconds = request.cacheControl.maxAge, seconds == 0 || state.age > Double(seconds),
      !(state.directives.control.isImmutable && state.isFresh)
    {
      return false
    }
    if let seconds = request.cacheControl.minFresh, state.lifetime - state.age < Double(seconds) { return false }
    return true
  }

  /// Returns whether the client accepts a stale response: one that sends `max-age` doesn't without `max-stale`.
  private func acceptsStale(_ request: RequestFacts) -> Bool {
    request.cacheControl.maxAge == nil || request.cacheControl.maxStale != nil
  }

  /// Returns whether a stored response may answer because the origin failed (RFC 9111, section 4.2.4; RFC 5861,
  /// section 4).
  func mayServe(
    _ state: Freshness, after failure: OriginFailure, request: RequestFacts, policy: HTTPCachePolicy
  ) -> Bool {
    let control = state.directives.control
    guard policy == .standard || policy == .preferCache, !request.demandsValidation, !forbidsStale(control) else {
      return false
    }
    if policy == .standard {
      guard acceptsAge(of: state, request), state.isFresh || acceptsStale(request) else { return false }
      if let seconds = request.cacheControl.maxStale, state.staleness > Double(seconds) { return false }
    }
    switch failure {
    case .disconnected: return true
    case .errorResponse:
      let seconds = [control.staleIfError, request.cacheControl.staleIfError].compactMap { $0 }.max()
      return seconds.map { state.staleness <= Double($0) } ?? false
    }
  }
}

/// The ways an origin fails.
///
/// The rules for stale responses differ.
public enum OriginFailure: Sendable, Hashable {
  /// The origin gave no response.
  case disconnected

  /// The origin answered 500, 502, 503 or 504, or is expected to.
  case errorResponse
}

/// The decision on a request whose origin fails, by ``HTTPCacheRules/decide(failureOf:by:now:)``.
public enum FailureDecision: Sendable {
  /// A stored response answers the request.
  case answer(Reuse)

  /// The request is answered by 504, because the stored response forbids its reuse without the origin.
  case refuse(head: HTTPResponse, status: CacheStatus)

  /// The client gets the error, or the response of the origin.
  case fail
}

extension HTTPCacheRules {
  /// Decides on a request whose origin fails (RFC 9111, section 4.2.4; RFC 5861, section 4).
  ///
  /// To decide on an error response that you have received, use ``decide(response:to:requestTime:responseTime:)``. This method
  /// also decides on a request that need not be forwarded, because the origin has failed a moment ago.
  ///
  /// ```swift
  /// let decision = rules.decide(failureOf: exchange, by: .disconnected, now: .now)
  /// ```
  ///
  /// - Parameters:
  ///   - exchange: The request that was forwarded.
  ///   - failure: The way the origin fails. Defaults to `disconnected`. After an `errorResponse`, a stale
  ///     response answers only with `stale-if-error`, and the decision is never to refuse.
  ///   - now: The present time.
  /// - Returns: The decision.
  public func decide(
    failureOf exchange: Exchange, by failure: OriginFailure = .disconnected, now: Date
  ) -> FailureDecision {
    let request = exchange.request
    guard request.method == .get || request.method == .head else { return .fail }
    let facts = RequestFacts(request.headerFields, now: now.timeIntervalSince1970)
    let selection = Selection(
      exchange.stored, request: facts, fields: request.headerFields, isHead: request.method == .head, self)
    guard let (position, answer) = selection.chosen, !facts.hasBody, !facts.hasOriginCondition else { return .fail }
    let stored = exchange.stored[position]
    let state = Freshness(stored, at: now, self)
    var status = CacheStatus(forward: exchange.reason)
    if failure == .disconnected { status.detail = "disconnected" }
    if mayServe(state, after: failure, request: facts, policy: exchange.policy) {
      return .answer(reuse(stored, at: position, as: answer, state, status))
    }
    guard failure == .disconnected, forbidsStale(state.directives.control) else { return .fail }
    var head = HTTPResponse(status: .gatewayTimeout, headerFields: [.contentLength: "0"])
    head.add(status, name: name)
    return .refuse(head: head, status: status)
  }
}
#endif
