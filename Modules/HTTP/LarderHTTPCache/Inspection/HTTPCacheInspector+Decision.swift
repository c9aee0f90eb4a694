#if HTTPCache
import HTTPCachingRules
public import HTTPTypes

extension HTTPCacheInspector {
  /// The decision of a cache on a request, and the reason for it.
  ///
  /// ```swift
  /// let decision = try await inspector.decision(on: request)
  /// if let reason = decision.status.forward { print("forwarded:", reason.rawValue) }
  /// ```
  public struct Decision: Sendable {
    /// The handling of the request, as the field `Cache-Status` describes it: a hit, or the reason for forwarding it.
    public let status: CacheStatus

    /// The stored response that answers the request, or `nil` if the request is forwarded.
    public let answer: HTTPStoredResponse?

    /// The stored responses that the forwarded request validates or completes, the one to reuse first.
    public let validated: [HTTPStoredResponse]

    /// The number of responses to the URL that the request could have reused, if it had other fields.
    ///
    /// Responses of other partitions and identities do not count.
    public let candidateCount: Int
  }

  /// Returns the decision that a cache would make on a `GET` for a URL now; see ``decision(on:policy:)``.
  ///
  /// ```swift
  /// let decision = try await inspector.decision(onURL: "https://api.example/users/7", fields: [.acceptLanguage: "de"])
  /// print(decision.status.isHit)
  /// ```
  ///
  /// - Parameters:
  ///   - url: The absolute URL. A fragment is ignored.
  ///   - fields: The fields of the request. Defaults to an empty list.
  ///   - policy: The policy of the request. Defaults to `standard`.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`; the errors of the store.
  public func decision(
    onURL url: String, fields: HTTPFields = [:], policy: HTTPCachePolicy = .standard
  ) async throws -> Decision {
    let target: RequestURL
    do {
      target = try RequestURL(url)
    } catch {
      throw HTTPCacheError(error)
    }
    let request = HTTPRequest(
      method: .get, scheme: target.scheme, authority: target.authority, path: target.target, headerFields: fields)
    return try await decision(on: request, policy: policy)
  }

  /// Returns the decision that a cache would make on a request now, without asking the origin or changing anything.
  ///
  /// Responses that a program is fetching, and failures of the origin, are not known to the inspector. They can change
  /// the decision of the program's cache.
  ///
  /// ```swift
  /// var request = HTTPRequest(method: .get, scheme: "https", authority: "api.example", path: "/users/7")
  /// request.headerFields[.acceptLanguage] = "de"
  /// let decision = try await inspector.decision(on: request)
  /// print(decision.status.isHit, decision.status.forward?.rawValue ?? "not forwarded")
  /// ```
  ///
  /// - Parameters:
  ///   - request: The request. The configuration's closures decide on its partition and its identity.
  ///   - policy: The policy of the request. Defaults to `standard`.
  /// - Throws: ``HTTPCacheError`` with `invalidURL`; the errors of the store.
  public func decision(
    on request: HTTPRequest, policy: HTTPCachePolicy = .standard
  ) async throws -> Decision {
    let target = try RequestTarget(request, configuration.queryKey)
    let scope = CacheScope(
      partition: target.partition(in: configuration.partition(request)), identity: configuration.identity(request))
    var entries = try await storage.entries(url: target.url, partition: scope.own)
    if scope.hasIdentity {
      entries += try await storage.entries(url: target.url, partition: scope.common).filter {
        rules.isPublic($0.response)
      }
    }
    let now = configuration.now()
    func stored(_ position: Int) -> HTTPStoredResponse {
      HTTPStoredResponse(entries[position], layout: storage.layout, rules: rules, now: now)
    }
    let decision = rules.decide(
      request: target.request, url: target.url, scope: scope, policy: policy, stored: entries.map(\.response), now: now)
    switch decision {
    case .answer(let reuse):
      return Decision(
        status: reuse.status, answer: stored(reuse.position), validated: [], candidateCount: entries.count)
    case .refuse(_, let status):
      return Decision(status: status, answer: nil, validated: [], candidateCount: entries.count)
    case .forward(let exchange):
      let positions: [Int] =
        switch exchange.purpose {
        case .forward: []
        case .validate(let positions): positions
        case .complete(let position, _): [position]
        }
      return Decision(
        status: CacheStatus(forward: exchange.reason), answer: nil, validated: positions.map(stored),
        candidateCount: entries.count)
    }
  }
}
#endif
