import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import Larder
import LarderCoordination
import LarderHTTPClient
import LarderHummingbird
import LarderMetrics
import LarderService
import LarderWorker
import NIOCore
import NIOHTTP1

/// The context of a request, with the user of its session and the address of its client.
struct ShopContext: RemoteAddressRequestContext {
  var coreContext: CoreRequestContextStorage
  var user: String?
  let remoteAddress: SocketAddress?

  /// The most bytes of a body, which is a login or an order.
  var maxUploadSize: Int { 4096 }

  init(source: Source) {
    coreContext = .init(source: source)
    remoteAddress = source.channel.remoteAddress
  }

  /// Returns the user.
  ///
  /// - Throws: `HTTPError` with the status 401 if there is no session.
  func requiredUser() throws -> String {
    guard let user else { throw HTTPError(.unauthorized, message: "log in first, with POST /login") }
    return user
  }
}

/// The address of the products' server, which is the shop itself if there is no other one.
final class ServerAddress: Sendable {
  private let address: Locked<String?>

  init(_ address: String?) {
    self.address = Locked(address)
  }

  /// Notes the address of the shop itself.
  func serve(at address: String) {
    self.address.withLock { $0 = $0 ?? address }
  }

  var url: String? { address.withLock { $0 } }
}

/// The routes of the shop.
struct ShopRoutes: Sendable {
  let shop: Shop
  let upstream: ServerAddress
  let health: @Sendable () -> StoreHealth
  let worker: QueueWorker

  func makeRouter() -> Router<ShopContext> {
    let router = Router(context: ShopContext.self)
    for path in ["health", "health/ready"] { router.get("\(path)") { _, _ in state(health().isReady) } }
    router.get("health/live") { _, _ in state(health().isLive && !worker.health().isStalled) }
    router.get("metrics") { _, _ in prometheusText(of: shop.bytes.report(), worker: worker.statistics()) }
    addUpstream(to: router)
    router.get("products/:id") { _, context in try await product(context) }
    let all = router.group().add(middleware: RetryableErrors())
    // Behind a proxy, the address is that of the proxy, so that all its clients share the limit.
    let logins = RateLimitMiddleware<ShopContext>(try shop.limits.logins(), policy: "logins") {
      $1.remoteAddress?.ipAddress ?? "unknown"
    }
    all.group("login").add(middleware: logins)
      .post { request, context in try await logIn(request, context) }

    let users = all.group().add(middleware: SessionMiddleware(shop: shop))
    users.get("me") { _, context in Session(user: try context.requiredUser()) }
    users.get("orders") { _, context in try await shop.orders(of: context.requiredUser()) }
    // A second one inside of the limiter, which adds its fields to responses only.
    users.group("orders")
      .add(middleware: RateLimitMiddleware(try shop.limits.orders(), policy: "orders") { $1.user })
      .add(middleware: RetryableErrors())
      .post { request, context in try await order(request, context) }
    return router
  }

  private func state(_ isGood: Bool) -> Response {
    Response(
      status: isGood ? .ok : .serviceUnavailable,
      body: ResponseBody(byteBuffer: ByteBuffer(string: isGood ? "ok\n" : "not ready\n")))
  }

  // MARK: Users

  private func logIn(_ request: Request, _ context: ShopContext) async throws -> Response {
    let session = try await request.decode(as: Session.self, context: context)
    guard (1...100).contains(session.user.utf8.count) else {
      throw HTTPError(.badRequest, message: "the name of a user must have 1 to 100 bytes")
    }
    var response = Response(status: .noContent)
    response.setCookie(Cookie(name: "session", value: try await shop.logIn(session.user), path: "/", httpOnly: true))
    return response
  }

  private func order(_ request: Request, _ context: ShopContext) async throws -> Order {
    let user = try context.requiredUser()
    guard let key = HTTPField.Name("Idempotency-Key").flatMap({ request.headers[$0] }),
      (1...100).contains(key.utf8.count)
    else { throw HTTPError(.badRequest, message: "an order needs an Idempotency-Key of 1 to 100 bytes") }
    let order = try await request.decode(as: OrderRequest.self, context: context)
    guard (1...200).contains(order.item.utf8.count) else {
      throw HTTPError(.badRequest, message: "an item must have 1 to 200 bytes")
    }
    do {
      return try await shop.order(order, user: user, key: key)
    } catch StoreError.Code.otherRequest {
      throw HTTPError(.unprocessableContent, message: "the Idempotency-Key belongs to another order")
    }
  }

  // MARK: Products

  /// Returns a product from the upstream server, or from the cache.
  private func product(_ context: ShopContext) async throws -> Response {
    let id = try context.parameters.require("id", as: Int.self)
    guard let upstream = upstream.url else { throw HTTPError(.serviceUnavailable) }
    let response = try await shop.http.execute(
      HTTPClientRequest(url: "\(upstream)/products/\(id)"), timeout: .seconds(10))
    var fields: HTTPFields = [.contentType: "application/json"]
    if let name = HTTPField.Name("Cache-Status") { fields[name] = response.headers.first(name: "Cache-Status") }
    return Response(
      status: .init(code: Int(response.status.code)), headers: fields,
      body: ResponseBody(byteBuffer: try await response.body.collect(upTo: 1 << 20)))
  }

  /// Adds a stand-in of the upstream server.
  private func addUpstream(to router: Router<ShopContext>) {
    router.get("upstream/products/:id") { _, context in
      let id = try context.parameters.require("id", as: Int.self)
      return Response(
        status: .ok, headers: [.contentType: "application/json", .cacheControl: "max-age=60"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: #"{"id":\#(id),"name":"Tea \#(id)"}"#)))
    }
  }
}

/// A middleware that finds the user of the session in the cookie.
struct SessionMiddleware: RouterMiddleware {
  let shop: Shop

  @concurrent func handle(
    _ request: Request, context: ShopContext, next: @concurrent (Request, ShopContext) async throws -> Response
  ) async throws -> Response {
    var context = context
    // A client chooses its cookies, and a key that is too long would be an error.
    if let id = request.cookies["session"]?.value, (1...100).contains(id.utf8.count) {
      context.user = try await shop.persist.get(key: "session/\(id)", as: Session.self)?.user
    }
    return try await next(request, context)
  }
}

/// A middleware that asks clients to repeat a request after an error that a retry can mend.
struct RetryableErrors: RouterMiddleware {
  @concurrent func handle(
    _ request: Request, context: ShopContext, next: @concurrent (Request, ShopContext) async throws -> Response
  ) async throws -> Response {
    do {
      return try await next(request, context)
    } catch let error as StoreError where error.isRetryable {
      throw HTTPError(.serviceUnavailable, headers: [.retryAfter: "1"], message: error.message)
    }
  }
}
