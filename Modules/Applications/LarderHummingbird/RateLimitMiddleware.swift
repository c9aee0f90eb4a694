#if Hummingbird
import HTTPTypes
public import Hummingbird
import Larder
public import LarderCoordination

/// A middleware that refuses requests above a rate, across all servers that share a store.
///
/// ```swift
/// let limiter = try RateLimiter(bytes, prefix: "limits/", limit: RateLimit(100, per: .seconds(60), burst: 20))
/// router.add(middleware: RateLimitMiddleware(limiter) { _, context in context.identity?.id ?? "anonymous" })
/// ```
///
/// Name clients by what they cannot choose: a user that was authenticated, or else the address of the connection. A client that
/// could choose its name, by a header field that is not verified, would have no limit, and each name is an entry of the store.
/// Behind a proxy, the address is that of the proxy.
///
/// A refused request gets the status 429. Each response has the fields `RateLimit-Policy` and `RateLimit`, also the one of an
/// `HTTPResponseError` of a handler, and a refused one has `Retry-After`; see `RateLimiter.fields(of:policy:)`. Other errors
/// pass unchanged.
///
/// If the store fails, the error of the store is thrown, and the server answers with the status 500.
public struct RateLimitMiddleware<Context: RequestContext>: RouterMiddleware {
  /// The length of the longest name that is used as a key, in bytes.
  ///
  /// The key of a longer name is its digest.
  private static var maximumNameLength: Int { 64 }

  private let limiter: @Sendable () throws -> RateLimiter
  private let policy: String
  private let client: @Sendable (Request, Context) async throws -> String?

  /// Creates a middleware.
  ///
  /// - Parameters:
  ///   - limiter: The limits. The expression is evaluated for each request, so a program can replace the limiter to change the
  ///     limit. Keep a limiter with a share, which remembers starts.
  ///   - policy: The name of the policy in the fields. Defaults to `default`.
  ///   - client: A closure that returns the name of the client, such as its user or its address, or `nil` for a request without
  ///     a limit. Clients with the same name share a limit.
  public init(
    _ limiter: @autoclosure @escaping @Sendable () throws -> RateLimiter, policy: String = "default",
    client: @escaping @Sendable (Request, Context) async throws -> String?
  ) {
    self.limiter = limiter
    self.policy = policy
    self.client = client
  }

  /// Handles the request if the limit of the client allows it.
  ///
  /// - Throws: `HTTPError` with the status 429; the errors of the store, of `client`, of the expression for the
  ///   limiter, and of the next handler.
  @concurrent public func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard let name = try await client(request, context) else { return try await next(request, context) }
    let limiter = try limiter()
    let decision = try await limiter.take(forKey: key(of: name))
    var fields = HTTPFields()
    for (name, value) in limiter.fields(of: decision, policy: policy) {
      if let name = HTTPField.Name(name) { fields[name] = value }
    }
    guard decision.isGranted else {
      throw HTTPError(.tooManyRequests, headers: fields, message: "too many requests; see the field Retry-After")
    }
    do {
      var response = try await next(request, context)
      response.headers.append(contentsOf: fields)
      return response
    } catch let error as any HTTPResponseError {
      // Other errors mean something to the middleware around this one, and to the server.
      throw ErrorWithFields(error: error, fields: fields)
    }
  }

  private func key(of name: String) -> StoreKey {
    guard name.utf8.count > Self.maximumNameLength else { return StoreKey(name) }
    return StoreKey(bytes: Array(name.utf8).withUnsafeBytes { KeyDigest.digest(of: $0) })
  }
}

/// An error of a handler, whose response gets further fields.
struct ErrorWithFields: HTTPResponseError {
  let error: any HTTPResponseError
  let fields: HTTPFields

  var status: HTTPResponse.Status { error.status }

  func response(from request: Request, context: some RequestContext) throws -> Response {
    var response = try error.response(from: request, context: context)
    response.headers.append(contentsOf: fields)
    return response
  }
}

extension ErrorWithFields: CustomStringConvertible {
  /// The description of the error, for the log.
  var description: String { "\(error)" }
}
#endif
