#if HTTPCache && LMDB
import HTTPTypes
import Larder
import LarderHTTPCache
import LarderLMDB
import TestSupport
import Testing

/// The code of the pages of LarderHTTPCache.
@Suite final class HTTPCachingGuideTests: Sendable {
  /// A client whose origin counts the requests.
  private final class Client: Sendable {
    let count = Locked(0)

    func send(_ request: HTTPRequest) async throws -> (HTTPResponse, [UInt8]) {
      count.withLock { $0 += 1 }
      // Longer than the tests take on a busy machine, because the pages use the clock of the system.
      let fields: HTTPFields = [.cacheControl: "max-age=86400", .contentType: "text/plain"]
      return (HTTPResponse(status: .ok, headerFields: fields), Array("Hello".utf8))
    }
  }

  private let client = Client()
  private let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example", path: "/users/7")
  private let received = Locked<[UInt8]>([])

  private func consume(_ bytes: [UInt8]) {
    received.withLock { $0 += bytes }
  }

  private var forward: HTTPCache.Forward {
    { [client] forwarded in
      let (head, body) = try await client.send(forwarded)
      return HTTPForwardedResponse(head: head, body: body)
    }
  }

  private func get(in folder: String) async throws {
    let (client, request) = (client, request)
    // snippet.http-caching
    let store = try await LMDBStore(path: folder + "/http", codec: .raw)
    let cache = try await HTTPCache(store, configuration: .private)
    let response = try await cache.response(to: request) { forwarded in
      let (head, body) = try await client.send(forwarded)
      return HTTPForwardedResponse(head: head, body: body)
    }
    for try await chunk in response.body { consume(chunk) }
    // snippet.end

    // The second request waits until the first response is stored.
    let again = try await cache.response(to: request, forward: forward)
    #expect(again.cacheStatus.isHit)
    try await store.close()
  }

  @Test func `a cache in a store`() async throws {
    let folder = try TemporaryFolder()
    try await get(in: folder.path)
    #expect(received.withLock { $0 } == Array("Hello".utf8))
    #expect(client.count.withLock { $0 } == 1)
  }

  @Test func `policies hooks and invalidation`() async throws {
    var configuration = HTTPCacheConfiguration.private
    // snippet.what-is-stored
    configuration.willStore = { request, response in
      response.headerFields[.contentType] == "video/mp4" ? .refuse : .store(userData: Array("v2".utf8))
    }
    // snippet.end
    // snippet.queries
    configuration.queryKey = HTTPCacheQueryKey(ignoring: ["utm_*", "fbclid"], ignoresOrder: true)
    // snippet.end
    #if Metrics
    // snippet.metrics-and-traces
    configuration.metering = HTTPCacheMetering(name: "api")
    // snippet.end
    #endif
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: configuration)
    // snippet.size
    let running = Task { await cache.run() }
    // snippet.end
    for try await _ in try await cache.response(to: request, forward: forward).body {}
    // snippet.policies
    let response = try await cache.response(to: request, policy: .preferCache, forward: forward)
    // snippet.end
    #expect(response.cacheStatus.isHit)

    // snippet.invalidation
    try await cache.invalidate("https://api.example/users/7")
    try await cache.invalidate(prefix: "https://api.example/users/")
    try await cache.removeAll()
    // snippet.end

    #expect(try await !cache.response(to: request, forward: forward).cacheStatus.isHit)
    running.cancel()
    await running.value
  }

  @Test func `partitions keep users apart`() async throws {
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: .private)
    for account in ["ada", "bob"] {
      // snippet.private-or-shared
      let response = try await cache.response(to: request, partition: Array(account.utf8), forward: forward)
      // snippet.end
      for try await _ in response.body {}
      #expect(!response.cacheStatus.isHit)
    }
    #expect(client.count.withLock { $0 } == 2)
  }

  @Test func `an inspector lists responses`() async throws {
    let store = MemoryStore<[UInt8]>()
    let cache = try await HTTPCache(store, configuration: .private)
    for _ in 0..<2 {
      for try await _ in try await cache.response(to: request, forward: forward).body {}
    }
    // snippet.looking-into-a-cache
    let inspector = try HTTPCacheInspector(store, configuration: .private)
    for response in try await inspector.responses(prefix: "https://api.example/").responses {
      print(response.status, response.freshness, response.url)
    }
    // snippet.end
    let listed = try await inspector.responses(to: "https://API.example:443/users/7#name")
    #expect(listed.map(\.url) == ["https://api.example/users/7"] && listed[0].freshness == .fresh)
    #expect(listed[0].length == 5 && listed[0].isComplete && listed[0].fields[.contentType] == "text/plain")
    #expect(try await inspector.responses(prefix: "https://other.example").responses.isEmpty)
    #expect(try await inspector.usage().responseCount == 1)
    #expect(try await inspector.verify().report.findings == [])
    var body: [UInt8] = []
    try await inspector.readBody(of: listed[0]) { body += $0 }
    #expect(body.count == 5)
    try await cache.removeAll()
    await expectStoreError(.notFound) { try await inspector.readBody(of: listed[0]) { _ in } }
  }
}
#endif
