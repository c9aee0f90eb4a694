import Foundation
import HTTPTypes
import HummingbirdTesting
import Larder
import LarderCache
import LarderInspector
import LarderMetrics
import LarderTesting
import NIOCore
import Testing

@Suite("Pages of measurements and searches", .timeLimit(.minutes(5)))
struct MeasurementTests {
  @Test func `operations and hit ratios are shown`() async throws {
    let base = FaultyStore(MemoryStore<[UInt8]>())
    let cached = base.cached()
    let users = cached.metered(as: "users")
    let inspected = InspectedStore("users", users).reporting(
      operations: { try users.report().json() },
      hits: { (cached.statistics().hits, cached.statistics().misses) })
    try await withInspector([inspected, InspectedStore("plain", users)]) { browser in
      #expect(try await browser.text("").contains("measurements?store=0"))
      #expect(try await browser.text("measurements?store=0").contains("No operation was measured yet."))
      try await users.setValue([1], forKey: "k")
      for _ in 0..<4 { _ = try await users.value(forKey: "k") }
      base.schedule(.error(.ioFailed), on: .apply)
      await #expect(throws: StoreError.self) { try await users.setValue([2], forKey: "k") }
      let page = try await browser.text("measurements?store=0")
      #expect(page.contains("<th scope=\"row\">value</th>"))
      #expect(page.contains("data-count=\"rate:apply\""))
      #expect(page.contains("data-chart=\"p99:value\""))
      #expect(page.contains("1 ioFailed"))
      let state = try await browser.text("state?store=0")
      #expect(state.contains(#""total:value":4,"p99:value":"#), "\(state)")
      #expect(state.contains(#""total:apply":2,"#), "\(state)")
      #expect(state.contains(#""hits":"#), "\(state)")
      #expect(try await browser.get("measurements?store=1").status == .notFound)
      #expect(try await browser.text("state?store=1") == "{}")
    }
  }

  /// The names of blocks come from a program.
  @Test func `names are escaped and other reports are refused`() async throws {
    let operation = #"""
      {"name":"<b>\"x","count":1,"errors":{"<i>":2},"inFlight":0,"p50Nanoseconds":1,"p90Nanoseconds":1500,
      "p99Nanoseconds":2000000,"maxNanoseconds":3000000000}
      """#
    let good = InspectedStore("s", MemoryStore<[UInt8]>()).reporting(operations: {
      "{\"store\":\"s\",\"operations\":[\(operation)]}"
    })
    let bad = InspectedStore("s", MemoryStore<[UInt8]>()).reporting(operations: { "{}" })
    try await withInspector([good, bad]) { browser in
      let page = try await browser.text("measurements?store=0")
      #expect(page.contains("&lt;b&gt;&quot;x") && !page.contains("<b>\"x") && page.contains("2 &lt;i&gt;"))
      for time in ["1 ns", "1.50 µs", "2.00 ms", "3.00 s"] { #expect(page.contains(">\(time)<"), "\(time)") }
      #expect(try await browser.text("state?store=0") == #"{"total:<b>\"x":1,"p99:<b>\"x":2000000}"#)
      let response = try await browser.get("measurements?store=1")
      #expect(response.status == .internalServerError)
      #expect(String(buffer: response.body).contains("MeterReport.json()"))
    }
  }

  @Test func `values are searched in parts of a limited size`() async throws {
    let store = MemoryStore<String>()
    try store.apply(
      ChangeBatch((0..<10_300).map { .set(StoreKey("user/\(1_000_000 + $0)"), $0 % 5_000 == 7 ? "Ada <\($0)>" : "x") }))
    try await store.setValue("Ada", forKey: "other")
    try await withInspector([InspectedStore("s", store, codec: .json())]) { browser in
      #expect(try await browser.text("keys?store=0").contains("action=\"search\""))
      let prefix = Hexadecimal.text(of: "user/".utf8)
      let first = try await browser.text("search?store=0&prefix=\(prefix)&contains=Ada")
      #expect(first.contains("10,000 values read, 2 found, and more to read."))
      #expect(first.contains("user/1000007") && first.contains("user/1005007") && !first.contains("other"))
      #expect(first.contains("Ada &lt;7&gt;"))
      let next = try #require(first.firstMatch(of: /href="(search\?[^"]*after=[^"]*)"/)).1.description
      let second = try await browser.text(next.replacing("&amp;", with: "&"))
      #expect(second.contains("300 values read, 1 found.</p>"))
      #expect(second.contains("user/1010007"))
      #expect(try await browser.text("search?store=0&contains=Eve&prefix=6f").contains("No value in this part"))
      for text in ["", String(repeating: "x", count: 257)] {
        #expect(try await browser.get("search?store=0&contains=\(text)").status == .badRequest)
      }
    }
  }

  @Test func `a search ends at its number of lines and passes damaged values`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    for number in 0..<150 { try await bytes.setValue(Array("\"Ada\"".utf8), forKey: StoreKey("k\(1000 + number)")) }
    try await bytes.setValue(Array("{Ada".utf8), forKey: "k1000")
    try await withInspector([InspectedStore("s", bytes.typed(String.self, codec: .json()), codec: .json())]) {
      browser in
      let page = try await browser.text("search?store=0&contains=Ada")
      #expect(page.contains("101 values read, 100 found, and more to read."))
      #expect(page.contains("1 values cannot be read."))
      let next = try #require(page.firstMatch(of: /href="(search\?[^"]*after=[^"]*)"/)).1.description
      let second = try await browser.text(next.replacing("&amp;", with: "&"))
      #expect(second.contains("49 values read, 49 found.</p>"))
    }
  }
}
