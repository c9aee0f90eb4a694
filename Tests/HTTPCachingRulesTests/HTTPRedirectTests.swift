#if HTTPCache
import HTTPCachingRules
import HTTPTypes
import Testing

/// RFC 9110, section 15.4.
struct HTTPRedirectTests {
  private func redirect(
    _ method: HTTPRequest.Method = .get, _ url: String = "http://a.example/x/y?q", _ fields: HTTPFields = [:],
    status: Int = 302, to location: String?
  ) throws -> HTTPRedirect? {
    let url = try RequestURL(url)
    let request = HTTPRequest(
      method: method, scheme: url.scheme, authority: url.authority, path: url.target, headerFields: fields)
    var response = HTTPResponse(status: .init(code: status))
    if let location { response.headerFields[.location] = location }
    return HTTPRedirect(from: request, by: response)
  }

  @Test(
    "The target is resolved",
    arguments: [
      ("/b", "http://a.example/b", nil), ("b", "http://a.example/x/b", nil), ("?r", "http://a.example/x/y?r", nil),
      ("../b/./c", "http://a.example/b/c", nil), ("//B.example:80", "http://b.example/", nil),
      ("HTTPS://B.example:443/#", "https://b.example/", ""), ("/b#c#d", "http://a.example/b", "c#d"),
      ("#c", "http://a.example/x/y?q", "c"), ("", "http://a.example/x/y?q", nil),
      ("/ä b|c?d=\"e\"&f=%zz", "http://a.example/%C3%A4%20b%7Cc?d=%22e%22&f=%zz", nil),
    ] as [(String, String, String?)])
  func target(location: String, url: String, fragment: String?) throws {
    let redirect = try #require(try redirect(to: location))
    #expect(redirect.url.text == url && redirect.fragment == fragment)
    #expect(try RequestURL(of: redirect.request) == redirect.url)
  }

  @Test(
    "Other responses and URLs are not followed",
    arguments: [
      (200, "/b"), (201, "/b"), (300, "/b"), (304, "/b"), (305, "/b"), (306, "/b"), (400, "/b"), (302, nil),
      (302, "ftp://a.example/"), (302, "javascript:alert(1)"), (302, "file:///etc/passwd"),
      (302, "http://u:p@a.example/"),
      (302, "http://"), (302, "http://a b/"), (302, "data:,x"),
    ] as [(Int, String?)])
  func final(status: Int, location: String?) throws {
    #expect(try redirect(status: status, to: location) == nil)
  }

  @Test(
    "GET replaces some methods, and the fields about the body are removed then",
    arguments: [
      (301, .get, .get), (301, .head, .head), (301, .post, .get), (301, .put, .put), (302, .post, .get),
      (302, .delete, .delete), (303, .get, .get), (303, .head, .head), (303, .post, .get), (303, .put, .get),
      (307, .post, .post), (308, .post, .post),
    ] as [(Int, HTTPRequest.Method, HTTPRequest.Method)])
  func methods(status: Int, method: HTTPRequest.Method, next: HTTPRequest.Method) throws {
    let fields: HTTPFields = [
      .contentType: "text/plain", .contentLength: "1", .contentEncoding: "gzip", .transferEncoding: "chunked",
      .accept: "a/b", .authorization: "secret",
    ]
    let redirect = try #require(try redirect(method, "http://a.example/x", fields, status: status, to: "/b"))
    #expect(redirect.request.method == next)
    // A 303 is about another resource, whatever the method was.
    #expect(redirect.keepsBody == (method == next && (status != 303 || method == .head)))
    let kept: HTTPFields = redirect.keepsBody ? fields : [.accept: "a/b", .authorization: "secret"]
    #expect(redirect.request.headerFields == kept)
  }

  @Test(
    "Credentials are for one origin, whose host has no case",
    arguments: [
      ("/b", true), ("http://A.EXAMPLE:80/b", true), ("http://a.example:/b", true), ("http://a.example:81/b", false),
      ("https://a.example/b", false), ("http://b.a.example/b", false), ("http://a.example./b", false),
      ("https://a.example:80/b", false),
    ])
  func origins(location: String, isSame: Bool) throws {
    var fields = HTTPFields()
    for name in HTTPRedirect.originFields { fields[name] = "secret" }
    #expect(fields.count == 5)
    fields[.accept] = "a/b"
    let redirect = try #require(try redirect(.get, "http://a.example/x", fields, to: location))
    #expect(redirect.request.headerFields == (isSame ? fields : [.accept: "a/b"]))
  }
}
#endif
