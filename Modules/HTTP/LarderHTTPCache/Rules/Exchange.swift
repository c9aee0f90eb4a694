#if HTTPCache
internal import HTTPTypes

/// A request that is forwarded to the origin, with everything that the decision on its response needs.
struct Exchange: Sendable {
  /// The use that the cache makes of the response.
  enum Purpose: Sendable, Equatable {
    /// The origin's response is the answer.
    case forward

    /// The stored responses at these positions are validated. The first one is the one to reuse.
    case validate([Int])

    /// The missing bytes of the stored response at a position are fetched.
    case complete(Int, missing: Range<Int64>)
  }

  /// The request of the client.
  var request: HTTPRequest

  /// The request that is sent to the origin.
  var forwarded: HTTPRequest

  /// The URL of the request, as ``RequestURL`` writes it.
  var url: String

  /// The partition of the request.
  var partition: [UInt8]

  /// The policy of the request.
  var policy: HTTPCachePolicy

  /// The stored responses for the URL, as they were when the request was decided.
  ///
  /// Positions refer to this list.
  var stored: [StoredResponse]

  /// The use that the cache makes of the response.
  var purpose: Purpose

  /// The reason for forwarding, as `Cache-Status` says it.
  var reason: CacheStatus.ForwardReason
}

extension Exchange {
  /// Returns the exchange that forwards the client's request as it came, without anything of the cache.
  func withoutConditions() -> Exchange {
    var copy = self
    copy.forwarded = request
    copy.purpose = .forward
    return copy
  }
}
#endif
