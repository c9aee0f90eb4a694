import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import InMemoryLogging
import Larder
@testable import LarderInspector
import LarderTesting
import Logging
import NIOCore
import Testing

@Suite("Safety of the inspector", .timeLimit(.minutes(5)))
struct SecurityTests {
  private let bytes = MemoryStore<[UInt8]>()
  private let pages = [
    "", "keys?store=0", "entry?store=0&key=6b", "raw?store=0&key=6b", "edit?store=0&key=6b", "damage?store=0&run=yes",
    "counts?store=0",
    "state?store=0", "queue?store=0", "dead?store=0", "enqueue?store=0", "requeue?store=0", "search?store=0&contains=s",
    "http?store=0", "response?store=0&url=http://a/", "body?store=0&url=http://a/", "usage?store=0",
    "measurements?store=0", "leased?store=0", "groups?store=0", "schedules?store=0", "salvage?store=0", "style.css",
    "script.js",
  ]
  private let removal: KeyValuePairs<String, String> = [
    "store": "0", "action": "remove", "key": "6b", "shown": "", "confirmed": "yes",
  ]

  private func removal(of value: [UInt8]) async throws -> KeyValuePairs<String, String> {
    let digest = Hexadecimal.text(of: value.withUnsafeBytes { KeyDigest.digest(of: $0) })
    return ["store": "0", "action": "remove", "key": "6b", "shown": digest, "confirmed": "yes"]
  }

  private func withSecret(
    allowsChanges: Bool = false, session: InspectorSession? = nil, logger: Logger? = nil,
    _ test: @Sendable @escaping (Browser) async throws -> Void
  ) async throws {
    try await bytes.setValue(Array("secret".utf8), forKey: "k")
    try await withInspector(
      [InspectedStore("s", bytes)], allowsChanges: allowsChanges, session: session, logger: logger, test)
  }

  @Test func `without the cookie nothing is read or changed`() async throws {
    let session = InspectorSession()
    try await withSecret(allowsChanges: true, session: session) { browser in
      let wrong = [
        "", "?token=", "?token=wrong", "?token=\(session.token.dropLast())", "?token=\(session.token)0",
        "?Token=\(session.token)",
      ]
      for address in pages + wrong {
        let response = try await browser.get(address)
        #expect(response.status == .unauthorized, "\(address)")
        #expect(!String(buffer: response.body).contains("secret"))
      }
      for cookie in ["larder-inspector=x", "larder-inspector-0000000000000000=\(session.token)", ""] {
        #expect(try await browser.get("", [.cookie: cookie]).status == .unauthorized)
      }
      #expect(try await browser.post(removal(of: Array("secret".utf8))).status == .unauthorized)
      #expect(try bytes.value(forKey: "k") != nil)
    }
  }

  @Test func `the token works once and leaves the address`() async throws {
    let session = InspectorSession()
    try await withSecret(session: session) { browser in
      let opened = try await browser.get("?token=\(session.token)")
      #expect(opened.status == .seeOther)
      #expect(opened.headers[.location] == "./")
      let cookie = try #require(opened.headers[.setCookie])
      #expect(cookie.contains("; HttpOnly"))
      #expect(cookie.contains("; SameSite=Strict"))
      let pair = String(cookie.prefix { $0 != ";" })
      #expect(!pair.contains(session.token))
      #expect(try await browser.get("?token=\(session.token)").status == .unauthorized)
      #expect(try await browser.get("entry?store=0&key=6b", [.cookie: pair]).status == .ok)
      #expect(try await browser.get("entry?store=0&key=6b", [.cookie: pair.dropLast() + "x"]).status == .unauthorized)
      #expect(try await browser.get("entry?store=0&key=6b").status == .unauthorized)
    }
  }

