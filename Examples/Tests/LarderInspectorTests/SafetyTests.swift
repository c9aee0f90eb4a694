import Larder
import LarderTesting
import Testing

@testable import LarderInspector

@Suite("Rules of requests")
struct RequestRulesTests {
  private let rules = RequestRules(hosts: ["admin.example.com"])

  private func refusal(
    _ method: String = "GET", host: String? = "127.0.0.1:8080", origin: String? = nil, site: String? = nil,
    mode: String? = nil,
    destination: String? = nil
  ) -> RequestRules.Refusal? {
    rules.refusal(
      of: RequestRules.Head(
        method: method, host: host, origin: origin, site: site, mode: mode, destination: destination))
  }

  @Test(
    "Only loopback names and listed names are answered",
    arguments: [
      ("127.0.0.1", true), ("127.0.0.1:8080", true), ("localhost", true), ("LOCALHOST:80", true), ("[::1]:8080", true),
      ("admin.example.com", true), ("Admin.Example.com:443", true),
      ("evil.example", false), ("127.0.0.1.evil.example", false), ("evil.example:127.0.0.1", false),
      ("localhost.evil", false),
      ("evil.localhost", false), ("", false), ("[::1", false), ("[::1]evil", false), ("127.0.0.1:80:80", false),
      ("user@127.0.0.1", false), ("127.0.0.1@evil.example", false), ("0.0.0.0", false), ("admin.example.com.", false),
    ])
  func hosts(host: String, isAllowed: Bool) {
    #expect(refusal(host: host) == (isAllowed ? nil : .host))
  }

  @Test func `a request without a host is refused`() {
    #expect(refusal(host: nil) == .host)
  }

  @Test(
    "A change must come from the same origin",
    arguments: [
      ("http://127.0.0.1:8080", "same-origin", true), ("http://127.0.0.1:8080", nil, true), (nil, "same-origin", true),
      ("HTTP://127.0.0.1:8080", nil, true), ("https://127.0.0.1:8080", nil, true),
      (nil, nil, false), ("null", nil, false), ("null", "same-origin", false), ("http://evil.example", nil, false),
      ("http://evil.example", "same-origin", false), ("http://127.0.0.1:8081", nil, false),
      ("http://127.0.0.1", nil, false),
      ("http://127.0.0.1:8080.evil.example", nil, false), ("http://127.0.0.1:8080", "cross-site", false),
      ("http://127.0.0.1:8080", "same-site", false), ("http://127.0.0.1:8080", "none", false), (nil, "none", false),
      ("", nil, false),
    ] as [(String?, String?, Bool)])
  func changes(origin: String?, site: String?, isAllowed: Bool) {
    #expect(refusal("POST", origin: origin, site: site) == (isAllowed ? nil : .origin))
  }

  @Test func `another page may link here but loads nothing`() {
    #expect(refusal(site: "none") == nil)
    #expect(refusal(site: "same-origin") == nil)
    #expect(refusal(site: "cross-site", mode: "navigate", destination: "document") == nil)
    #expect(refusal(site: "cross-site", mode: "navigate", destination: "iframe") == .origin)
    #expect(refusal(site: "cross-site", mode: "no-cors", destination: "image") == .origin)
    #expect(refusal(site: "same-site", mode: "cors", destination: "empty") == .origin)
  }

  @Test(arguments: ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "post", ""])
  func `other methods are refused`(
    method: String
  ) {
    #expect(refusal(method, origin: "http://127.0.0.1:8080") == .method)
  }
}

@Suite("State of a session")
struct SessionStateTests {
  @Test func `a token is exchanged once for a cookie`() {
    var state = SessionState(token: "token")
    func redeems(_ isValid: Bool, _ token: String, for secret: String) {
      let isRedeemed = state.redeem(token, for: secret)
      #expect(isRedeemed == isValid)
    }
    #expect(!state.admits("secret"))
    redeems(false, "wrong", for: "wrong secret")
    redeems(false, "", for: "wrong secret")
    #expect(!state.admits("wrong secret"))
    redeems(true, "token", for: "secret")
    #expect(state.admits("secret"))
    redeems(false, "token", for: "another secret")
    #expect(!state.admits("another secret"))
    #expect(!state.admits("token"))
    #expect(state.admits("secret"))
  }

  @Test func `passwords are compared once in a second`() {
    var state = SessionState(token: "token", password: "correct horse")
    #expect(state.logIn("wrong", at: .seconds(5), for: "a") == .refused)
    #expect(state.logIn("correct horse", at: .seconds(5) + .milliseconds(999), for: "b") == .tooSoon)
    #expect(!state.admits("a") && !state.admits("b"))
    #expect(state.logIn("correct horse", at: .seconds(6), for: "c") == .admitted)
    #expect(state.admits("c"))
    #expect(state.logIn("correct horse", at: .seconds(6), for: "d") == .tooSoon)
    var time = Duration.seconds(10)
    for number in 0..<SessionState.maximumSessionCount {
      #expect(state.admits("c"))
      #expect(state.logIn("correct horse", at: time, for: "\(number)") == .admitted)
      time += .seconds(1)
    }
    #expect(!state.admits("c"), "the oldest session ends")
    #expect(state.admits("0"))
    var open = SessionState(token: "token")
    #expect(open.logIn("", at: .zero, for: "e") == .refused)
  }

  @Test func `secrets have 256 bits`() {
    var generator = SeededGenerator(seed: 1)
    let secrets = (0..<100).map { _ in SessionState.secret(using: &generator) }
    #expect(Set(secrets).count == 100)
    #expect(secrets.allSatisfy { $0.utf8.count == 64 && $0.allSatisfy(\.isHexDigit) })
  }
}

@Suite("Fields of forms")
struct FormFieldsTests {
  @Test func `fields are decoded`() throws {
    let fields = FormFields("a=1&b=x+y%2Bz&c=%C3%A9&a=2&d&=e&k=6b")
    #expect(fields["a"] == "1")
    #expect(fields["b"] == "x y+z")
    #expect(fields["c"] == "é")
    #expect(fields["d"] == "")
    #expect(fields["missing"] == nil)
    #expect(try fields.key("k") == ("k" as StoreKey))
    #expect(try fields.key("missing") == nil)
  }

  @Test(arguments: ["a=%", "a=%4", "a=%zz", "a=%FF", "%FF=a", "&&&", "="]) func `damaged fields are missing`(
    text: String
  ) {
    #expect(FormFields(text)["a"] == nil)
  }

  @Test func `a key that is not hexadecimal or too long is refused`() {
    for text in ["k=../x", "k=0", "k=zz", "k=" + String(repeating: "61", count: 512)] {
      #expect(throws: PageFailure.self) { try FormFields(text).key("k") }
    }
  }

  @Test func `only the first fields count`() {
    let text = (0..<1000).map { "f\($0)=\($0)" }.joined(separator: "&")
    #expect(FormFields(text)["f63"] == "63")
    #expect(FormFields(text)["f64"] == nil)
  }
}
