#if HTTPCache
internal import Foundation
internal import HTTPTypes

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
struct HTTPCacheRules: Sendable {
  /// The kind of the cache.
  var mode: HTTPCacheMode

  /// The fraction of the time since `Last-Modified` that a response without explicit freshness stays fresh.
  var heuristicFraction: Double = 0.1

  /// The longest heuristic freshness, in seconds.
  var heuristicLimit: Double = 86_400

  /// The targeted fields of RFC 9213, such as `CDN-Cache-Control`; the first one that a response has decides.
  var targetedFields: [HTTPField.Name] = []

  /// Whether a response with `Set-Cookie` is never stored.
  var refusesSetCookie = false

  /// The name of the cache in `Cache-Status`, or `nil` for no such field.
  var name: String? = "Larder"

  /// The largest sum of the names and values of the fields of a head that is stored, in bytes.
  var largestHead = 64 * 1024

  /// The largest number of stored responses for one URL.
  var largestVariantCount = 64

  /// The largest number of separate parts of one stored response.
  var largestPartCount = 64
}
#endif
