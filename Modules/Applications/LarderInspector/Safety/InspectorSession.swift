#if Inspector
import HTTPTypes
import Hummingbird
import Larder
import Logging
import NIOCore

/// The sessions of the browsers that may use an inspector.
///
/// A secret address opens one session, once. Without the cookie of a session, a request reads nothing. Use it where the
/// inspector has no authentication of yours in front of it, as in a tool on your own machine:
///
/// ```swift
/// let session = InspectorSession()
/// inspector.addRoutes(to: router, session: session)
/// print("http://127.0.0.1:8080/?token=\(session.token)")
/// ```
///
/// With a password, other browsers can log in too. Other machines must reach the inspector only through TLS, because their
/// users send the password.
public final class InspectorSession: Sendable {
  /// The number of characters of the shortest password.
  private static let shortestPassword = 12

  /// The largest form with a password, in bytes.
  private static let largestForm = 4096

  /// The token that opens a session once, as the parameter `token` of any address of the inspector.
  public let token: String

  private let hasPassword: Bool
  private let cookieName: String
  private let cookieFields: String
  private let state: Locked<SessionState>
  private let now: @Sendable () -> Duration

  /// Creates a session whose token is random, for one browser.
  public convenience init() {
    self.init(checked: nil, isSecure: false)
  }

  /// Creates sessions whose token is random, and for which other browsers log in with a password.
  ///
  /// Passwords are compared in a time that does not depend on them, and at most one in a second. At most 16 browsers are logged
  /// in; with another one, the session of the first ends. Sessions end with the program.
  ///
  /// ```swift
  /// let session = try InspectorSession(password: password)
  /// inspector.addRoutes(to: router, session: session)
  /// ```
  ///
  /// - Parameters:
  ///   - password: The password, of at least 12 characters.
  ///   - isSecure: A Boolean value that indicates whether browsers send the cookie only through TLS. Defaults to `true`.
  /// - Throws: `StoreError` with `invalidArgument` if the password is too short.
  public convenience init(password: String, isSecure: Bool = true) throws {
    guard password.count >= Self.shortestPassword else {
      throw StoreError(
        .invalidArgument, during: .open, store: "InspectorSession",
        message: "the password must have at least \(Self.shortestPassword) characters, not \(password.count)")
    }
    self.init(checked: password, isSecure: isSecure)
  }

  /// Creates sessions with a clock, for tests.
  init(checked password: String?, isSecure: Bool, now: (@Sendable () -> Duration)? = nil) {
    var generator = SystemRandomNumberGenerator()
    token = SessionState.secret(using: &generator)
    // Cookies of a host are sent to all its ports, so each inspector has a cookie of its own.
    cookieName = "larder-inspector-" + String(SessionState.secret(using: &generator).prefix(16))
    cookieFields = "Path=/; HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
    hasPassword = password != nil
    state = Locked(SessionState(token: token, password: password))
    let start = ContinuousClock.now
    self.now = now ?? { start.duration(to: .now) }
  }

  /// Returns the response that opens a session or refuses a request, or `nil` if the request belongs to a session.
  func response(to request: Request, logger: Logger) async throws -> Response? {
    if let cookie = request.cookies[cookieName], state.withLock({ $0.admits(cookie.value) }) { return nil }
    let page = request.uri.path.split(separator: "/").last
    // The page of the password loads them, and they contain nothing of a store.
    if hasPassword, request.method == .get, page == "style.css" || page == "script.js" { return nil }
    if hasPassword, request.method == .post, page == "login" { return try await logIn(request, logger: logger) }
    guard let presented = FormFields(request.uri.query)["token"] else {
      return hasPassword
        ? Self.logInPage(status: .unauthorized)
        : Response(
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
    return opened(secret)
  }

  private func logIn(_ request: Request, logger: Logger) async throws -> Response {
    let fields = FormFields(String(buffer: try await request.body.collect(upTo: Self.largestForm)))
    var generator = SystemRandomNumberGenerator()
    let secret = SessionState.secret(using: &generator)
    let now = now()
    switch state.withLock({ $0.logIn(fields["password"] ?? "", at: now, for: secret) }) {
    case .admitted:
      logger.notice("inspector: logged in")
      return opened(secret)
    case .refused:
      logger.notice("inspector: wrong password")
      return Self.logInPage("The password is wrong.", status: .unauthorized)
    case .tooSoon:
      var response = Self.logInPage("Wait a second, and try again.", status: .tooManyRequests)
      response.headers[.retryAfter] = "\(SessionState.pause.components.seconds)"
      return response
    }
  }

  private func opened(_ secret: String) -> Response {
    Response(status: .seeOther, headers: [.location: "./", .setCookie: "\(cookieName)=\(secret); \(cookieFields)"])
  }

  private static func logInPage(_ problem: String? = nil, status: HTTPResponse.Status) -> Response {
    let problem: HTML? = problem.map { "<p class=\"problem\" role=\"alert\">\($0)</p>" }
    let page = Page(
      title: "Log in",
      content: """
        <h1>Log in</h1>\(problem)
        <form class="editor" action="login" method="post">
        <label>Password <input name="password" type="password" required autocomplete="current-password"></label>
        <div class="actions"><button class="primary">Log in</button></div></form>
        """, status: status)
    return page.response(isReadOnly: true)
  }
}

/// A middleware that admits only the requests of a session.
struct SessionMiddleware<Context: RequestContext>: RouterMiddleware {
  let session: InspectorSession

  @concurrent func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    if let response = try await session.response(to: request, logger: context.logger) { return response }
    return try await next(request, context)
  }
}
#endif
