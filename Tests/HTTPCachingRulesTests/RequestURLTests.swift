#if HTTPCache
import HTTPTypes
import Testing

@testable import HTTPCachingRules

struct RequestURLTests {
  @Test(
    "The scheme, the host and the default port are normalized, and nothing else",
    arguments: [
      ("HTTP://Example.COM:80/a", "http://example.com/a"), ("https://example.com:443", "https://example.com/"),
      ("https://example.com:80/", "https://example.com:80/"), ("http://example.com:/a", "http://example.com/a"),
      ("http://example.com?b=1&a=2", "http://example.com/?b=1&a=2"), ("http://example.com/a#b", "http://example.com/a"),
      ("http://example.com/A/%2f/%2F//./../b", "http://example.com/A/%2f/%2F//./../b"),
      ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080/"), ("http://[::1]/", "http://[::1]/"),
      ("http://example.com/a?b=http://c/#d", "http://example.com/a?b=http://c/"),
    ])
  func normalized(text: String, expected: String) throws {
    #expect(try RequestURL(text).text == expected)
  }

  @Test(
    "Other texts are refused",
    arguments: [
      ("http://user@example.com/", RequestURL.Problem.userInformation),
      ("http://user:password@example.com/", .userInformation), ("example.com/a", .incomplete),
      ("http:///a", .incomplete),
      ("http://example.com:x/", .invalid), ("http://exa mple.com/", .invalid), ("http://example.com/a b", .invalid),
      ("http://[::1/", .invalid), ("http://[::1]x/", .invalid), ("h ttp://example.com/", .invalid),
      ("http://a\\b/", .invalid), ("http://example.com/ä", .invalid), ("http://exämple.com/", .invalid),
    ])
  func refused(text: String, problem: RequestURL.Problem) {
    #expect(throws: problem) { try RequestURL(text) }
  }

  @Test("The URL of a request")
  func request() throws {
    let request = HTTPRequest(method: .get, scheme: "https", authority: "Example.com:443", path: "/a?b")
    #expect(try RequestURL(of: request).text == "https://example.com/a?b")
    let star = HTTPRequest(method: .options, scheme: "https", authority: "example.com", path: "*")
    #expect(try RequestURL(of: star).text == "https://example.com*")
    let relative = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "a")
    #expect(throws: RequestURL.Problem.invalid) { try RequestURL(of: relative) }
    let fragment = HTTPRequest(method: .get, scheme: "https", authority: "example.com", path: "/a#b")
    #expect(throws: RequestURL.Problem.invalid) { try RequestURL(of: fragment) }
    let incomplete = HTTPRequest(method: .get, scheme: nil, authority: "example.com", path: "/")
    #expect(throws: RequestURL.Problem.incomplete) { try RequestURL(of: incomplete) }
  }

  @Test(
    "References, as in RFC 3986, section 5.4",
    arguments: [
      ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
      ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("", "http://a/b/c/d;p?q"),
      (".", "http://a/b/c/"), ("..", "http://a/b/"), ("../g", "http://a/b/g"), ("../../../g", "http://a/g"),
      ("/./g", "http://a/g"), ("g.", "http://a/b/c/g."), ("./g/.", "http://a/b/c/g/"), ("g/../h", "http://a/b/c/h"),
      ("g#s", "http://a/b/c/g"), ("https://b/c/../d", "https://b/d"), ("g?y/../x", "http://a/b/c/g?y/../x"),
    ])
  func references(text: String, expected: String) throws {
    #expect(try RequestURL("http://a/b/c/d;p?q").resolving(Array(text.utf8))?.text == expected)
  }

  @Test("A reference that isn't a usable URL is ignored", arguments: ["mailto:a@b", "http://user@a/", "/a b"])
  func unusable(text: String) throws {
    #expect(try RequestURL("http://a/").resolving(Array(text.utf8)) == nil)
  }
}
#endif
