import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Larder
import LarderCoordination
import LarderHTTPCache
import LarderHummingbird
import LarderHummingbirdTesting
import LarderSQLite
import LarderService
import LarderStoreQueue
import LarderTesting
import NIOCore
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

/// The code of the pages of LarderHummingbird and LarderHummingbirdTesting.
@Suite("Guide of LarderHummingbird", .timeLimit(.minutes(5)))
final class HummingbirdGuideTests: Sendable {
  private struct Session: Codable, Sendable {
    var user: String
  }

  /// A context whose user a middleware of the application sets.
  private struct UserContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    var user: String? = "Ada"

    init(source: Source) {
      coreContext = .init(source: source)
    }
  }

  private struct Order: Codable, Sendable, Equatable {
    var number: Int
    var item: String
  }

  private let folder = FileManager.default.temporaryDirectory.appending(path: "larder-guide-\(UUID().uuidString)").path
  private let bytes = MemoryStore<[UInt8]>()

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit {
    // The folder of a test is of no use afterward.
    try? FileManager.default.removeItem(atPath: folder)
  }

  @Test(arguments: [
    "Modules/Applications/LarderHummingbird/LarderHummingbird.docc/LarderHummingbird.md",
    "Modules/Applications/LarderHummingbird/LarderHummingbird.docc/UsingHummingbird.md",
    "Modules/Applications/LarderHummingbird/LarderHummingbird.docc/LarderInVapor.md",
    "Modules/Testing/LarderHummingbirdTesting/LarderHummingbirdTesting.docc/LarderHummingbirdTesting.md",
    "Modules/Testing/LarderHummingbirdTesting/LarderHummingbirdTesting.docc/TestingPersistDrivers.md",
  ]) func `the page shows this code`(_ page: String) throws {
    let tests = URL(filePath: #filePath).deletingLastPathComponent()
    let code = try ["GuideTests.swift", "PersistDriverTests.swift", "VaporGuideTests.swift"]
      .map { unindented(try String(contentsOf: tests.appending(path: $0), encoding: .utf8)) }.joined()
    let text = try String(contentsOf: tests.appending(path: "../../../" + page), encoding: .utf8)
    let pieces = text.components(separatedBy: "```swift\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    #expect(!pieces.isEmpty)
    for piece in pieces { #expect(code.contains(unindented(piece)), "\(piece)") }
  }

  private func unindented(_ text: String) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.trimmingCharacters(in: .whitespaces) }
      .map { $0.hasPrefix("private struct") ? String($0.dropFirst("private ".count)) : $0 }.joined(separator: "\n")
  }

  @Test func sessions() async throws {
    let (id, session) = ("7", Session(user: "Ada"))
    // snippet.overview
    let persist = try StorePersistDriver(bytes, prefix: "persist/")

    try await persist.create(key: "session/\(id)", value: session, expires: .seconds(3600))
    if let found = try await persist.getWithTTL(key: "session/\(id)", as: Session.self) {
      print(found.object.user, found.ttl ?? .zero)
    }
    // snippet.end

    #expect(try await persist.get(key: "session/7", as: Session.self)?.user == "Ada")
  }

  @Test func middleware() async throws {
    let router = Router(context: UserContext.self)
    @Sendable func pay(_ request: Request) async throws -> String { "paid" }

    // snippet.rate-limits
    let limiter = try RateLimiter(bytes, prefix: "limits/", limit: RateLimit(100, per: .seconds(60), burst: 20))
    router.add(middleware: RateLimitMiddleware(limiter) { _, context in context.user ?? "anonymous" })
    // snippet.end

    // snippet.idempotency-keys
    let requests = try IdempotencyKeys(bytes, prefix: "responses/", codec: .json(StoredHTTPResponse.self))
    router.group("payments")
      .add(middleware: IdempotencyMiddleware(requests) { _, context in context.user })
      .post { request, _ in try await pay(request) }
    // snippet.end

    var headers = HTTPFields()
    headers[text: "Idempotency-Key"] = "k"
    try await Application(router: router).test(.router) { [headers] client in
      for _ in 1...2 {
        let response = try await client.execute(
          uri: "/payments", method: .post, headers: headers,
          body: ByteBuffer(string: "5"))
        #expect(String(buffer: response.body) == "paid")
        #expect(response.headers[text: "RateLimit-Policy"] == #""default";q=20;w=12"#)
        #expect(response.headers[text: "RateLimit"]?.contains(#""default";r=1"#) == true)
      }
    }
  }

  @Test func `cached responses`() async throws {
    let router = Router(context: UserContext.self)
    let calls = Locked(0)
    @Sendable func news() async throws -> String {
      let count = calls.withLock { calls in
        calls += 1
        return calls
      }
      return "news \(count)"
    }
    router.get { _, _ in "root" }

    // snippet.cached-responses
    router.get("news") { _, _ in
      Response(
        status: .ok, headers: [.cacheControl: "max-age=60, stale-while-revalidate=600"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: try await news())))
    }

    let cache = try await HTTPCache(bytes, configuration: .shared)
    let responder = try CachedResponder(router.buildResponder(), cache: cache)
    let application = Application(responder: responder, services: [responder])
    // snippet.end

    try await application.test(.live) { client in
      for _ in 1...2 {
        let response = try await client.execute(uri: "/news", method: .get)
        #expect(String(buffer: response.body) == "news 1")
      }
    }

    let limiter = try RateLimiter(bytes, prefix: "limits/", limit: RateLimit(6, per: .seconds(3600), burst: 6))
    // snippet.around-the-cache
    let outer = Router(context: UserContext.self)
    outer.add(middleware: RateLimitMiddleware(limiter) { _, context in context.user })
    for method in [HTTPRequest.Method.get, .head, .post] {
      outer.on("/", method: method, use: responder.respond)
      outer.on("**", method: method, use: responder.respond)
    }
    // snippet.end

    try await Application(router: outer).test(.router) { client in
      for _ in 1...2 {
        let response = try await client.execute(uri: "/news", method: .get)
        #expect(String(buffer: response.body) == "news 1")
        #expect(response.headers[text: "RateLimit"] != nil)
      }
      // snippet.changes
      try await cache.invalidate(prefix: "http://localhost/news")
      // snippet.end
      let response = try await client.execute(uri: "/news", method: .get)
      #expect(String(buffer: response.body) == "news 2")
      let others: [(String, HTTPRequest.Method, HTTPResponse.Status)] = [
        ("/", .get, .ok), ("/none", .post, .notFound), ("/news", .head, .ok), ("/news", .get, .tooManyRequests),
      ]
      for (uri, method, status) in others {
        let response = try await client.execute(uri: uri, method: method)
        #expect(response.status == status, "\(method) \(uri)")
      }
    }
  }

  @Test func `an order`() async throws {
    let orderKeys = try IdempotencyKeys(bytes, prefix: "requests/", codec: .json(Order.self))
    let numbers = bytes.typed(Int.self, prefix: "numbers/", codec: .json())
    let orders = bytes.typed(Order.self, prefix: "orders/", codec: .json())
    let outbox = try await bytes.queue(of: Order.self, prefix: "outbox/", codec: .json())
    let (bytes, item) = (bytes, "tea")
    for (key, body) in [("k1", [1]), ("k1", [1]), ("k2", [1])] as [(String, [UInt8])] {
      // snippet.effects-in-the-same-store
      let order = try await bytes.transaction { tx in
        .commit(
          try await tx.perform(StoreKey(key), fingerprint: body, with: orderKeys) {
            let number = try await tx.update("order", in: numbers) { number in
              number = (number ?? 0) + 1
              return number ?? 0
            }
            let order = Order(number: number, item: item)
            try await tx.setValue(order, forKey: StoreKey("\(number)"), in: orders)
            try await tx.enqueue(order, in: outbox)
            return order
          })
      }
      // snippet.end
      #expect(order.number == (key == "k1" ? 1 : 2))
    }
    #expect(try await orders.count(in: .all) == 2)
    #expect(try await outbox.count(in: .all) == 2)
  }

  /// Serves until the graceful shutdown, and then checks that the store was closed.
  private func run(_ path: String) async throws {
    let router = Router()

    // snippet.opening-and-closing
    let service = StoreService { try await SQLiteStore<[UInt8]>(path: path, codec: .raw) }
    let bytes = try await service.open()
    let persist = try StorePersistDriver(bytes, prefix: "persist/")

    let application = Application(router: router, services: [service, persist])
    try await application.runService()
    // snippet.end

    #expect(service.health().phase == .closed)
    let error = #expect(throws: StoreError.self) { try bytes.value(forKey: "k") }
    #expect(error?.code == .closed)
  }

  @Test func `a server closes its store`() async throws {
    let path = folder + "/server.sqlite"
    try await testGracefulShutdown { trigger in
      async let result: Void = run(path)
      while !FileManager.default.fileExists(atPath: path) { try await Task.sleep(for: .milliseconds(1)) }
      trigger.triggerGracefulShutdown()
      try await result
    }
  }
}