  @Test func `with a password other browsers log in`() async throws {
    #expect(throws: StoreError.self) { try InspectorSession(password: "12345678901") }
    let time = Locked(Duration.zero)
    let session = InspectorSession(checked: "correct horse", isSecure: true, now: { time.withLock { $0 } })
    let log = InMemoryLogHandler()
    try await withSecret(allowsChanges: true, session: session, logger: Logger(label: "test") { _ in log }) { browser in
      for address in pages where address != "style.css" && address != "script.js" {
        let response = try await browser.get(address)
        #expect(response.status == .unauthorized, "\(address)")
        #expect(String(buffer: response.body).contains("type=\"password\""))
        #expect(!String(buffer: response.body).contains("secret"))
      }
      for address in ["style.css", "script.js"] { #expect(try await browser.get(address).status == .ok) }
      #expect(try await browser.post(removal(of: Array("secret".utf8))).status == .unauthorized)
      func logIn(_ password: String, _ headers: HTTPFields = [:]) async throws -> TestResponse {
        try await browser.client.execute(
          uri: "/login", method: .post, headers: browser.headers + headers,
          body: ByteBuffer(string: "password=\(Browser.escaped(password))"))
      }
      let wrong = try await logIn("wrong horse!")
      #expect(wrong.status == .unauthorized)
      #expect(wrong.headers[.setCookie] == nil)
      #expect(String(buffer: wrong.body).contains("The password is wrong."))
      let early = try await logIn("correct horse")
      #expect(early.status == .tooManyRequests)
      #expect(early.headers[.retryAfter] == "1")
      time.withLock { $0 = .seconds(1) }
      #expect(try await logIn("correct horse", [.origin: "https://evil.example"]).status == .forbidden)
      #expect(try await logIn(String(repeating: "x", count: 5000)).status == .contentTooLarge)
      let right = try await logIn("correct horse")
      #expect(right.status == .seeOther)
      let cookie = try #require(right.headers[.setCookie])
      for field in ["; HttpOnly", "; SameSite=Strict", "; Secure"] { #expect(cookie.contains(field)) }
      let pair = String(cookie.prefix { $0 != ";" })
      #expect(try await browser.get("entry?store=0&key=6b", [.cookie: pair]).status == .ok)
      // The token opens another session.
      #expect(try await browser.get("?token=\(session.token)").status == .seeOther)
      #expect(try await browser.get("entry?store=0&key=6b", [.cookie: pair]).status == .ok)
    }
    #expect(
      log.entries.filter { $0.level == .notice }.map { "\($0.message)" }
        == ["inspector: wrong password", "inspector: logged in"])
  }

  /// Without a password, the address of the form opens nothing.
  @Test func `without a password nothing is logged in`() async throws {
    try await withSecret(session: InspectorSession()) { browser in
      for body in ["password=", "password=x", ""] {
        let response = try await browser.client.execute(
          uri: "/login", method: .post, headers: browser.headers, body: ByteBuffer(string: body))
        #expect(response.status == .unauthorized)
        #expect(response.headers[.setCookie] == nil)
      }
    }
  }

  @Test func `without permission nothing changes`() async throws {
    try await withSecret { browser in
      let changes = [
        "add", "set", "remove", "enqueue", "requeue", "requeueEdited", "purge", "requeueAll", "purgeAll", "pause",
        "resume", "drain", "removeURL", "removePrefix", "removeResponses", "other",
      ]
      for action in changes {
        for confirmed in ["yes", "no"] {
          let digest = Hexadecimal.text(of: Array("secret".utf8).withUnsafeBytes { KeyDigest.digest(of: $0) })
          let response = try await browser.post([
            "store": "0", "action": action, "key": "6b", "newKey": "n", "form": "text", "value": "new", "shown": digest,
            "url": "http://a/", "confirmed": confirmed,
          ])
          #expect(response.status == (action == "other" ? .badRequest : .forbidden), "\(action)")
        }
      }
      #expect(
        try bytes.entries(in: .all, limit: 9, order: .ascending) == [StoreEntry(key: "k", value: Array("secret".utf8))])
      #expect(try await browser.get("edit?store=0&key=6b").status == .forbidden)
      #expect(try await !browser.text("entry?store=0&key=6b").contains("<form"))
    }
  }

