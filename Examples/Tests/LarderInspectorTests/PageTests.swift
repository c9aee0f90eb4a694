import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Larder
import LarderExpiry
import LarderInspector
import LarderObservation
import LarderTesting
import Testing

@Suite("Pages of stores", .timeLimit(.minutes(5)))
struct PageTests {
  private struct User: Codable, Sendable, Equatable {
    var name: String
  }

  private let bytes = MemoryStore<[UInt8]>()

  @Test func `the first view comes without a count`() async throws {
    let store = FaultyStore(MemoryStore<[UInt8]>())
    store.schedule(.error(.ioFailed), on: .count, probability: 1)
    try await withInspector([InspectedStore("users", store)]) { browser in
      let page = try await browser.get("")
      #expect(page.status == .ok)
      #expect(String(buffer: page.body).contains("counts?store=0"))
    }
  }

  @Test func `keys are a tree and a list`() async throws {
    for key in ["user/ada", "user/bob", "count"] as [StoreKey] {
      try await bytes.setValue(Array("\"x\"".utf8), forKey: key)
    }
    try await withInspector([InspectedStore("users", bytes)]) { browser in
      let tree = try await browser.text("keys?store=0")
      #expect(tree.contains(">user/</a>"))
      #expect(!tree.contains("user/ada"))
      #expect(try await browser.text("keys?store=0&view=list").contains(">user/ada</a>"))
      #expect(try await browser.text("keys?store=0&text=user%2F&find=prefix").contains(">user/bob</a>"))
      let found = try await browser.get("keys?store=0&text=count&find=key")
      #expect(found.status == .seeOther)
      #expect(found.headers[.location] == "entry?store=0&key=636f756e74")
      #expect(
        try await browser.text("entry?store=0&key=636f756e74").contains("<span class=\"string\">&quot;x&quot;</span>"))
      #expect(try await browser.get("entry?store=0&key=00").status == .notFound)
      #expect(try await browser.text("counts?store=0").contains(#""entries":"3""#))
    }
  }

  @Test func `an entry is added edited and removed after a confirmation`() async throws {
    let users = MemoryStore<User>()
    try await withInspector([InspectedStore("users", users, codec: .json())], allowsChanges: true) { browser in
      let asked = try await browser.post([
        "store": "0", "action": "add", "newKey": "ada", "form": "json", "value": #"{"name":"Ada"}"#,
      ])
      #expect(asked.status == .ok)
      #expect(String(buffer: asked.body).contains("Add the entry <b>ada</b> with a value of 14 B."))
      #expect(try users.value(forKey: "ada") == nil)
      let added = try await browser.submit(String(buffer: asked.body))
      #expect(added.status == .seeOther)
      #expect(try users.value(forKey: "ada") == User(name: "Ada"))

      let again = try await browser.confirm([
        "store": "0", "action": "add", "newKey": "ada", "form": "json", "value": #"{"name":"B"}"#,
      ])
      #expect(again.status == .conflict)

      let edit = try await browser.text("edit?store=0&key=616461")
      let shown = try #require(edit.firstMatch(of: /name="shown" value="(\w+)"/)).1
      let edited = try await browser.confirm(
        [
          "store": "0", "action": "set", "key": "616461", "shown": String(shown), "form": "json",
          "value": #"{"name":"Ada L."}"#,
        ])
      #expect(edited.status == .seeOther)
      #expect(try users.value(forKey: "ada") == User(name: "Ada L."))

      // The page that showed the first value would overwrite the second one.
      let stale = try await browser.confirm(
        [
          "store": "0", "action": "set", "key": "616461", "shown": String(shown), "form": "json",
          "value": #"{"name":"C"}"#,
        ])
      #expect(stale.status == .conflict)
      let wrong = try await browser.post([
        "store": "0", "action": "add", "newKey": "bob", "form": "json", "value": "{}",
      ])
      #expect(wrong.status == .badRequest)
      #expect(try users.value(forKey: "ada") == User(name: "Ada L."))

      let page = try await browser.text("entry?store=0&key=616461")
      let removed = try await browser.submit(String(buffer: browser.submit(page).body))
      #expect(removed.status == .seeOther)
      #expect(try users.value(forKey: "ada") == nil)
    }
  }

  @Test func `an edited entry keeps the rest of its time`() async throws {
    let now = Date(timeIntervalSince1970: 1_800_000_000)
    let store = MemoryStore<Expiring<String>>().expiring(.after(.seconds(600)), now: { now })
    try await store.setValue("x", forKey: "k", timeToLive: .after(.seconds(60)))
    try await withInspector([InspectedStore("s", store, codec: .json())], allowsChanges: true) { browser in
      let page = try await browser.text("entry?store=0&key=6b")
      #expect(page.contains("1 min 0 s"))
      let shown = try #require(page.firstMatch(of: /name="shown" value="(\w+)"/)).1
      _ = try await browser.confirm(
        ["store": "0", "action": "set", "key": "6b", "shown": String(shown), "form": "json", "value": "\"y\""])
      #expect(try await store["k"] == "y")
      #expect(try await store.timeUntilExpiry(of: "k") == .seconds(60))
    }
  }

  @Test func `damage is shown in its place`() async throws {
    try await bytes.setValue(Array("{".utf8), forKey: "bad")
    try await bytes.setValue(Array("\"good\"".utf8), forKey: "good")
    let typed = bytes.typed(String.self, codec: .json())
    try await withInspector([InspectedStore("s", typed, codec: .json())]) { browser in
      let keys = try await browser.text("keys?store=0")
      #expect(keys.contains("<span class=\"problem\">"))
      #expect(keys.contains("good"))
      #expect(try await browser.get("entry?store=0&key=626164").status == .internalServerError)
      let report = try await browser.text("damage?store=0&run=yes")
      #expect(report.contains("1 findings in 2 entries"))
      #expect(report.contains("run <code>larder salvage</code> with the URL of this store and that of a new one."))
    }
  }

  @Test func `changes are counted`() async throws {
    let store = bytes.observable()
    try await withInspector([InspectedStore("s", store)]) { browser in
      #expect(try await browser.text("state?store=0") == #"{"changes":0}"#)
      try await store.setValue([1], forKey: "k")
      #expect(try await browser.text("state?store=0") == #"{"changes":1}"#)
      #expect(try await browser.text("keys?store=0").contains("data-live=\"state?store=0\""))
    }
  }

  /// The address of a mounted inspector may lack the slash, without which relative addresses lead elsewhere.
  @Test func `the inspector can be mounted anywhere`() async throws {
    let router = Router()
    Inspector([InspectedStore("s", bytes)]).addRoutes(to: router.group("admin/stores"))
    try await Application(router: router).test(.router) { client in
      let moved = try await client.execute(uri: "/admin/stores", method: .get)
      #expect(moved.headers[.location] == "./stores/")
      #expect(try await client.execute(uri: "/admin/stores/", method: .get).status == .ok)
      #expect(
        try await client.execute(uri: "/admin/stores/style.css", method: .get).headers[.contentType]
          == "text/css; charset=utf-8")
    }
  }
}
