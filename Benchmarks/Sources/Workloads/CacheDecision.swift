import Foundation
import HTTPCachingRules
import HTTPTypes

/// A decision of the rules of an HTTP cache, without the cache.
struct CacheDecision: Sendable {
  private let rules = HTTPCacheRules(mode: .shared)
  private let request: HTTPRequest
  private let stored: [StoredResponse]
  private let now: Date
  private let url = "https://www.example.com/"

  /// Creates the decision on a request for which a response is stored.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - response: The head of the response. It is stored by this request.
  ///   - seconds: The time of the decision, in seconds since 1970.
  init(on request: HTTPRequest, stored response: HTTPResponse, at seconds: Double) {
    now = Date(timeIntervalSince1970: seconds)
    self.request = request
    guard
      case .forward(let exchange) = rules.decide(
        request: request, url: url, policy: .standard, stored: [], now: now),
      let storing = rules.decide(response: response, to: exchange, requestTime: now, responseTime: now).storing
    else { preconditionFailure("the response is not stored") }
    stored = [storing.response]
  }

  /// Decides, and returns the number of fields of the head that answers the request; 0 if it is to be forwarded.
  func fieldCount() -> Int {
    let decision = rules.decide(request: request, url: url, policy: .standard, stored: stored, now: now)
    guard case .answer(let reuse) = decision else { return 0 }
    return reuse.head.headerFields.count
  }
}
