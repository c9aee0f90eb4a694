#if HTTPCache
internal import Foundation
internal import HTTPTypes

/// What happens to a request.
enum RequestDecision: Sendable {
  /// A stored response answers it.
  case answer(Reuse)

  /// It is forwarded: as it is, with conditions, or for missing bytes.
  case forward(Exchange)

  /// It is answered by 504, because it may not be forwarded and no stored response may be reused.
  case refuse(head: HTTPResponse, status: CacheStatus)
}

extension HTTPCacheRules {
  /// Decides on a request.
  ///
  /// - Parameters:
  ///   - request: The request of the client.
  ///   - url: The URL of the request, as ``RequestURL`` writes it.
  ///   - partition: The partition of the request; defaults to none.
  ///   - policy: The policy of the request.
  ///   - stored: The stored responses for this URL and partition.
  ///   - now: The present time.
  func decide(
    request: HTTPRequest, url: String, partition: [UInt8] = [], policy: HTTPCachePolicy, stored: [StoredResponse],
    now: Date
  ) -> RequestDecision {
    .forward(
      Exchange(
        request: request, forwarded: request, url: url, partition: partition, policy: policy, stored: stored,
        purpose: .forward, reason: .miss))
  }

  /// Returns whether a request may wait for the response to another request for the same URL instead of being
  /// forwarded.
  ///
  /// Only plain `GET` requests do: without a condition, a range, or a directive that demands an answer of its own.
  func mayWait(request: HTTPRequest, policy: HTTPCachePolicy) -> Bool {
    request.method == .get && policy == .standard
  }

  /// Decides whether a response that is being received for one request answers another request that waited for it.
  ///
  /// - Parameters:
  ///   - response: The response, as ``ResponseDecision`` describes it for storing. Its body may still be incoming.
  ///   - request: The request that waited.
  ///   - now: The present time.
  /// - Returns: The answer, or `nil` if the request must be forwarded.
  func share(_ response: StoredResponse, with request: HTTPRequest, url: String, now: Date) -> Reuse? {
    guard case .answer(let reuse) = decide(request: request, url: url, policy: .standard, stored: [response], now: now)
    else { return nil }
    return reuse
  }
}
#endif
