#if HTTPCache
internal import Foundation
internal import HTTPTypes

extension HTTPCacheRules {
  /// The status codes whose caching requirements the rules meet, for `must-understand`.
  static let understoodStatuses: Set = [
    200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 411, 413, 414, 415,
    421, 422, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505,
  ]

  /// The status codes that answer one request's condition, range, expectation or proxy, and no other request.
  private static let personalStatuses: Set = [304, 407, 412, 416, 417]

  /// Returns the reason why a response isn't stored, or `nil` if it may be stored (RFC 9111, section 3).
  ///
  /// - Parameters:
  ///   - response: The response, with the fields as they were received and the status of a part of 200.
  ///   - request: The request, if the response is the one to it. `nil` for a stored response with an updated head.
  ///   - directives: The directives of the response for this cache.
  func refusal(
    for response: StoredResponse, request: RequestFacts?, _ directives: Directives
  ) -> ResponseDecision.Refusal? {
    let control = directives.control
    if response.status < 200 || response.status > 599 || Self.personalStatuses.contains(response.status) {
      return .status
    }
    if control.mustUnderstand {
      guard Self.understoodStatuses.contains(response.status) else { return .status }
    } else if control.noStore {
      return .noStore
    }
    if request?.cacheControl.noStore == true { return .noStore }
    if mode == .shared {
      if control.isPrivate { return .private }
      let isShareable = control.isPublic || control.mustRevalidate || control.sharedMaxAge != nil
      if request?.hasAuthorization == true, !isShareable { return .authorization }
    }
    guard let vary = response.facts.vary, vary.count <= SelectingFields.largestFieldCount else { return .vary }
    let explicitLifetime = explicitLifetime(of: response, directives)
    if response.facts.hasCookie, refusesSetCookie || (mode == .shared && explicitLifetime == nil) { return .setCookie }
    if response.facts.hasInvalidLength || StorableFields.size(of: response.fields) > largestHead { return .head }
    return isReusable(response, directives, explicitLifetime) ? nil : .notReusable
  }

  /// Returns whether any later request could reuse the response: it has freshness left, a validator, or leave to be
  /// served stale.
  private func isReusable(_ response: StoredResponse, _ directives: Directives, _ explicitLifetime: Double?) -> Bool {
    let control = directives.control
    let isCacheable =
      explicitLifetime != nil || Self.heuristicStatuses.contains(response.status) || control.isPublic
      || (mode == .private && control.isPrivate)
    guard isCacheable else { return false }
    if !response.facts.validator.isEmpty { return true }
    guard !control.noCache else { return false }
    if freshnessLifetime(of: response, directives) > response.currentAge(at: response.responseTime) { return true }
    return !forbidsStale(control) && ((control.staleWhileRevalidate ?? 0) > 0 || (control.staleIfError ?? 0) > 0)
  }
}
#endif
