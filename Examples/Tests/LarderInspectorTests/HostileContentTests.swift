import Foundation
import Hummingbird
import HummingbirdTesting
import Larder
import LarderHTTPCache
import LarderInspector
import LarderStoreQueue
import LarderTesting
import Testing

/// Keys and values that try to become markup, attributes, addresses or programs.
@Suite("Hostile keys and values", .timeLimit(.minutes(10)))
struct HostileContentTests {
  private static let fragments: [String] = [
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "</textarea><script>",
    "</title><script>", "<!--", "-->",
    "]]>", "<svg onload=alert(1)>", "javascript:alert(1)", "&lt;script&gt;", "&#x3C;script&#x3E;", "\u{202E}", "\u{0}",
    "\r\nSet-Cookie: a=b\r\n\r\n",
    "\u{2028}", "{\"a\":\"</pre><script>\"}", "%3Cscript%3E", "\\u003cscript\\u003e", "../../",
    "data:text/html,<script>", "\u{FEFF}", "😀", "<",
    "\"", "'", "&", "/", ":", "`", "=", "{{7*7}}", "${7*7}", "</", "<base href=//evil>", "<form action=//evil>",
    "<meta http-equiv=refresh content=0>",
  ]

  private func bytes(using generator: inout SeededGenerator, upTo length: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    for _ in 0..<Int.random(in: 1...3, using: &generator) {
      if Int.random(in: 0..<5, using: &generator) == 0 {
        bytes += (0..<Int.random(in: 1...6, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator)
        }
      } else {
        bytes += Array(Self.fragments.randomElement(using: &generator, or: "<").utf8)
      }
    }
    return Array(bytes.prefix(length))
  }

  private static let elements: Set<String> = [
    "!DOCTYPE", "html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "ol", "li", "p",
    "span", "main", "footer", "kbd",
    "h1", "h2", "form", "input", "label", "select", "option", "button", "div", "table", "thead", "tbody", "tr", "th",
    "td", "ul", "pre", "img",
    "textarea", "section", "b", "code", "svg", "polyline", "details", "summary",
  ]
  private static let attributes: Set<String> = [
    "lang", "charset", "name", "content", "rel", "href", "src", "defer", "class", "id", "aria-label", "aria-current",
    "data-key", "action", "method",
    "role", "type", "value", "autocomplete", "spellcheck", "maxlength", "scope", "aria-disabled", "download",
    "tabindex", "alt", "rows", "required",
    "selected", "html", "data-live", "data-label", "hidden", "data-counts", "data-count", "data-details",
    "inputmode", "formaction", "placeholder", "data-chart", "viewBox", "preserveAspectRatio", "aria-hidden", "points",
  ]

