#if HTTPCache
internal import Foundation
internal import HTTPTypes

/// The decision on a request to which the origin gave no response.
enum FailureDecision: Sendable {
  /// A stored response answers the request.
  case answer(Reuse)

  /// The request is answered by 504, because the stored response forbids its reuse without the origin.
  case refuse(head: HTTPResponse, status: CacheStatus)

  /// The client gets the error.
  case fail
}

extension HTTPCacheRules {
  /// Decides on a request to which the origin gave no response (RFC 9111, section 4.2.4).
  ///
  /// - Parameters:
  ///   - exchange: The request that was forwarded.
  ///   - now: The present time.
  func decide(failureOf exchange: Exchange, now: Date) -> FailureDecision {
    let request = exchange.request
    guard request.method == .get || request.method == .head else { return .fail }
    let facts = RequestFacts(request.headerFields, now: now.timeIntervalSince1970)
    let selection = Selection(
      exchange.stored, request: facts, fields: request.headerFields, isHead: request.method == .head, self)
    guard let (position, answer) = selection.chosen, !facts.hasBody, !facts.hasOriginCondition else { return .fail }
    let stored = exchange.stored[position]
    let state = ReuseState(stored, at: now, self)
    var status = CacheStatus(forward: exchange.reason)
    status.detail = "disconnected"
    if mayServe(state, after: .disconnected, request: facts, policy: exchange.policy) {
      return .answer(reuse(stored, at: position, as: answer, state, status))
    }
    guard forbidsStale(state.directives.control) else { return .fail }
    var head = HTTPResponse(status: .gatewayTimeout, headerFields: [.contentLength: "0"])
    head.add(status, name: name)
    return .refuse(head: head, status: status)
  }
}
#endif
