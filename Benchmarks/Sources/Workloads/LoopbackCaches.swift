import AsyncHTTPClient
import HTTPTypes
import Larder
import LarderHTTPCache
import LarderHTTPClient
import LarderLMDB
import LoopbackHTTP
import NIOCore
import NIOHTTP1

/// Hits in a client and in a proxy, next to the same client without a cache and the same server without a proxy.
enum LoopbackCaches {
  static let comparisons = [
    Comparison(
      clientHits("MemoryStore") { _ in MemoryStore<[UInt8]>() },
      beside: [Comparison.Yardstick(clientRequests, limit: 1.0 / 5)]),
    Comparison(
      clientHits("LMDBStore") { try await LMDBStore(path: $0.newPath(), codec: .raw, durability: .buffered) },
      beside: [Comparison.Yardstick(clientRequests, limit: 1.0 / 5)]),
    Comparison(proxyHits, beside: [Comparison.Yardstick(constantResponses, limit: 1 / 0.6)]),
  ]

  private static let hitCount = 2_000
  private static let clientRequestCount = 500
  private static let serverRequestCount = 6_400
  private static let connectionCount = 16
  private static let path = "/articles/7"
  private static let body = [UInt8](repeating: 7, count: 1024)

  /// Starts an origin whose response is that of the workloads of `HTTPCaches`.
  private static func startOrigin() async throws -> LoopbackServer {
    var head = HTTPCaches.head
    head.headerFields[.contentLength] = "\(body.count)"
    return try await LoopbackServer.answering(head, body: body)
  }

  // MARK: The client

  /// Sends a request, and reads the whole response.
  ///
  /// - Returns: The number of bytes of the body.
  private static func load(
    _ execute: (HTTPClientRequest, NIODeadline) async throws -> HTTPClientResponse, from port: Int
  ) async throws -> Int {
    var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(path)")
    request.headers.add(name: "Accept-Encoding", value: "gzip, deflate, br")
    request.headers.add(name: "Accept-Language", value: "en-US,en;q=0.5")
    let response = try await execute(request, .now() + .seconds(10))
    var count = 0
    for try await buffer in response.body { count += buffer.readableBytes }
    return count
  }

  private static func clientHits<Store: DataStore<[UInt8]>>(
    _ store: String, _ open: @escaping @Sendable (ScratchFolder) async throws -> Store
  ) -> Workload {
    Workload("hit of 1 KB in CachedHTTPClient over \(store)", operationCount: hitCount) { folder in
      let cache = try await HTTPCaches.makeCache(open(folder), .private)
      let http = CachedHTTPClient(cache: cache)
      let origin = try await startOrigin()
      let port = origin.port
      // The second request finds the response stored.
      for _ in 0..<2 { consume(try await load({ try await http.execute($0, deadline: $1) }, from: port)) }
      // The origin ends here, so that a miss would fail.
      withExtendedLifetime(origin) {}
      return {
        for _ in 0..<hitCount { consume(try await load({ try await http.execute($0, deadline: $1) }, from: port)) }
      }
    }
  }

  private static let clientRequests = Workload(
    "HTTPClient, from an origin on loopback", operationCount: clientRequestCount
  ) { _ in
    let origin = try await startOrigin()
    return {
      for _ in 0..<clientRequestCount {
        consume(try await load({ try await HTTPClient.shared.execute($0, deadline: $1) }, from: origin.port))
      }
    }
  }

  // MARK: The proxy

  private static func send(_ count: Int, over connectionCount: Int, to server: LoopbackServer) async throws {
    try await RequestLoad.send(
      count, over: connectionCount, to: server.port, path: path, bodyLength: body.count)
  }

  private static let proxyHits = Workload(
    "request for a stored response of 1 KB to CachingProxy over MemoryStore", operationCount: serverRequestCount
  ) { _ in
    let origin = try await startOrigin()
    let cache = try await HTTPCaches.makeCache(MemoryStore<[UInt8]>())
    let proxy = try await LoopbackServer.proxy(cache, originPort: origin.port)
    try await send(2, over: 1, to: proxy)
    // As above.
    withExtendedLifetime(origin) {}
    return { try await send(serverRequestCount, over: connectionCount, to: proxy) }
  }

  private static let constantResponses = Workload(
    "request to the same server, which answers with a constant", operationCount: serverRequestCount
  ) { _ in
    let server = try await startOrigin()
    return { try await send(serverRequestCount, over: connectionCount, to: server) }
  }
}
