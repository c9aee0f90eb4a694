#if HTTPCache
public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The decision on a response of the origin, by ``HTTPCacheRules/decide(response:to:requestTime:responseTime:)``.
///
/// The cache carries the changes out in the order of the properties. Positions refer to ``Exchange/stored``.
public struct ResponseDecision: Sendable {
  /// A response that is stored when its body is complete.
  public struct Storing: Sendable {
    /// The response.
    ///
    /// Its ranges are the ones that it takes over from the response at ``extending``. The part that is being received is
    /// added to them when it is complete.
    public var response: StoredResponse

    /// The bytes of the representation that are being received.
    ///
    /// `nil` if the body is the whole representation and its length isn't known yet.
    public var receiving: Range<Int64>?

    /// The position of the stored response whose bytes in the ranges of ``response`` are kept, or `nil` if no bytes are
    /// kept.
    public var extending: Int?

    /// The positions of the stored responses that are removed when this one is stored, with the bytes that aren't kept.
    public var replacing: [Int]
  }

  /// A reason for not storing a response.
  public enum Refusal: String, Sendable, Hashable, CaseIterable {
    /// The method of the request isn't cacheable, or the response isn't a representation of its URL.
    case method
    /// The status code isn't cacheable, or isn't understood.
    case status
    /// The request or the response has `no-store`.
    case noStore
    /// The response is private and the cache is shared.
    case `private`
    /// The request has `Authorization`, and the response doesn't allow a shared cache to store it.
    case authorization
    /// The response has neither freshness nor a validator, or is stale without a validator.
    case notReusable
    /// `Vary` has `*`, or names too many fields.
    case vary
    /// The response has `Set-Cookie`.
    case setCookie
    /// The response is a part that contradicts itself or can't be stored.
    case part
    /// The head is too large, or has a field that can't be stored.
    case head
    /// The response freshened a stored one, or was of no use to the cache.
    case notNeeded
  }

  /// The ways to answer the client.
  public enum Delivery: Sendable {
    /// The response of the origin, with this head.
    case forwarded(HTTPResponse)

    /// A stored response: after a 304, or a stale one in place of an error. The body of the origin is discarded. A stored
    /// response whose position is in ``ResponseDecision/removed`` must be opened for reading before it is removed.
    case stored(Reuse)

    /// A stored response whose missing bytes are the body that is being received.
    case combined(Reuse, receiving: Range<Int64>)

    /// The answer to another request, which must be forwarded now, because the origin's response answers no question of
    /// the client. The body of the origin is discarded.
    case again(Exchange)
  }

  /// The URLs that are invalidated, with all their variants.
  ///
  /// This happens before anything is stored.
  public var invalidated: [String] = []

  /// The stored responses that got a new head, by position.
  public var freshened: [(position: Int, response: StoredResponse)] = []

  /// The positions of the stored responses that are removed immediately.
  public var removed: [Int] = []

  /// The response to store, or `nil`.
  public var storing: Storing?

  /// The reason why nothing is stored.
  ///
  /// `nil` if something is stored, or if a stored response was freshened.
  public var refusal: Refusal?

  /// The answer to the client.
  public var delivery: Delivery

  /// The way the request was handled, as `Cache-Status` in the head says it.
  public var status: CacheStatus

  /// The number of bytes that the origin's body must have, or `nil` if the head doesn't say it.
  ///
  /// A body with fewer or more bytes must not be stored.
  public var expectedLength: Int64?
}

extension HTTPCacheRules {
  /// Decides on a final response of the origin.
  ///
  /// An interim response (1xx) isn't a response to the request: don't pass it to this method. If you do, it isn't stored.
  ///
  /// ```swift
  /// let decision = rules.decide(response: response, to: exchange, requestTime: sent, responseTime: .now)
  /// if let storing = decision.storing { try await save(storing) }
  /// ```
  ///
  /// - Parameters:
  ///   - response: The head, with the fields of the connection.
  ///   - exchange: The request that was forwarded.
  ///   - requestTime: The time when it was forwarded.
  ///   - responseTime: The time when the head was received.
  /// - Returns: The decision.
  public func decide(
    response: HTTPResponse, to exchange: Exchange, requestTime: Date, responseTime: Date
  ) -> ResponseDecision {
    let arrival = Arrival(response, exchange, requestTime: requestTime, responseTime: responseTime, self)
    let method = exchange.request.method
    guard method == .get || method == .head else { return decideOther(arrival) }
    if let stale = staleAnswer(arrival) { return stale }
    switch response.status.code {
    case 304: return decideNotModified(arrival)
    case _ where method == .head: return decideHead(arrival)
    case 206: return decidePart(arrival)
    case 412, 416:
      if case .complete(let position, _) = exchange.purpose { return again(arrival, removing: [position]) }
      return decideWhole(arrival)
    default: return decideWhole(arrival)
    }
  }

