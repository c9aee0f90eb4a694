#if HTTPCache
public import HTTPTypes

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The two kinds of caches of RFC 9111.
public enum HTTPCacheMode: String, Sendable, Hashable, CaseIterable {
  /// A cache of one user, as a program has it.
  case `private`

  /// A cache of many users, as a proxy has it. It doesn't store what one user alone may see.
  case shared
}

/// The settings of the rules of a cache.
///
/// The decisions are functions of this type.
///
/// No function does input or output, or reads a clock.
public struct HTTPCacheRules: Sendable, Hashable {
  /// The kind of the cache.
  public var mode: HTTPCacheMode

  /// The fraction of the time since `Last-Modified` that a response without explicit freshness stays fresh.
  public var heuristicFraction: Double = 0.1

  /// The longest heuristic freshness, in seconds.
  public var heuristicLimit: Double = 86_400

  /// The targeted fields of RFC 9213, such as `CDN-Cache-Control`; the first one that a response has decides.
  public var targetedFields: [HTTPField.Name] = []

  /// Whether a response with `Set-Cookie` is never stored.
  public var refusesSetCookie = false

  /// The name of the cache in `Cache-Status`, or `nil` for no such field.
  public var name: String? = "Larder"

  /// The largest sum of the names and values of the fields of a head that is stored, in bytes.
  public var largestHead = 64 * 1024

  /// The largest number of stored responses for one URL.
  public var largestVariantCount = 64

  /// The largest number of separate parts of one stored response.
  public var largestPartCount = 64

  /// Creates the default settings of a kind of cache.
  ///
  /// - Parameter mode: The kind of the cache.
  public init(mode: HTTPCacheMode) {
    self.mode = mode
  }
}

extension StoredResponse {
  /// Returns the age in seconds (RFC 9111, section 4.2.3).
  ///
  /// The whole time from sending the request to receiving the head counts as age, because the origin may have generated
  /// the response at the beginning of it.
  func currentAge(at now: Date) -> Double {
    let received = responseTime.timeIntervalSince1970
    // Date has whole seconds. A response that was received in the same second isn't a second old.
    let apparentAge = facts.date.map { max(0, received.rounded(.down) - Double($0.seconds)) } ?? 0
    let correctedAge = Double(facts.age) + max(0, received - requestTime.timeIntervalSince1970)
    return max(apparentAge, correctedAge) + max(0, now.timeIntervalSince(responseTime))
  }

  /// Returns the freshness lifetime in seconds (RFC 9111, section 4.2.1).
  func freshnessLifetime(_ rules: HTTPCacheRules) -> Double {
    rules.freshnessLifetime(of: self, rules.directives(of: fields, facts))
  }

  /// Returns whether the response is fresh.
  func isFresh(at now: Date, _ rules: HTTPCacheRules) -> Bool {
    freshnessLifetime(rules) > currentAge(at: now)
  }
}

extension HTTPCacheRules {
  /// The status codes that allow heuristic freshness (RFC 9110, section 15.1).
  static let heuristicStatuses: Set = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]

  /// Returns the freshness lifetime in seconds, negative if `Expires` is before `Date`.
  func freshnessLifetime(of response: StoredResponse, _ directives: Directives) -> Double {
    explicitLifetime(of: response, directives) ?? heuristicLifetime(of: response, directives)
  }

  /// Returns the freshness lifetime that the origin gave, or `nil` if it gave none.
  func explicitLifetime(of response: StoredResponse, _ directives: Directives) -> Double? {
    if mode == .shared, let seconds = directives.control.sharedMaxAge { return Double(seconds) }
    if let seconds = directives.control.maxAge { return Double(seconds) }
    switch response.facts.expires {
    case .at(let expires) where !directives.isTargeted: return Double(expires.seconds) - response.dateOrReceipt
    case .invalid where !directives.isTargeted: return 0
    default: return nil
    }
  }

  private func heuristicLifetime(of response: StoredResponse, _ directives: Directives) -> Double {
    let control = directives.control
    let isAllowed =
      Self.heuristicStatuses.contains(response.status) || control.isPublic || (mode == .private && control.isPrivate)
    guard isAllowed, let modified = response.facts.validator.lastModified else { return 0 }
    let sinceModification = response.dateOrReceipt - Double(modified.seconds)
    return min(max(0, sinceModification * heuristicFraction), heuristicLimit)
  }

  /// Returns whether a directive forbids that the response is reused while it is stale.
  func forbidsStale(_ control: CacheControl) -> Bool {
    control.noCache || control.mustRevalidate
      || (mode == .shared && (control.proxyRevalidate || control.sharedMaxAge != nil))
  }
}

extension StoredResponse {
  /// The time of `Date` in seconds since 1970, or the time of receipt if the field isn't valid.
  var dateOrReceipt: Double {
    facts.date.map { Double($0.seconds) } ?? responseTime.timeIntervalSince1970.rounded(.down)
  }
}
#endif
