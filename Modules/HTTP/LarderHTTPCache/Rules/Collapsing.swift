#if HTTPCache
internal import Foundation
internal import HTTPTypes

extension HTTPCacheRules {
  /// Returns whether a request may wait for the response to another request for the same URL, and whether others may
  /// wait for the response to this one.
  ///
  /// Only plain `GET` requests do: without a body, a condition, a range, or a directive that demands an answer of its
  /// own.
  func mayCollapse(_ request: HTTPRequest, policy: HTTPCachePolicy) -> Bool {
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
  /// - Parameters:
  ///   - response: The response, as ``ResponseDecision/Storing`` or ``Reuse`` has it. Its body may still be incoming.
  ///   - request: The request that waited.
  ///   - url: The URL of both requests.
  ///   - now: The present time.
  /// - Returns: The answer, or `nil` if the request must be forwarded.
  func share(_ response: StoredResponse, with request: HTTPRequest, url: String, now: Date) -> Reuse? {
    let decision = decide(request: request, url: url, policy: .standard, stored: [response], now: now)
    guard case .answer(var reuse) = decision, reuse.refresh == nil else { return nil }
    reuse.status.isHit = false
    reuse.status.forward = .uriMiss
    reuse.status.isCollapsed = true
    return reuse
  }
}

extension ResponseDecision.Storing {
  /// Whether the body that is being received is the whole representation, so that requests that waited may share it.
  var isWhole: Bool {
    guard let receiving else { return true }
    return receiving == response.length.map { 0..<$0 }
  }
}
#endif
