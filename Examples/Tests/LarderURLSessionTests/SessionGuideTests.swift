import Foundation
import HTTPTestSupport
import Larder
import LarderHTTPCache
import LarderSQLite
import LarderURLSession
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The code of the pages of LarderURLSession.
@Suite("Guide of LarderURLSession", .timeLimit(.minutes(5)))
final class SessionGuideTests: Sendable {
  private let received = Locked("")

  private func consume(_ bytes: [UInt8]) {
    received.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
  }

  private func get(_ url: URL, in folder: String) async throws -> (Data, Int) {
    var hitCount = 0
    // snippet.overview-3
    let store = try await SQLiteStore(path: folder + "/http.db", codec: .raw)
    let cache = try await HTTPCache(store, configuration: .private)
    let session = CachedURLSession(cache: cache)
    let (data, response) = try await session.data(from: url)
    // snippet.end
    // snippet.overview-2
    if response.cacheStatus?.isHit == true { hitCount += 1 }
    // snippet.end
    // The last bytes of a body may arrive before the store has them.
    while cache.statistics().storedCount + cache.statistics().hitCount == 0 {
      try await Task.sleep(for: .milliseconds(1))
    }
    try await store.close()
    return (data, hitCount)
  }

  private func stream(_ request: URLRequest, _ session: CachedURLSession) async throws -> HTTPURLResponse {
    // snippet.overview
    let (body, response) = try await session.chunks(for: request)
    for try await bytes in body { consume(bytes) }
    // snippet.end
    return response
  }

  private func patient(_ cache: HTTPCache) -> CachedURLSession {
    // snippet.differences-from-a-plain-session
    let session = CachedURLSession(configuration: .ephemeral, cache: cache, unreadLimit: 64 << 20)
    // snippet.end
    return session
  }

  @Test("A response outlives the program in a file, and is read in chunks")
  func file() async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await SessionSetting.run { _, wire in
      try await wire.send(response("Cache-Control: max-age=60"))
      return .keep
    } _: { setting async throws in
      let request = try setting.request("/")
      let url = try #require(request.url)
      for hitCount in [0, 1] {
        let (data, hits) = try await get(url, in: folder.path)
        #expect(data == Data("text".utf8) && hits == hitCount)
      }
      #expect(setting.origin.requests.count == 1)
      #expect(try await stream(request, patient(setting.cache)).statusCode == 200)
      #expect(received.withLock { $0 } == "text")
    }
  }
}
