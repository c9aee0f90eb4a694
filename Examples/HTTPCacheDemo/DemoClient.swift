import AsyncHTTPClient
import LarderHTTPCache
import NIOCore
import NIOHTTP1

/// One request with its answer.
struct Exchange: Sendable {
  var status: Int
  var body: ByteBuffer
  var duration: Duration

  /// The last value of `Cache-Status`; `nil` without a cache.
  var cacheStatus: String?

  /// The way in which the cache answered.
  var outcome: Outcome? { cacheStatus.flatMap { CacheStatus(fieldValue: $0) }.map { Outcome($0) } }
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

  init(_ status: CacheStatus) {
    if status.isHit {
      self = status.isStale ? .stale : .reused
    } else if status.isCollapsed {
      self = .collapsed
    } else if status.isValidated {
      self = .validated
    } else if status.isStale, status.forward == .stale {
      self = .stale
    } else if status.forward == .partial {
      self = .completed
    } else {
      self = status.isStored ? .stored : .passedOn
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
    return Exchange(
      status: Int(response.status.code), body: body, duration: ContinuousClock.now - start,
      cacheStatus: response.headers["Cache-Status"].last)
  }
}
