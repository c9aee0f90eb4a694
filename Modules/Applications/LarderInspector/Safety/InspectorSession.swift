#if Inspector
import HTTPTypes
import Hummingbird
import Larder

/// A session of one browser, which a secret address opens once.
///
/// Without the cookie of the session, a request reads nothing. Use it where the inspector has no authentication of yours in
/// front of it, as in a tool on your own machine:
///
/// ```swift
/// let session = InspectorSession()
/// inspector.addRoutes(to: router, session: session)
/// print("http://127.0.0.1:8080/?token=\(session.token)")
/// ```
public final class InspectorSession: Sendable {
  /// The token that opens the session once, as the parameter `token` of any address of the inspector.
  public let token: String

  private let cookieName: String
  private let state: Locked<SessionState>

  /// Creates a session whose token is random.
  public init() {
    var generator = SystemRandomNumberGenerator()
    token = SessionState.secret(using: &generator)
    // Cookies of a host are sent to all its ports, so each inspector has a cookie of its own.
    cookieName = "larder-inspector-" + String(SessionState.secret(using: &generator).prefix(16))
    state = Locked(SessionState(token: token))
  }

  /// Returns the response that opens the session or refuses a request, or `nil` if the request belongs to the session.
  func response(to request: Request) -> Response? {
    if let cookie = request.cookies[cookieName], state.withLock({ $0.admits(cookie.value) }) { return nil }
    guard let presented = FormFields(request.uri.query)["token"] else {
      return Response(
        plain: "Open the address that the inspector printed when it started. It works once.", status: .unauthorized)
    }
    var generator = SystemRandomNumberGenerator()
    let secret = SessionState.secret(using: &generator)
    guard request.method == .get, state.withLock({ $0.redeem(presented, for: secret) }) else {
      return Response(
        plain: "This address was used before, or is wrong. Start the inspector again for a new one.",
        status: .unauthorized)
    }
    // The address of the next page has no token.
    return Response(
      status: .seeOther,
      headers: [.location: "./", .setCookie: "\(cookieName)=\(secret); Path=/; HttpOnly; SameSite=Strict"])
  }
}

/// A middleware that admits only the requests of a session.
struct SessionMiddleware<Context: RequestContext>: RouterMiddleware {
  let session: InspectorSession

  @concurrent func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    if let response = session.response(to: request) { return response }
    return try await next(request, context)
  }
}
#endif
