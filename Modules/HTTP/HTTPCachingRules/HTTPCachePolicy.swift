#if HTTPCache
/// How one request uses the cache.
///
/// | Policy | Stored responses | Requests to the origin | Policy of `URLSession` |
/// | --- | --- | --- | --- |
/// | ``standard`` | as RFC 9111 says | as RFC 9111 says | `useProtocolCachePolicy` |
/// | ``preferCache`` | reused at any age | if nothing can be reused | `returnCacheDataElseLoad` |
/// | ``cacheOnly`` | reused at any age | none; the answer is 504 instead | `returnCacheDataDontLoad` |
/// | ``reload`` | not reused | always, without conditions | `reloadIgnoringLocalCacheData` |
/// | ``revalidate`` | reused after validation | always, with conditions | `reloadRevalidatingCacheData` |
/// | ``reloadEndToEnd`` | not reused, neither here nor by other caches | always, with `no-cache` | `reloadIgnoringLocalAndRemoteCacheData` |
///
/// A policy never overrides a directive of the response: a response with `no-cache`, and a stale one with
/// `must-revalidate`, is validated before it is reused, and one with `no-store` is never stored. `URLSession` differs
/// there. A response to any policy but ``cacheOnly`` is stored if it may be stored.
///
/// ```swift
/// let decision = rules.decide(request: request, url: url, policy: .cacheOnly, stored: stored[url] ?? [], now: .now)
/// ```
public enum HTTPCachePolicy: String, Sendable, Hashable, CaseIterable {
  /// The rules of RFC 9111 alone decide.
  case standard

  /// A stored response is reused whatever its age.
  ///
  /// `LoadPolicy.cacheElseLoad` of LarderCache is different: it never reuses an expired value.
  case preferCache

  /// A stored response is reused whatever its age, and the origin is never asked. The answer is 504 if there isn't one.
  case cacheOnly

  /// The request is forwarded as it is. Its response replaces the stored one.
  case reload

  /// A stored response is reused only if the origin confirms now that it is still valid.
  case revalidate

  /// The request is forwarded so that no cache on its way answers it either.
  case reloadEndToEnd
}
#endif