  /// Decides on a whole response to `GET`.
  private func decideWhole(_ arrival: Arrival) -> ResponseDecision {
    var decision = arrival.passingOn()
    if let stored = storable(arrival, arrival.candidate, &decision) {
      decision.storing = ResponseDecision.Storing(
        response: stored, receiving: stored.length.map { 0..<$0 }, replacing: arrival.selection.matching)
      decision.markStored(name)
    } else if case .validate(let positions) = arrival.exchange.purpose {
      // The origin has another response now than the one that was validated.
      switch arrival.response.status.code {
      case 200..<400, 404, 410: decision.removed = positions.filter { arrival.selection.matching.contains($0) }
      default: break
      }
    }
    return decision
  }

  /// Returns a response as it is stored, or sets the reason why it isn't.
  func storable(
    _ arrival: Arrival, _ candidate: StoredResponse, _ decision: inout ResponseDecision
  ) -> StoredResponse? {
    var stored = candidate
    decision.refusal =
      arrival.request.hasBody && arrival.exchange.request.method != .post
      ? .method : refusal(for: candidate, request: arrival.request, arrival.directives)
    if decision.refusal == nil, let fields = StorableFields.select(candidate.fields, arrival.directives, self) {
      stored.fields = fields.dated(arrival.responseTime)
      if stored.length == nil { stored.fields[.contentLength] = nil }
      return stored
    }
    decision.refusal = decision.refusal ?? .head
    decision.mark(decision.refusal, name)
    return nil
  }

  /// Decides on a response to another method than `GET` and `HEAD` (RFC 9111, section 4.4; RFC 9110, section 9.3.3).
  private func decideOther(_ arrival: Arrival) -> ResponseDecision {
    var decision = arrival.passingOn()
    decision.refusal = .method
    decision.invalidated = InvalidatedURLs.urls(
      arrival.response, to: arrival.exchange.request, at: arrival.exchange.url)
    if arrival.exchange.request.method == .post, arrival.response.status.code == 200, arrival.isAboutItsURL,
      explicitLifetime(of: arrival.candidate, arrival.directives) != nil,
      let stored = storable(arrival, arrival.candidate, &decision)
    {
      decision.storing = ResponseDecision.Storing(
        response: stored, receiving: stored.length.map { 0..<$0 }, replacing: [])
      decision.markStored(name)
      return decision
    }
    decision.mark(decision.refusal, name)
    return decision
  }

  /// Returns the stale stored response that answers in place of an error of the origin (RFC 5861, section 4).
  private func staleAnswer(_ arrival: Arrival) -> ResponseDecision? {
    guard [500, 502, 503, 504].contains(arrival.response.status.code), !arrival.request.hasBody,
      !arrival.request.hasOriginCondition, let (position, answer) = arrival.selection.chosen
    else { return nil }
    let stored = arrival.exchange.stored[position]
    let state = Freshness(stored, at: arrival.responseTime, self)
    guard mayServe(state, after: .errorResponse, request: arrival.request, policy: arrival.exchange.policy) else {
      return nil
    }
    let reuse = reuse(stored, at: position, as: answer, state, arrival.status)
    return ResponseDecision(refusal: .notNeeded, delivery: .stored(reuse), status: reuse.status)
  }

  /// Returns the decision to forward the client's request as it came.
  func again(_ arrival: Arrival, removing positions: [Int] = []) -> ResponseDecision {
    ResponseDecision(
      removed: positions, refusal: .notNeeded, delivery: .again(arrival.exchange.withoutConditions()),
      status: arrival.status)
  }
}

/// A response of the origin with the values that the decisions on it share.
struct Arrival {
  let response: HTTPResponse
  let exchange: Exchange
  let requestTime: Date
  let responseTime: Date

  /// The facts of the client's request.
  let request: RequestFacts

  /// The stored responses that match the request.
  let selection: Selection

  /// The response in the form of a stored one, with all its fields.
  let candidate: StoredResponse

  /// The directives of the response.
  let directives: HTTPCacheRules.Directives

  /// The name of the cache.
  let name: String?

