import AsyncHTTPClient
import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import LarderHTTPClient
import LarderLMDB
import Logging
import NIOCore
import NIOHTTP1
import Testing

/// The code of the pages of LarderHTTPClient.
@Suite("Guide of LarderHTTPClient", .timeLimit(.minutes(5)))
final class GuideTests: Sendable {
  private let received = Locked("")

  private func consume(_ buffer: ByteBuffer) {
    received.withLock { $0 += String(buffer: buffer) }
  }

  private func get(_ request: HTTPClientRequest, in folder: String) async throws {
    // snippet.overview
    let store = try await LMDBStore(path: folder + "/http", codec: .raw)
    let cache = try await HTTPCache(store, configuration: .private)
    let http = CachedHTTPClient(cache: cache)
    let response = try await http.execute(request, deadline: .now() + .seconds(10))
    for try await buffer in response.body { consume(buffer) }
    try await http.shutdown()
    // snippet.end
    // The last bytes of a body may arrive before the store has them.
    while cache.statistics().storedCount + cache.statistics().hitCount == 0 {
      try await Task.sleep(for: .milliseconds(1))
    }
    try await store.close()
  }

  private func isHit(_ response: HTTPClientResponse, _ logger: Logger) -> Bool {
    // snippet.the-status-of-a-response
    if let status = response.cacheStatus, status.isHit {
      logger.info("from the store", metadata: ["ttl": "\(status.timeToLive ?? 0)"])
    }
    // snippet.end
    return response.cacheStatus?.isHit == true
  }

  private func withoutRedirects(_ cache: HTTPCache) -> CachedHTTPClient {
    // snippet.redirects
    let http = CachedHTTPClient(cache: cache, redirects: .disallow)
    // snippet.end
    return http
  }

  private func encoded(_ cache: HTTPCache) -> CachedHTTPClient {
    // snippet.encoded-bodies
    let http = CachedHTTPClient(cache: cache, decodesBodies: false)
    // snippet.end
    return http
  }

  private func withoutRetries(_ cache: HTTPCache) -> CachedHTTPClient {
    // snippet.differences-from-other-clients
    var configuration = HTTPClient.Configuration.singletonConfiguration
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 100
    let http = CachedHTTPClient(cache: cache, configuration: configuration)
    // snippet.end
    return http
  }

  private func withKey(_ cache: HTTPCache, _ key: [UInt8]) -> CachedHTTPClient {
    // snippet.several-users-2
    let http = CachedHTTPClient(cache: cache, credentialsKey: key)
    // snippet.end
    return http
  }

  private func get(
    _ request: HTTPClientRequest, _ http: CachedHTTPClient, account: String
  ) async throws -> HTTPClientResponse {
    // snippet.several-users
    let response = try await http.execute(request, deadline: .now() + .seconds(10), partition: Array(account.utf8))
    // snippet.end
    return response
  }

  @Test("A response outlives the program in a file")
  func file() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await Setting.run { _, wire in
      try await wire.send(response("Cache-Control: max-age=60"))
      return .keep
    } _: { setting async throws in
      for _ in 1...2 { try await get(setting.request("/"), in: folder.path) }
      #expect(received.withLock { $0 } == "texttext" && setting.origin.requests.count == 1)
    }
  }

  @Test("The status is read from the response, and each argument has its effect")
  func arguments() async throws {
    try await Setting.run { _, wire in
      try await wire.send(response(status: "302 Found", "Location: /b", "Cache-Control: max-age=60"))
      return .keep
    } _: { setting async throws in
      let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      for _ in 1...2 {
        try await Setting.with(withoutRedirects(setting.cache)) { http in
          for (account, isNew) in [("a", true), ("a", false), ("b", true)] {
            let response = try await get(setting.request("/"), http, account: account)
            _ = try await response.body.collect(upTo: 100)
            #expect(response.status == .found)
            #expect(isHit(response, logger) == !isNew)
          }
        }
        try await setting.cache.removeAll()
      }
      let key = [UInt8](repeating: 1, count: 32)
      for http in [withKey(setting.cache, key), encoded(setting.cache), withoutRetries(setting.cache)] {
        try await Setting.with(http) { http in
          await #expect(throws: HTTPClientError.redirectCycleDetected) {
            try await setting.send(setting.request("/"), by: http)
          }
        }
      }
    }
  }
}
