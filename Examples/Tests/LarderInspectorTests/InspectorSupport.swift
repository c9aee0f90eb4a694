import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Larder
import LarderInspector
import Logging
import NIOCore

/// A browser on a page of the inspector.
struct Browser {
  let client: any TestClientProtocol
  var headers: HTTPFields = [.origin: "http://localhost"]

  func get(_ address: String, _ more: HTTPFields = [:]) async throws -> TestResponse {
    try await client.execute(uri: "/\(address)", method: .get, headers: headers + more)
  }

  func text(_ address: String) async throws -> String {
    String(buffer: try await get(address).body)
  }

  /// Sends a form.
  func post(_ fields: KeyValuePairs<String, String>, _ more: HTTPFields = [:]) async throws -> TestResponse {
    let body = fields.map { "\($0)=\(Self.escaped($1))" }.joined(separator: "&")
    return try await client.execute(
      uri: "/change", method: .post, headers: headers + more, body: ByteBuffer(string: body))
  }

  /// Sends a form, and then the form of the confirmation that it gets.
  func confirm(_ fields: KeyValuePairs<String, String>) async throws -> TestResponse {
    let page = String(buffer: try await post(fields).body)
    return try await submit(page)
  }

  /// Sends the last form of a page with its hidden fields.
  func submit(_ page: String) async throws -> TestResponse {
    guard let start = page.range(of: "action=\"change\"", options: .backwards) else { return try await get("?no-form") }
    let form = page[start.upperBound...]
    let body = form.matches(of: /<input type="hidden" name="(\w+)" value="([^"]*)">/).map { match in
      "\(match.1)=\(Self.escaped(Self.unescaped(String(match.2))))"
    }.joined(separator: "&")
    return try await client.execute(uri: "/change", method: .post, headers: headers, body: ByteBuffer(string: body))
  }

  static func escaped(_ text: String) -> String {
    text.utf8.map { "%" + Hexadecimal.text(of: CollectionOfOne($0)) }.joined()
  }

  private static func unescaped(_ text: String) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")].reduce(text) {
      $0.replacing($1.0, with: $1.1)
    }
  }
}

extension HTTPFields {
  static func + (left: HTTPFields, right: HTTPFields) -> HTTPFields {
    var fields = left
    for field in right { fields[field.name] = field.value }
    return fields
  }

  init(_ text: [String: String]) {
    self.init()
    for (name, value) in text { if let name = HTTPField.Name(name) { self[name] = value } }
  }
}

/// Takes the name of the server from a field of the test.
struct HostField<Context: RequestContext>: RouterMiddleware {
  @concurrent func handle(
    _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
  ) async throws
    -> Response
  {
    var head = request.head
    if let host = HTTPField.Name("X-Host").flatMap({ head.headerFields[$0] }) {
      head.authority = host == "none" ? nil : host
    }
    return try await next(Request(head: head, body: request.body), context)
  }
}

/// Runs a test with a browser on an inspector.
func withInspector(
  _ stores: [InspectedStore], allowsChanges: Bool = false, hosts: [String] = [], session: InspectorSession? = nil,
  logger: Logger? = nil, _ test: @Sendable @escaping (Browser) async throws -> Void
) async throws {
  let router = Router()
  router.add(middleware: HostField())
  Inspector(stores, allowsChanges: allowsChanges, hosts: hosts).addRoutes(to: router, session: session)
  try await Application(router: router, logger: logger).test(.router) { try await test(Browser(client: $0)) }
}
