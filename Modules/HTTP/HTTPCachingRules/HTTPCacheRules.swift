#if HTTPCache
public import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The two kinds of caches of RFC 9111.
public enum HTTPCacheMode: String, Sendable, Hashable, CaseIterable {
  /// A cache of one user, as a program has it.
  case `private`

  /// A cache of many users, as a proxy has it. It doesn't store what one user alone may see.
  case shared
}

/// The responses with `Set-Cookie` that a cache stores.
///
/// RFC 9111 lets a cache store `Set-Cookie` like any other field. In a shared cache, each client then receives the cookie
/// of the one that was answered first. It can be a session of another person. Proxies such as nginx and Varnish don't
/// store such responses by default.
public enum SetCookieStoring: String, Sendable, Hashable, CaseIterable {
  /// No response with `Set-Cookie` is stored.
  case never

  /// A response with `Set-Cookie` is stored if the origin says that it is for all clients, by `public` or `s-maxage`.
  case ifPublic

  /// A response with `Set-Cookie` is stored if it has explicit freshness, such as `max-age` or `Expires`.
  case ifFresh

  /// `Set-Cookie` doesn't matter.
  case always
}

/// The settings of a cache's rules, whose methods are the decisions of RFC 9111.
///
/// ```swift
/// let rules = HTTPCacheRules(mode: .private)
/// let url = try RequestURL(of: request).text
/// switch rules.decide(request: request, url: url, stored: stored[url] ?? [], now: .now) {
/// case .answer(let reuse): …
/// case .forward(let exchange): …
/// case .refuse(let head, let status): …
/// }
/// ```
///
/// The decisions are pure: no method does input or output, reads a clock, or keeps anything. They can be called from any task
/// at the same time. Their time is linear in the length of the fields and in the number of stored responses for the URL.
public struct HTTPCacheRules: Sendable, Hashable {
  /// The kind of the cache, for which the other settings have their defaults.
  public let mode: HTTPCacheMode

  /// The fraction of the time since `Last-Modified` that a response without explicit freshness stays fresh.
  ///
  /// Defaults to 0.1. Must be at least 0.
  public var heuristicFraction: Double = 0.1

  /// The longest heuristic freshness, in seconds.
  ///
  /// Defaults to 86,400, a day.
  public var heuristicLimit: Double = 86_400

  /// The targeted fields of RFC 9213, such as `CDN-Cache-Control`, in order of precedence.
  ///
  /// Defaults to an empty list.
  public var targetedFields: [HTTPField.Name] = []

  /// The responses with `Set-Cookie` that are stored.
  ///
  /// Defaults to ``SetCookieStoring/ifPublic`` in a shared cache, and to ``SetCookieStoring/always`` in a private one.
  public var setCookieStoring: SetCookieStoring

  /// The name of the cache in `Cache-Status`, a token, or `nil` for no such field.
  ///
  /// Defaults to `Larder`. The decisions don't check it.
  public var name: String? = "Larder"

  /// The largest sum of the names and values of the fields of a head that is stored, in bytes.
  ///
  /// Defaults to 65,536.
  public var largestHead = 64 * 1024

  /// The largest number of separate ranges of one stored response.
  ///
  /// Defaults to 64. If a further part doesn't fit, the new part replaces all others.
  public var largestPartCount = 64

  /// Creates the default settings of a kind of cache.
  ///
  /// - Parameter mode: The kind of the cache.
  public init(mode: HTTPCacheMode) {
    self.mode = mode
    setCookieStoring = mode == .shared ? .ifPublic : .always
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
