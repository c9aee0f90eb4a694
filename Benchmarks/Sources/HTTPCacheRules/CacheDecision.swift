internal import Foundation
public import HTTPTypes

/// A decision of the rules of `LarderHTTPCache`, which are internal there.
///
/// This target compiles the rules a second time, because only their decision is to be measured.
public struct CacheDecision: Sendable {
  private let rules = HTTPCacheRules(mode: .shared)
  private let request: HTTPRequest
  private let stored: [StoredResponse]
  private let now: Date

  /// Creates the decision on a request for which a response is stored.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - response: The head of the response, which is stored by this request.
  ///   - seconds: The time of the decision, in seconds since 1970.
  public init(on request: HTTPRequest, stored response: HTTPResponse, at seconds: Double) {
    now = Date(timeIntervalSince1970: seconds)
    self.request = request
    var values = RequestValues(request.headerFields)
    let names = ResponseFacts(response.headerFields, received: seconds).vary ?? []
    stored = [
      StoredResponse(
        url: "https://www.example.com/", status: response.status.code, fields: response.headerFields,
        selecting: SelectingFields(names: names, in: &values), requestTime: now, responseTime: now, length: 1_024)
    ]
  }

  /// Decides, and returns the number of fields of the head that answers the request; 0 if it is to be forwarded.
  public func fieldCount() -> Int {
    let decision = rules.decide(
      request: request, url: stored[0].url, policy: .standard, stored: stored, now: now)
    guard case .answer(let reuse) = decision else { return 0 }
    return reuse.head.headerFields.count
  }
}