  @Test func `without a confirmation nothing changes`() async throws {
    try await withSecret(allowsChanges: true) { browser in
      let digest = Hexadecimal.text(of: Array("secret".utf8).withUnsafeBytes { KeyDigest.digest(of: $0) })
      let asked = try await browser.post(["store": "0", "action": "remove", "key": "6b", "shown": digest])
      #expect(String(buffer: asked.body).contains("Remove the entry <b>k</b>."))
      #expect(try bytes.value(forKey: "k") != nil)
      // A link changes nothing.
      #expect(
        try await browser.get("change?store=0&action=remove&key=6b&shown=\(digest)&confirmed=yes").status == .notFound)
      #expect(try bytes.value(forKey: "k") != nil)
      #expect(try await browser.post(removal(of: Array("secret".utf8))).status == .seeOther)
      #expect(try bytes.value(forKey: "k") == nil)
    }
  }

  @Test func `each change is logged without its key and its value`() async throws {
    let log = InMemoryLogHandler()
    try await withSecret(allowsChanges: true, logger: Logger(label: "test") { _ in log }) { browser in
      // The value has changed since the page was shown.
      _ = try await browser.post(removal(of: Array("other".utf8)))
      _ = try await browser.post(removal(of: Array("secret".utf8)))
    }
    let entries = log.entries.filter { $0.level == .notice }
    #expect(entries.map { "\($0.message)" } == ["inspector: change failed", "inspector: change made"])
    for entry in entries {
      #expect(entry.metadata["store"] == "s")
      #expect(entry.metadata["change"] == "remove")
      // The random number of the request can have the digits of the key.
      let text = "\(entry.message) \(entry.metadata.filter { $0.key != "hb.request.id" })"
      #expect(!text.contains("secret") && !text.contains("6b"))
    }
  }

  @Test func `a foreign name of the server reads and changes nothing`() async throws {
    try await withSecret(allowsChanges: true) { browser in
      for host in ["evil.example", "localhost.evil.example", "none", ""] {
        for page in pages {
          let response = try await browser.get(page, HTTPFields(["X-Host": host]))
          #expect(response.status == .misdirectedRequest, "\(host) \(page)")
          #expect(!String(buffer: response.body).contains("secret"))
        }
        let change = try await browser.post(
          removal(of: Array("secret".utf8)),
          HTTPFields(["X-Host": host, "Origin": "http://\(host)", "Sec-Fetch-Site": "same-origin"]))
        #expect(change.status == .misdirectedRequest)
      }
      #expect(try bytes.value(forKey: "k") != nil)
    }
  }

  @Test func `a change from another origin is refused`() async throws {
    try await withSecret(allowsChanges: true) { browser in
      let removal = try await removal(of: Array("secret".utf8))
      for fields in [
        ["Origin": "http://evil.example"], ["Origin": "null"], ["Sec-Fetch-Site": "cross-site"],
        ["Sec-Fetch-Site": "same-site"], ["Sec-Fetch-Site": "none"], ["Origin": "http://localhost:81"],
      ] {
        #expect(try await browser.post(removal, HTTPFields(fields)).status == .forbidden, "\(fields)")
      }
      var silent = browser
      silent.headers = [:]
      #expect(try await silent.post(removal).status == .forbidden)
      let image = HTTPFields(["Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"])
      #expect(try await browser.get("raw?store=0&key=6b", image).status == .forbidden)
      #expect(try bytes.value(forKey: "k") != nil)
    }
  }

  @Test func `each response forbids what it does not need`() async throws {
    let session = InspectorSession()
    for session in [nil, session] {
      try await withSecret(session: session) { browser in
        for page in pages {
          let fields = try await browser.get(page).headers
          let policy = fields[Self.name("Content-Security-Policy")] ?? ""
          #expect(policy.contains("default-src 'none'"), "\(page)")
          #expect(policy.contains("frame-ancestors 'none'"), "\(page)")
          #expect(!policy.contains("unsafe"), "\(page)")
          #expect(fields[Self.name("X-Content-Type-Options")] == "nosniff", "\(page)")
          #expect(fields[.cacheControl] == "no-store", "\(page)")
        }
      }
    }
  }

  private static func name(_ text: String) -> HTTPField.Name { HTTPField.Name(text) ?? .from }

  @Test func `stored bytes are never a page`() async throws {
    let values = [
      "<html><script>alert(1)</script></html>",
      "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>", "<?xml version=\"1.0\"?>",
      "GIF89a<script>alert(1)</script>", "javascript:alert(1)", "%PDF-1.7",
    ].map { Array($0.utf8) }
    for value in values {
      try await bytes.setValue(value, forKey: "k")
      try await withInspector([InspectedStore("s", bytes)]) { browser in
        let response = try await browser.get("raw?store=0&key=6b")
        #expect(Array(response.body.readableBytesView) == value)
        #expect(["application/octet-stream", "image/gif"].contains(response.headers[.contentType]))
        #expect(response.headers[Self.name("Content-Security-Policy")]?.hasPrefix("sandbox;") == true)
        #expect(response.headers[Self.name("X-Content-Type-Options")] == "nosniff")
        let isImage = response.headers[.contentType] == "image/gif"
        #expect(
          response.headers[Self.name("Content-Disposition")]?.hasPrefix(isImage ? "inline" : "attachment") == true)
      }
    }
  }

  @Test(
    "Paths lead nowhere else",
    arguments: [
      "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc/passwd", "entry/../../x", "style.css/../../x",
      "//evil.example/",
      "keys;x?store=0", "raw/6b", ".%00./", "keys%00", "admin", "KEYS?store=0x", "entry?store=-1&key=6b",
      "entry?store=99&key=6b",
      "entry?store=0&key=../k", "entry?store=0", "entry?store=1&key=6b&store=0", "raw?store=9999999999999999999",
    ])
  func paths(path: String) async throws {
    try await withSecret { browser in
      let response = try await browser.get(path)
      #expect([.notFound, .badRequest].contains(response.status), "\(path)")
      #expect(!String(buffer: response.body).contains("secret"))
      #expect(!String(buffer: response.body).contains("root:"))
    }
  }
}
