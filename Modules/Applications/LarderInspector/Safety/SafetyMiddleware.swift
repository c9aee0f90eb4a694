#if Inspector
import HTTPTypes
import Hummingbird

/// A middleware that refuses requests by the rules, and restricts what a browser does with each response.
struct SafetyMiddleware<Context: RequestContext>: RouterMiddleware {
  let rules: RequestRules

  @concurrent func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws -> Response {
    let head = RequestRules.Head(
      method: request.method.rawValue, host: request.head.authority, origin: request.headers[.origin],
      site: request.headers[text: "Sec-Fetch-Site"], mode: request.headers[text: "Sec-Fetch-Mode"],
      destination: request.headers[text: "Sec-Fetch-Dest"])
    var response: Response
    if let refusal = rules.refusal(of: head) {
      response = Response(plain: refusal.message, status: refusal.status)
    } else {
      response = try await next(request, context)
    }
    for (name, value) in Self.fields where response.headers[text: name] == nil { response.headers[text: name] = value }
    return response
  }

  /// The fields of each response.
  ///
  /// A page loads only the stylesheet, the script and the images of the inspector, and no other page can embed it.
  private static var fields: [(String, String)] {
    [
      (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
          + "frame-ancestors 'none'; base-uri 'none'"
      ),
      ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "same-origin"),
      ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
      ("Cache-Control", "no-store"),
    ]
  }
}

extension RequestRules.Refusal {
  fileprivate var status: HTTPResponse.Status {
    switch self {
    case .method: .methodNotAllowed
    case .host: .misdirectedRequest
    case .origin: .forbidden
    }
  }

  fileprivate var message: String {
    switch self {
    case .method: "The inspector knows only the methods GET, HEAD and POST."
    case .host: "The inspector does not answer under this name. Use a loopback name, or list this name in `hosts`."
    case .origin: "This request comes from another page. Open the inspector and make the change there."
    }
  }
}

extension HTTPFields {
  /// The value of a field that has no constant.
  subscript(text name: String) -> String? {
    get { HTTPField.Name(name).flatMap { self[$0] } }
    set { if let name = HTTPField.Name(name) { self[name] = newValue } }
  }
}

extension Response {
  /// Creates a response of one line of text.
  init(plain text: String, status: HTTPResponse.Status) {
    self.init(
      status: status, headers: [.contentType: "text/plain; charset=utf-8"],
      body: .init(byteBuffer: .init(string: text + "\n")))
  }
}
#endif
