#if HTTPCache
import Foundation
import HTTPTypes
import LarderTesting

@testable import HTTPCachingRules

/// A client of a ``RulesCache``: one request after another, with the answers that a test gives for the origin.
struct Session {
  /// The answer of the origin.
  struct Reply {
    var status = 200
    var fields: HTTPFields = [:]
    var body = "body"
    var delay = 0.0
  }

  /// The response to the client, and the requests to the origin.
  struct Result {
    var status: Int
    var fields: HTTPFields
    var body: String
    var cache: CacheStatus

    /// The requests that reached the origin, in order.
    ///
    /// Those of a refresh in the background follow.
    var forwarded: [HTTPRequest]

    var isHit: Bool { forwarded.isEmpty && status != 504 }
  }

  /// The time when the session starts, in whole seconds.
  static let start = 1_800_000_000

  private(set) var cache: RulesCache

  init(_ mode: HTTPCacheMode = .shared, _ change: (inout HTTPCacheRules) -> Void = { _ in }) {
    var rules = HTTPCacheRules(mode: mode)
    change(&rules)
    cache = RulesCache(rules)
  }

  /// The stored responses for a path.
  func stored(_ path: String = "/") -> [StoredResponse] { cache.stored["https://example.com\(path)"] ?? [] }

  /// Sends a request.
  ///
  /// The origin can't be reached if it returns `nil`; the result's status is 0 if the client gets the error.
  mutating func request(
    _ method: HTTPRequest.Method = .get, _ path: String = "/", _ fields: HTTPFields = [:],
    policy: HTTPCachePolicy = .standard, at seconds: Double = 0, origin: (HTTPRequest) -> Reply? = { _ in Reply() }
  ) throws -> Result {
    let request = HTTPRequest(
      method: method, scheme: "https", authority: "example.com", path: path, headerFields: fields)
    let now = Date(timeIntervalSince1970: Double(Self.start) + seconds)
    var forwarded: [HTTPRequest] = []
    let step = try cache.begin(request, policy: policy, at: now)
    let response = try run(step, at: now, &forwarded, origin)
    if let refresh = response?.refresh { _ = try run(.forward(refresh), at: now, &forwarded, origin) }
    return Result(
      status: response?.head.status.code ?? 0, fields: response?.head.headerFields ?? [:],
      body: String(decoding: response?.body ?? [], as: UTF8.self), cache: response?.status ?? CacheStatus(),
      forwarded: forwarded)
  }

  private mutating func run(
    _ first: RulesCache.Step, at now: Date, _ forwarded: inout [HTTPRequest], _ origin: (HTTPRequest) -> Reply?
  ) throws -> RulesCache.Response? {
    var step = first
    while case .forward(let exchange) = step {
      forwarded.append(exchange.forwarded)
      guard let reply = origin(exchange.forwarded) else { return try cache.fail(exchange, at: now) }
      var fields = reply.fields
      let received = now.addingTimeInterval(reply.delay)
      if !fields.contains(.date) { fields[.date] = HTTPDate(seconds: Int64(received.timeIntervalSince1970)).text }
      let hasBody = reply.status != 304 && reply.status != 204 && exchange.forwarded.method != .head
      step = try cache.finish(
        exchange, with: HTTPResponse(status: .init(code: reply.status), headerFields: fields),
        body: hasBody ? Array(reply.body.utf8) : [], sent: now, received: received)
    }
    guard case .answer(let response) = step else { return nil }
    return response
  }

  /// Stores a response to a request, and returns what the client got.
  @discardableResult
  mutating func store(
    _ fields: HTTPFields, status: Int = 200, body: String = "body", for request: HTTPFields = [:], path: String = "/",
    at seconds: Double = 0
  ) throws -> Result {
    try self.request(.get, path, request, at: seconds) { _ in Reply(status: status, fields: fields, body: body) }
  }
}

extension HTTPField.Name {
  /// Returns the name that a text is, which must be one.
  static func named(_ text: String) -> Self {
    guard let name = Self(text) else { preconditionFailure("\(text) is not a field name") }
    return name
  }

  static let cacheStatus = named("Cache-Status")
  static let color = named("Color")
  static let pragma = named("Pragma")
  static let targeted = named("CDN-Cache-Control")
}

extension HTTPFields {
  /// Returns the fields with others behind them.
  func merging(_ others: HTTPFields) -> HTTPFields {
    var result = self
    result.append(contentsOf: others)
    return result
  }
}

extension HTTPRequest.Method {
  /// Returns the method that a text is, which must be one.
  static func named(_ text: String) -> Self {
    guard let method = Self(text) else { preconditionFailure("\(text) is not a method") }
    return method
  }
}

extension SeededGenerator {
  /// Returns a random element of a list that isn't empty.
  mutating func pick<Element>(_ list: [Element]) -> Element {
    list[Int.random(in: 0..<list.count, using: &self)]
  }
}

/// Returns a date relative to the start of a session.
func dateText(_ seconds: Int) -> String { Duel.text(Session.start + seconds) }
#endif
