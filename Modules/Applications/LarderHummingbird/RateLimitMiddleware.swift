#if Hummingbird
import HTTPTypes
public import Hummingbird
import Larder
public import LarderCoordination

/// A middleware that refuses requests above a rate, across all servers that share a store.
///
/// ```swift
/// let limiter = try RateLimiter(bytes, prefix: "limits/", limit: RateLimit(100, per: .seconds(60), burst: 20))
/// router.add(middleware: RateLimitMiddleware(limiter) { request, _ in request.headers[.authorization] })
/// ```
///
/// A refused request gets the status 429. Each response has the fields `RateLimit-Policy` and `RateLimit`, also if it is an
/// error of a handler, and a refused one has `Retry-After`; see `RateLimiter.fields(of:policy:)`.
///
/// If the store fails, the error of the store is thrown, and the server answers with the status 500.
public struct RateLimitMiddleware<Context: RequestContext>: RouterMiddleware {
  /// The number of bytes of a name from which on the key is its digest, because clients choose some names.
  private static var maximumNameLength: Int { 64 }

  private let limiter: RateLimiter
  private let policy: String
  private let client: @Sendable (Request, Context) async throws -> String?

  /// Creates a middleware.
  ///
  /// - Parameters:
  ///   - limiter: The limits.
  ///   - policy: The name of the policy in the fields. Defaults to `default`.
  ///   - client: A closure that returns the name of the client, such as its user or its address, or `nil` for a request without
  ///     a limit. Clients with the same name share a limit.
  public init(
    _ limiter: RateLimiter, policy: String = "default",
    client: @escaping @Sendable (Request, Context) async throws -> String?
  ) {
    self.limiter = limiter
    self.policy = policy
    self.client = client
  }

  /// Takes a start of the client's limit, and handles the request if there is one.
  ///
  /// - Throws: `HTTPError` with the status 429; the errors of the store, of `client` and of the next handler.
  @concurrent public func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard let name = try await client(request, context) else { return try await next(request, context) }
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
    } catch {
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
  let error: any Error
  let fields: HTTPFields

  var status: HTTPResponse.Status { (error as? any HTTPResponseError)?.status ?? .internalServerError }

  func response(from request: Request, context: some RequestContext) throws -> Response {
    var response = Response(status: status)
    if let error = error as? any HTTPResponseError {
      response = try error.response(from: request, context: context)
    }
    response.headers.append(contentsOf: fields)
    return response
  }
}

extension ErrorWithFields: CustomStringConvertible {
  /// The description of the error, for the log.
  var description: String { "\(error)" }
}
#endif
