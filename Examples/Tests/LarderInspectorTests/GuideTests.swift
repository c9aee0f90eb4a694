import Foundation
import Hummingbird
import HummingbirdTesting
import Larder
import LarderCache
import LarderHTTPCache
import LarderInspector
import LarderMetrics
import LarderStoreQueue
import Testing

/// The code of the pages of LarderInspector.
@Suite("Guide of LarderInspector", .timeLimit(.minutes(5)))
struct InspectorGuideTests {
  private struct User: Codable, Sendable {
    var name: String
  }

  /// Refuses all users but one.
  private struct Administrators<Context: RequestContext>: RouterMiddleware {
    @concurrent func handle(
      _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws
      -> Response
    {
      guard request.headers[.authorization] == "Ada" else { throw HTTPError(.unauthorized) }
      return try await next(request, context)
    }
  }

  private let users = MemoryStore<User>()
  private let files = MemoryStore<[UInt8]>()

  @Test func `one store`() async throws {
    let (router, administrators) = (Router(), Administrators<BasicRequestContext>())
    let inspector = Inspector([InspectedStore("users", users, codec: .json())], hosts: ["admin.example.com"])
    inspector.addRoutes(to: router.group("admin/stores").add(middleware: administrators))
    try await check(router, contains: ["users"])
  }

  @Test func `several stores`() async throws {
    let (router, administrators) = (Router(), Administrators<BasicRequestContext>())
    let jobs = try await MemoryStore<[UInt8]>().queue(of: String.self, prefix: "jobs/", codec: .json())
    // snippet.in-a-server-of-your-own
    let inspector = Inspector(
      [
        InspectedStore("users", users, codec: .json()),
        InspectedStore("files", files),
        InspectedStore("jobs", jobs, codec: .json()),
      ],
      allowsChanges: true, hosts: ["admin.example.com"])
    inspector.addRoutes(to: router.group("admin/stores").add(middleware: administrators))
    // snippet.end
    try await check(router, contains: ["users", "files", "jobs", "queue?store=2"])
  }

  @Test func `caches and measurements`() async throws {
    let responses = MemoryStore<[UInt8]>()
    let httpCache = try await HTTPCache(responses, configuration: .shared)
    let cached = users.cached()
    let users = cached.metered()
    // snippet.caches-and-measurements
    let inspector = Inspector([
      try InspectedStore("responses", responses, httpCache: httpCache),
      InspectedStore("users", users, codec: .json()).reporting(
        operations: { try users.report().json() },
        hits: { (cached.statistics().hits, cached.statistics().misses) }),
    ])
    // snippet.end
    let (router, administrators) = (Router(), Administrators<BasicRequestContext>())
    inspector.addRoutes(to: router.group("admin/stores").add(middleware: administrators))
    try await check(router, contains: ["http?store=0", "measurements?store=1"])
  }

  private func check(_ router: Router<BasicRequestContext>, contains texts: [String]) async throws {
    try await Application(router: router).test(.router) { client in
      for page in ["", "keys?store=0", "counts?store=0", "style.css"] {
        #expect(try await client.execute(uri: "/admin/stores/\(page)", method: .get).status == .unauthorized)
      }
      let page = try await client.execute(uri: "/admin/stores/", method: .get, headers: [.authorization: "Ada"])
      #expect(page.status == .ok)
      for text in texts { #expect(String(buffer: page.body).contains(text)) }
    }
  }
}