  init(
    _ response: HTTPResponse, _ exchange: Exchange, requestTime: Date, responseTime: Date, _ rules: HTTPCacheRules
  ) {
    var response = response
    // No length can be the one of a body that there is never (RFC 9110, section 8.6).
    let hasNoBody = response.status.code == 204 || response.status.code < 200
    if hasNoBody { response.headerFields[fields: .contentLength] = [] }
    self.response = response
    self.exchange = exchange
    self.requestTime = requestTime
    self.responseTime = responseTime
    let fields = exchange.request.headerFields
    request = RequestFacts(fields, now: requestTime.timeIntervalSince1970)
    selection = Selection(
      exchange.stored, request: request, fields: fields, isHead: exchange.request.method == .head, rules)
    var candidate = StoredResponse(
      url: exchange.url, partition: exchange.scope.own, status: response.status.code, fields: response.headerFields,
      selecting: SelectingFields(sets: []), requestTime: requestTime, responseTime: responseTime, length: nil)
    candidate.length = hasNoBody ? 0 : candidate.facts.contentLength
    var values = RequestValues(fields)
    candidate.selecting = SelectingFields(names: candidate.facts.vary ?? [], in: &values)
    directives = rules.directives(of: response.headerFields, candidate.facts)
    if directives.control.isPublic { candidate.partition = exchange.scope.common }
    self.candidate = candidate
    name = rules.name
  }

  /// The handling so far.
  var status: CacheStatus {
    var status = CacheStatus(forward: exchange.reason)
    status.forwardStatus = response.status.code
    return status
  }

  /// A Boolean value that indicates whether `Content-Location` is the URL of the request.
  var isAboutItsURL: Bool {
    guard let location = response.headerFields[fields: .contentLocation].first, let url = try? RequestURL(exchange.url)
    else { return false }
    return url.resolving(location.bytes) == url
  }

  /// Returns the decision to pass the response on.
  func passingOn() -> ResponseDecision {
    var head = response
    head.add(status, name: name)
    let hasBody = exchange.request.method != .head && response.status.code != 304 && response.status.code != 204
    return ResponseDecision(
      delivery: .forwarded(head), status: status, expectedLength: hasBody ? candidate.facts.contentLength : nil)
  }
}

extension ResponseDecision {
  /// Says in the status that the response is being stored.
  mutating func markStored(_ name: String?) {
    status.isStored = true
    rewriteStatus(name)
  }

  /// Gives up storing the response for a reason of the cache's own, and says so in ``status`` and in the head.
  ///
  /// - Parameters:
  ///   - reason: The reason, a token such as `tooLarge`. The detail in `Cache-Status` is `not-stored-` and this token.
  ///   - name: The name of the cache in `Cache-Status`, as in ``HTTPCacheRules/name``.
  public mutating func refuseStoring(because reason: String, name: String?) {
    storing = nil
    status.isStored = false
    status.detail = "not-stored-\(reason)"
    rewriteStatus(name)
  }

  /// Says in the status why the response isn't stored.
  mutating func mark(_ refusal: Refusal?, _ name: String?) {
    status.detail = refusal.map { "not-stored-\($0.rawValue)" }
    rewriteStatus(name)
  }

  private mutating func rewriteStatus(_ name: String?) {
    guard name != nil, case .forwarded(var head) = delivery else { return }
    head.headerFields.removeLast()
    head.add(status, name: name)
    delivery = .forwarded(head)
  }
}

extension HTTPFields {
  /// Returns the fields with a `Date` for the time of receipt if they have none (RFC 9110, section 6.6.1).
  func dated(_ received: Date) -> HTTPFields {
    guard !contains(.date) else { return self }
    var copy = self
    let date = HTTPDate(seconds: Int64(received.timeIntervalSince1970.rounded(.down)))
    copy.append(HTTPField(name: .date, value: date.text))
    return copy
  }
}

/// The choice of the URLs that a response invalidates (RFC 9111, section 4.4).
enum InvalidatedURLs {
  /// The registered methods that are safe.
  ///
  /// Any other method may change what it is applied to.
  private static let safeMethods: Set = ["GET", "HEAD", "OPTIONS", "PROPFIND", "QUERY", "REPORT", "SEARCH", "TRACE"]

  /// Returns the URLs that a response to a request invalidates: the one of the request, and those in `Location` and
  /// `Content-Location` that have the same origin.
  static func urls(_ response: HTTPResponse, to request: HTTPRequest, at url: String) -> [String] {
    guard !safeMethods.contains(request.method.rawValue), (200..<400).contains(response.status.code) else { return [] }
    var urls = [url]
    guard let base = try? RequestURL(url) else { return urls }
    for name in [HTTPField.Name.location, .contentLocation] {
      guard let field = response.headerFields[fields: name].first, let target = base.resolving(field.bytes),
        target.origin == base.origin, !urls.contains(target.text)
      else { continue }
      urls.append(target.text)
    }
    return urls
  }
}
#endif