  /// Checks that a page consists of the elements and attributes of the inspector, and of text.
  ///
  /// It reads bytes, as a browser does, and not characters, because a combining mark would join the end of a tag.
  private func check(_ page: String, _ context: @autoclosure () -> String) {
    var page = page
    page.withUTF8 { bytes in
      var (index, scripts) = (0, 0)
      while let start = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
        guard let end = bytes[start...].firstIndex(of: UInt8(ascii: ">")) else { break }
        index = end + 1
        let tag = String(decoding: bytes[(start + 1)..<end], as: UTF8.self)
        scripts += tag.hasPrefix("script") ? 1 : 0
        if let fault = Self.fault(of: tag) { Issue.record("\(fault) in <\(tag)>: \(context())") }
      }
      if scripts != 1 { Issue.record("\(scripts) scripts: \(context())") }
      if bytes.contains(where: { $0 < 0x20 && $0 != 0x0A && $0 != 0x09 || $0 == 0x7F }) {
        Issue.record("control: \(context())")
      }
    }
    let directions: [Unicode.Scalar] = ["\u{202E}", "\u{2028}", "\u{FEFF}"]
    for scalar in directions where page.utf8.contains(0xE2) || page.utf8.contains(0xEF) {
      if page.unicodeScalars.contains(scalar) { Issue.record("\(scalar.value): \(context())") }
    }
  }

  /// Returns what is not the inspector's in a tag, or `nil`.
  private static func fault(of tag: String) -> String? {
    var rest = Array(tag.utf8)[...]
    if rest.first == UInt8(ascii: "/") { rest = rest.dropFirst() }
    let name = rest.prefix { $0 != 0x20 }
    guard elements.contains(String(decoding: name, as: UTF8.self)) else { return "element" }
    rest = rest.dropFirst(name.count)
    while rest.first == 0x20 {
      rest = rest.dropFirst()
      let attribute = String(decoding: rest.prefix { $0 != UInt8(ascii: "=") && $0 != 0x20 }, as: UTF8.self)
      guard attributes.contains(attribute) else { return "attribute" }
      rest = rest.dropFirst(attribute.utf8.count)
      guard rest.first == UInt8(ascii: "=") else { continue }
      rest = rest.dropFirst()
      guard rest.popFirst() == UInt8(ascii: "\""), let end = rest.firstIndex(of: UInt8(ascii: "\"")) else {
        return "quotes"
      }
      let value = String(decoding: rest[..<end], as: UTF8.self)
      rest = rest[(end + 1)...]
      if ["href", "src", "action"].contains(attribute), !isAddress(value) { return "address" }
    }
    return rest.isEmpty || rest.elementsEqual("/".utf8) ? nil : "text"
  }

  /// Returns whether an address is one of a page of the inspector, with fields in which only letters and digits are not escaped.
  private static func isAddress(_ address: String) -> Bool {
    if ["./", "#content"].contains(address) { return true }
    let parts = address.split(separator: "?", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts[0].utf8.allSatisfy({ $0 == UInt8(ascii: ".") || (0x61...0x7A).contains($0) }) else {
      return false
    }
    let fields = parts.dropFirst().flatMap { $0.replacing("&amp;", with: "&").utf8 }
    return fields.allSatisfy {
      (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) || "%=&".utf8.contains($0)
    }
  }

  @Test func `hostile content stays text`() async throws {
    let seed =
      ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...(.max))
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    let store = MemoryStore<[UInt8]>()
    var keys: [StoreKey] = []
    for _ in 0..<10_000 {
      let key = StoreKey(bytes: bytes(using: &generator, upTo: StoreKey.maximumLength))
      try await store.setValue(bytes(using: &generator, upTo: 4096), forKey: key)
      keys.append(key)
    }
    let hostileName = "<script>\"'&"
    let drawn = keys
    try await withInspector([InspectedStore(hostileName, store)], allowsChanges: true) { browser in
      check(try await browser.text(""), "overview")
      // The pages of all keys and values.
      var address = "keys?store=0&view=list"
      var pageCount = 0
      while true {
        let page = try await browser.text(address)
        check(page, address)
        pageCount += 1
        guard let next = page.firstMatch(of: /data-key="n" href="([^"]*)"/) else { break }
        address = String(next.1).replacing("&amp;", with: "&")
      }
      #expect(pageCount == (try store.count(in: .all) + 99) / 100)
      for key in drawn.prefix(300) {
        let here = "store=0&key=\(key.hexadecimal)"
        let page = try await browser.text("entry?\(here)")
        check(page, "entry \(key.hexadecimal) seed \(seed)")
        let raw = try await browser.get("raw?\(here)")
        #expect(try Array(raw.body.readableBytesView) == store.value(forKey: key))
        #expect(raw.headers.count == 10, "no field was added: \(raw.headers)")
      }
      for key in drawn.prefix(100) {
        let here = "store=0&key=\(key.hexadecimal)"
        for address in [
          "entry?\(here)&as=hex", "entry?\(here)&as=text", "edit?\(here)", "keys?store=0&prefix=\(key.hexadecimal)",
        ] {
          check(try await browser.text(address), "\(address) seed \(seed)")
        }
        let text = String(decoding: key.bytes, as: UTF8.self)
        let asked = try await browser.post([
          "store": "0", "action": "add", "newKey": text, "form": "text", "value": text,
        ])
        check(String(buffer: asked.body), "confirmation \(key.hexadecimal) seed \(seed)")
        check(
          try await browser.text("keys?store=0&find=prefix&text=\(Browser.escaped(text))"),
          "search \(key.hexadecimal) seed \(seed)")
      }
    }
  }

  @Test func `hostile ids and names of groups and schedules stay text`() async throws {
    let seed =
      ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...(.max))
    print("LARDER_SEED=\(seed)")
    var generator = SeededGenerator(seed: seed)
    let queue = try await MemoryStore<[UInt8]>().queue(of: [UInt8].self, prefix: "q/", codec: .raw)
    for number in 0..<1000 {
      let id = StoreKey(bytes: Array("\(number)".utf8) + bytes(using: &generator, upTo: 300))
      let group = StoreKey(bytes: bytes(using: &generator, upTo: 128))
      try await queue.enqueue([QueueInput(bytes(using: &generator, upTo: 999), id: id, group: group)])
      let name = StoreKey(bytes: Array("\(number)".utf8) + bytes(using: &generator, upTo: 60))
      try await queue.base.setValue([1], forKey: StoreKey(bytes: Array("q/c".utf8) + name.bytes))
    }
    let held = try await queue.receive(max: 500, lease: .seconds(600)).count
    let groupCount = try await queue.groups(limit: 1000, after: nil).entries.count
    try await withInspector([InspectedStore("<script>\"'&", queue, codec: .raw)], allowsChanges: true) { browser in
      check(try await browser.text("queue?store=0"), "queue seed \(seed)")
      for (path, count) in [("leased", held), ("groups", groupCount), ("schedules", 1000)] {
        var address: String? = "\(path)?store=0"
        var rowCount = 0
        while let here = address {
          let page = try await browser.text(here)
          check(page, "\(here) seed \(seed)")
          // Without the end of the tag, which a combining mark in a name would join.
          rowCount += page.matches(of: /<tr><th scope="row"/).count
          address = page.firstMatch(of: /data-key="n" href="([^"]*)"/).map {
            String($0.1).replacing("&amp;", with: "&")
          }
        }
        #expect(rowCount == count, "\(path) seed \(seed)")
      }
    }
  }

  @Test func `hostile requests are answered`() async throws {
    let seed =
      ProcessInfo.processInfo.environment["LARDER_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...(.max))
    print("LARDER_SEED=\(seed)")
    let store = MemoryStore<[UInt8]>()
    try await store.setValue(Array("secret".utf8), forKey: "k")
    try await withInspector([InspectedStore("s", store, httpCacheConfiguration: .shared)]) { browser in
      var generator = SeededGenerator(seed: seed)
      let pages = [
        "keys", "entry", "raw", "edit", "damage", "queue", "dead", "enqueue", "requeue", "counts", "state", "search",
        "http",
        "response", "body", "usage", "measurements", "leased", "groups", "schedules",
        "salvage",
      ]
      let names = [
        "store", "key", "prefix", "from", "before", "as", "view", "text", "find", "after", "reason", "token", "url",
        "fields", "contains",
      ]
      for _ in 0..<1000 {
        let query = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
          let value = Browser.escaped(String(decoding: bytes(using: &generator, upTo: 600), as: UTF8.self))
          return "\(names.randomElement(using: &generator, or: "key"))=\(Bool.random(using: &generator) ? "0" : value)"
        }.joined(separator: "&")
        let address = "\(pages.randomElement(using: &generator, or: "keys"))?\(query)"
        let response = try await browser.get(address)
        #expect([200, 303, 400, 403, 404].contains(response.status.code), "\(address) seed \(seed)")
        if response.headers[.contentType]?.hasPrefix("text/html") == true {
          check(String(buffer: response.body), "\(address) seed \(seed)")
        }
      }
      #expect(try store.count(in: .all) == 1)
    }
  }
}

extension Collection {
  fileprivate func randomElement(using generator: inout SeededGenerator, or fallback: Element) -> Element {
    randomElement(using: &generator) ?? fallback
  }
}
