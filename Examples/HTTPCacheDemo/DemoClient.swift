import AsyncHTTPClient
import NIOCore
import NIOHTTP1

/// One request with its answer.
struct Exchange: Sendable {
  var status: Int
  var body: ByteBuffer
  var duration: Duration

  /// The value of `Cache-Status` after the name of the cache; `nil` without a cache.
  var cacheStatus: String?

  /// The way in which the cache answered.
  var outcome: Outcome? { cacheStatus.map { Outcome(cacheStatus: $0) } }
}

/// The way in which a cache answered a request, by its `Cache-Status`.
enum Outcome: String, CaseIterable {
  /// The response of the origin, which was stored.
  case stored
  /// The response of the origin, which may not be stored.
  case passedOn = "passed on"
  /// A stored response that is fresh.
  case reused
  /// A stored response that is stale, because its fields allow it.
  case stale = "reused stale"
  /// A stored response that the origin has confirmed by 304, without a body.
  case validated
  /// The response to another request that was made at the same time.
  case collapsed
  /// A stored part, with the bytes of the origin that were missing.
  case completed

  init(cacheStatus: String) {
    let parameters = cacheStatus.split(separator: ";").map { $0.filter { $0 != " " } }
    let isStale = parameters.contains { $0.hasPrefix("ttl=-") }
    let forward = parameters.first { $0.hasPrefix("fwd=") }
    if parameters.contains("hit") {
      self = isStale ? .stale : .reused
    } else if parameters.contains("collapsed") {
      self = .collapsed
    } else if parameters.contains("fwd-status=304") {
      self = .validated
    } else if isStale, forward == "fwd=stale" {
      self = .stale
    } else if forward == "fwd=partial" {
      self = .completed
    } else {
      self = parameters.contains("stored") ? .stored : .passedOn
    }
  }
}

/// A client that measures its requests.
struct DemoClient: Sendable {
  /// The URL of the server or the proxy, without a path.
  let url: String

  /// Sends a request and reads its whole body.
  ///
  /// - Throws: The errors of the client, for example if there is no server.
  func send(_ method: HTTPMethod, _ path: String, _ fields: [String: String]) async throws -> Exchange {
    var request = HTTPClientRequest(url: url + path)
    request.method = method
    for (name, value) in fields { request.headers.add(name: name, value: value) }
    let start = ContinuousClock.now
    // If there is no server, the client tries to connect for all this time.
    let response = try await HTTPClient.shared.execute(request, timeout: .seconds(3))
    let body = try await response.body.collect(upTo: 10_000_000)
    let status = response.headers[canonicalForm: "Cache-Status"].last.map { value in
      String(value.drop { $0 != ";" }.drop { $0 == ";" || $0 == " " })
    }
    return Exchange(
      status: Int(response.status.code), body: body, duration: ContinuousClock.now - start, cacheStatus: status)
  }
}
