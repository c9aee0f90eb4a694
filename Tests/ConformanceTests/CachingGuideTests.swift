#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderBounded
import LarderCBOR
import LarderCache
import LarderLMDB
import LarderTesting
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Decorators/LarderCache/LarderCache.docc/Caching.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct CachingGuideTests {
  struct User: Codable, Equatable {
    var name: String
  }

  struct Thumbnail: Equatable {
    var byteCount: Int
  }

  @Test func `a cache of thumbnails`() {
    let url = URL(filePath: "/thumbnail")
    let thumbnail = Thumbnail(byteCount: 1000)
    var shown: [Thumbnail] = []
    func show(_ thumbnail: Thumbnail) { shown.append(thumbnail) }

    // snippet.memorycache
    let thumbnails = MemoryCache<URL, Thumbnail>(
      costLimit: MemoryCache.recommendedCostLimit,
      timeToLive: .afterAccess(.seconds(600)),
      cost: { _, thumbnail in thumbnail.byteCount })

    thumbnails.setValue(thumbnail, forKey: url)
    if let thumbnail = thumbnails.value(forKey: url) { show(thumbnail) }
    // snippet.end

    #expect(shown == [thumbnail])
    #expect(thumbnails.totalCost == 1000)
  }

  @Test func `a store behind a cache`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let user = User(name: "Bob")

    // snippet.cachedstore
    let users = try await LMDBStore<User>(path: folder + "/users").cached(
      CachedStoreConfiguration(entryLimit: 50_000, negativeTimeToLive: .seconds(5)))

    let ada = try await users.value(forKey: "user:1")  // loaded from the base, then cached
    try await users.setValue(user, forKey: "user:2")  // written to the base, then cached
    // snippet.end

    #expect(ada == nil)
    #expect(try await users.value(forKey: "user:2") == user)
    #expect(users.statistics().loads == 1)
    #expect(try users.base.value(forKey: "user:2") == user)
    try await users.close()
    try location.remove()
  }

  struct Article: Codable, Equatable {
    var title: String
  }

  @Test func `copies on disk of a server`() async throws {
    let location = try ConformanceLocation()
    let folder = location.folder
    let server = MemoryStore<Article>()
    try server.apply([.set("swift-6", Article(title: "Swift 6"))])

    // snippet.tieredstore
    let disk = try await LMDBStore(path: folder + "/cache", codec: .raw, durability: .buffered)
      .bounded(bytes: 200_000_000)
    let articles = try server.cached(
      in: disk, codec: .cbor(Article.self),
      configuration: TieredStoreConfiguration(timeToLive: .seconds(86_400), refreshAfter: .seconds(60)))

    let article = try await articles.value(forKey: "swift-6")  // from the server, then copied to the disk
    let latest = try await articles.value(forKey: "swift-6", policy: .reload)  // from the server again
    // snippet.end

    #expect(article == Article(title: "Swift 6") && latest == article)
    #expect(try await articles.value(forKey: "swift-6", policy: .cacheOnly) == article)
    #expect(articles.statistics().loads == 2)
    try await articles.close()
    try location.remove()
  }

  /// A server with one page.
  private struct Server: Sendable {
    let requests = RequestCount()

    func download(_ path: String) async throws -> [UInt8]? {
      requests.count.withLock { $0 += 1 }
      return path == "index.html" ? Array("<html>".utf8) : nil
    }
  }

  private final class RequestCount: Sendable {
    let count = Locked(0)
  }

  @Test func `copies on disk of downloads`() async throws {
    let location = try ConformanceLocation()
    let server = Server()
    let disk = try await LMDBStore<[UInt8]>(path: location.path("cache"), codec: .raw, durability: .buffered)

    // snippet.in-front-of-a-download
    let downloads = LoadingStore<[UInt8]>(name: "downloads") { key in
      guard let path = key.string else { return nil }
      return try await server.download(path)  // nil if the server says that there is no such page
    }
    let pages = try downloads.cached(
      in: disk.prefixed(by: "pages/"), codec: .raw,
      configuration: TieredStoreConfiguration(
        timeToLive: .seconds(86_400), refreshAfter: .seconds(60), negativeTimeToLive: .seconds(300)))

    let page = try await pages.value(forKey: "index.html")  // downloaded, then copied to the disk
    // snippet.end

    #expect(page == Array("<html>".utf8))
    #expect(try await pages.value(forKey: "other.html") == nil)
    while try disk.count(in: .prefix("pages/")) < 2 { await Task.yield() }
    #expect(try await pages.values(forKeys: ["other.html", "index.html"]) == [nil, page])
    #expect(server.requests.count.withLock { $0 } == 2)
    try await pages.close()
    try location.remove()
  }

  @Test func `invalidation after external writes`() async throws {
    let base = MemoryStore<User>()
    try base.apply([.set("user:1", User(name: "Ada")), .set("user:2", User(name: "Bob"))])
    let clock = ManualClock()
    var configuration = CachedStoreConfiguration<User>()
    configuration.timeToLive = .afterWrite(.seconds(30))
    let users = base.cached(configuration, clock: clock)
    #expect(try await users.values(forKeys: ["user:1", "user:2"]).map(\.?.name) == ["Ada", "Bob"])

    try base.apply([.set("user:1", User(name: "Ada Lovelace"))])
    #expect(try await users.value(forKey: "user:1")?.name == "Ada")
    #expect(try await users.value(forKey: "user:1", policy: .reload)?.name == "Ada Lovelace")
    try users.invalidate("user:1")
    #expect(try await users.value(forKey: "user:1", policy: .cacheOnly) == nil)
    try base.apply([.set("user:2", User(name: "Bob Dylan"))])
    clock.advance(by: .seconds(30))
    #expect(try await users.value(forKey: "user:2")?.name == "Bob Dylan")
    try users.invalidateAll()
    #expect(try await users.value(forKey: "user:2", policy: .cacheOnly) == nil)
    try await users.close()
  }
}
#endif
