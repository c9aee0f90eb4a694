#if HTTPCache
import HTTPTypes
import Larder
import LarderHTTPCache
import LarderLMDB
import Synchronization
import TestSupport
import Testing

/// The code of the pages of LarderHTTPCache.
@Suite final class HTTPCachingGuideTests: Sendable {
  /// A client whose origin counts the requests.
  private final class Client: Sendable {
    let count = Mutex(0)

    func send(_ request: HTTPRequest) async throws -> (HTTPResponse, [UInt8]) {
      count.withLock { $0 += 1 }
      // Longer than the tests take on a busy machine, because the pages use the clock of the system.
      let fields: HTTPFields = [.cacheControl: "max-age=86400", .contentType: "text/plain"]
      return (HTTPResponse(status: .ok, headerFields: fields), Array("Hello".utf8))
    }
  }

  private let client = Client()
  private let request = HTTPRequest(method: .get, scheme: "https", authority: "api.example", path: "/users/7")
  private let received = Mutex<[UInt8]>([])

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
    let store = try await LMDBStore(path: folder + "/http", codec: .raw)
    let cache = try await HTTPCache(store, configuration: .private)
    let response = try await cache.response(to: request) { forwarded in
      let (head, body) = try await client.send(forwarded)
      return HTTPForwardedResponse(head: head, body: body)
    }
    for try await chunk in response.body { consume(chunk) }

    // The second request waits until the first response is stored.
    let again = try await cache.response(to: request, forward: forward)
    #expect(again.cacheStatus.isHit)
    try await store.close()
  }

  @Test func aCacheInAStore() async throws {
    let folder = try TemporaryFolder()
    try await get(in: folder.path)
    #expect(received.withLock { $0 } == Array("Hello".utf8))
    #expect(client.count.withLock { $0 } == 1)
  }

  @Test func policiesHooksAndInvalidation() async throws {
    var configuration = HTTPCacheConfiguration.private
    configuration.willStore = { request, response in
      response.headerFields[.contentType] == "video/mp4" ? .refuse : .store(userData: Array("v2".utf8))
    }
    let cache = try await HTTPCache(MemoryStore<[UInt8]>(), configuration: configuration)
    let running = Task { await cache.run() }
    for try await _ in try await cache.response(to: request, forward: forward).body {}
    let response = try await cache.response(to: request, policy: .preferCache, forward: forward)
    #expect(response.cacheStatus.isHit)

    try await cache.invalidate("https://api.example/users/7")
    try await cache.invalidate(prefix: "https://api.example/users/")
    try await cache.removeAll()

    #expect(try await !cache.response(to: request, forward: forward).cacheStatus.isHit)
    running.cancel()
    await running.value
  }

  @Test func thePagesHaveNoOtherCode() throws {
    for page in ["HTTPCaching", "LarderHTTPCache"] {
      let path = "Modules/HTTP/LarderHTTPCache/LarderHTTPCache.docc/\(page).md"
      #expect(try Guide(path).piecesMissing() == [], "\(page)")
    }
  }
}
#endif
