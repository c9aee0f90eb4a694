#if HTTPCache
public import HTTPTypes

/// A request that is forwarded to the origin, with everything that the decision on its response needs.
///
/// Send ``forwarded`` to the origin, then pass the exchange with the response to
/// ``HTTPCacheRules/decide(response:to:requestTime:responseTime:)``, or without one to
/// ``HTTPCacheRules/decide(failureOf:by:now:)``.
public struct Exchange: Sendable {
  /// A use that the cache makes of the response.
  public enum Purpose: Sendable, Equatable {
    /// The origin's response is the answer.
    case forward

    /// The stored responses at these positions are validated. The first one is the one to reuse.
    case validate([Int])

    /// The missing bytes of the stored response at a position are fetched.
    case complete(Int, missing: Range<Int64>)
  }

  /// The request of the client.
  public var request: HTTPRequest

  /// The request that is sent to the origin: that of the client, perhaps with other conditions or another range.
  public var forwarded: HTTPRequest

  /// The URL of the request, as ``RequestURL`` writes it.
  public var url: String

  /// The scope of the request.
  public var scope: CacheScope

  /// The policy of the request.
  public var policy: HTTPCachePolicy

  /// The stored responses for the URL, as they were when the request was decided.
  ///
  /// Positions refer to this list.
  public var stored: [StoredResponse]

  /// The use that the cache makes of the response.
  public var purpose: Purpose

  /// The reason for forwarding, as `Cache-Status` says it.
  public var reason: CacheStatus.ForwardReason
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

/// The stored responses that match a request, and the one among them that could answer it.
struct Selection {
  /// The positions of the responses whose selecting fields match, the most recent one first.
  var matching: [Int] = []

  /// The most recent response that could answer the request, and the form of the answer.
  var chosen: (position: Int, answer: Reuse.Answer)?

  /// The most recent response that could answer the request once these bytes are fetched.
  var completable: (position: Int, missing: Range<Int64>)?

  /// Selects among the stored responses for the URL of a request (RFC 9111, section 4.1).
  init(
    _ stored: [StoredResponse], request: RequestFacts, fields: HTTPFields, isHead: Bool, _ rules: HTTPCacheRules
  ) {
    var values = RequestValues(fields)
    matching = stored.indices.filter { stored[$0].selecting.matches(&values) }
    if matching.count > 1 {
      matching.sort { left, right in
        let (one, other) = (stored[left], stored[right])
        return (one.dateOrReceipt, one.responseTime) > (other.dateOrReceipt, other.responseTime)
      }
    }
    for position in matching {
      switch rules.form(of: stored[position], for: request, isHead: isHead) {
      case .answer(let answer):
        chosen = (position, answer)
        return
      case .missing(let bytes):
        if completable == nil { completable = (position, bytes) }
      case .none: break
      }
    }
  }
}
#endif
