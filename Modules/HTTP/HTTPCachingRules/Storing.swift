#if HTTPCache
import HTTPTypes

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
    if response.facts.hasInvalidLength || StorableFields.size(of: response.fields) > largestHead { return .head }
    guard isReusable(response, directives, explicitLifetime) else { return .notReusable }
    if response.facts.hasCookie, !allowsCookie(control, explicitLifetime) { return .setCookie }
    return nil
  }

  /// Returns whether a response with `Set-Cookie` and these directives is stored.
  private func allowsCookie(_ control: CacheControl, _ explicitLifetime: Double?) -> Bool {
    switch setCookieStoring {
    case .never: false
    case .ifPublic: control.isPublic || control.sharedMaxAge != nil
    case .ifFresh: explicitLifetime != nil
    case .always: true
    }
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

/// The choice of the fields that are stored (RFC 9111, sections 3.1 and 3.2).
enum StorableFields {
  /// The fields that concern one connection or one proxy.
  static let connectionFields: Set = [
    "connection", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authentication-info",
    "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
  ]

  /// The fields of a 304, or of a response to `HEAD`, that never change a stored response, because they describe
  /// the bytes of its body.
  static let bodyFields: Set = ["content-encoding", "content-length", "content-range"]

  /// The fields that decide on reuse.
  ///
  /// A response that wants one of them not to be stored isn't stored.
  private static let decisiveFields: Set = ["age", "cache-control", "date", "expires", "vary"]

  /// Returns the fields of a response that may be stored.
  ///
  /// - Parameters:
  ///   - fields: The fields of the response.
  ///   - directives: The directives for this cache.
  ///   - rules: The rules of the cache.
  /// - Returns: The fields, or `nil` if a field that decides on reuse would be missing.
  static func select(
    _ fields: HTTPFields, _ directives: HTTPCacheRules.Directives, _ rules: HTTPCacheRules
  ) -> HTTPFields? {
    var excluded = connectionFields.union(directives.control.noCacheFields)
    if rules.mode == .shared { excluded.formUnion(directives.control.privateFields) }
    for field in fields where field.name == .connection {
      excluded.formUnion(CacheControl.fieldNames(in: field.bytes) ?? [])
    }
    guard excluded.isDisjoint(with: decisiveFields),
      rules.targetedFields.allSatisfy({ !excluded.contains($0.canonicalName) })
    else { return nil }
    var selected = HTTPFields()
    selected.reserveCapacity(fields.count)
    for field in fields where !excluded.contains(field.name.canonicalName) { selected.append(field) }
    return selected
  }

  /// Returns stored fields with those of a later response to a validation in their place.
  ///
  /// - Parameters:
  ///   - stored: The fields that are stored.
  ///   - update: The fields of the later response that may be stored.
  static func updating(_ stored: HTTPFields, with update: HTTPFields) -> HTTPFields {
    // Age tells how old one response was on its way. The one of an earlier response doesn't apply to the later one.
    var replaced: Set<String> = ["age", "date"]
    let added = update.filter { !bodyFields.contains($0.name.canonicalName) }
    for field in added { replaced.insert(field.name.canonicalName) }
    var result = stored.filter { !replaced.contains($0.name.canonicalName) }
    for field in added { result.append(field) }
    return result
  }

  /// Returns the number of bytes of the names and the values.
  static func size(of fields: HTTPFields) -> Int {
    fields.reduce(0) { $0 + $1.name.rawName.utf8.count + $1.withUnsafeBytesOfValue(\.count) }
  }
}
#endif
