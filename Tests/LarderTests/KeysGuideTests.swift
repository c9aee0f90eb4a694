import Foundation
import Larder
import TestSupport
import Testing

/// A page that is stored under its URL.
private struct Page {
  var url: String
  var body: String
}

private struct Note: Codable {
  var text: String
}

/// The Swift code of the guide `Modules/Larder/Larder.docc/Keys.md`.
///
/// `Scripts/guide-code` writes it into the guide.
@Suite struct KeysGuideTests {
  private let account = "GB33-0042"
  private let date = Date(timeIntervalSince1970: 1_767_225_600)

  @Test func keys() {
    let (id, data) = (1, Data([0, 0xFF]))
    // snippet.keys-and-ranges-2
    let keys: [StoreKey] = [
      "user:1",  // text, as UTF-8
      "user:\(id)",
      StoreKey(integer: 42),  // 8 bytes, in numeric order
      StoreKey(UUID()),  // 16 bytes
      StoreKey(bytes: data),  // any bytes
      StoreKey(components: "txn", account, date, 17),
    ]
    // snippet.end
    #expect(keys[0] == keys[1])
    #expect(Array(keys[0].bytes) == Array("user:1".utf8))
    #expect(keys[2...4].map(\.count) == [8, 16, 2])
    #expect(StoreKey(integer: -1) < keys[2])
  }

  @Test func `text in a variable`() async throws {
    let (users, ada) = (MemoryStore<String>(), "Ada")

    // snippet.keys-and-ranges
    let id = "user:1"
    let user = try await users[id]
    try await users.setValue(ada, forKey: StoreKey(id))
    // snippet.end

    #expect(user == nil)
    #expect(try users.value(forKey: "user:\(1)") == "Ada")
  }

  @Test func urls() async throws {
    let pages = MemoryStore<Page>()

    // snippet.urls-and-other-long-texts
    func body(of url: String) async throws -> String? {
      guard let page = try await pages[StoreKey(shortening: url)], page.url == url else { return nil }
      return page.body
    }

    func save(_ body: String, of url: String) async throws {
      try await pages.setValue(Page(url: url, body: body), forKey: StoreKey(shortening: url))
    }
    // snippet.end

    let long = "https://example.com/" + String(repeating: "a", count: 1000)
    for url in ["https://example.com/", long, long + "a"] {
      try await save("body of \(url.count)", of: url)
    }
    #expect(try await body(of: long) == "body of 1020")
    #expect(try await body(of: long + "a") == "body of 1021")
    #expect(try await body(of: long + "b") == nil)
    #expect(try pages.count(in: .prefix("https://example.com/")) == 3)

    // As if the hashes of two texts were the same.
    try await pages.setValue(Page(url: long, body: "other"), forKey: StoreKey(shortening: long + "b"))
    #expect(try await body(of: long + "b") == nil)
  }

  @Test func `components of a key`() throws {
    // snippet.components
    let key = StoreKey(components: "txn", "GB33-0042", date, 17)
    let ofAccount = KeyRange.prefix(components: "txn", "GB33-0042")
    let number = try key.components()[3].integer
    // snippet.end
    #expect(ofAccount.contains(key))
    #expect(number == 17)
  }

  @Test func ranges() {
    // snippet.ranges
    let ranges: [KeyRange] = [
      .all,  // all keys
      .prefix("user:"),  // keys with this prefix
      "a"..<"b",  // from "a" up to, but not including, "b"
      "a"..."b",  // including "b"
      "a"...,  // from "a" on
      ..<"b",  // up to, but not including, "b"
      .prefix(components: "txn", account),
    ]
    // snippet.end
    let keys: [StoreKey] = [
      "A", "a", "az", "b", "b0", "user:1", StoreKey(components: "txn", account), StoreKey(components: "txn", "else"),
    ]
    // The keys in each of the ranges.
    #expect(
      ranges.map { range in keys.indices.filter { range.contains(keys[$0]) } }
        == [Array(0...7), [5], [1, 2], [1, 2, 3], [1, 2, 3, 4, 5], [0, 1, 2, 6, 7], [6]])
  }

  @Test func `several types in one store`() async throws {
    let bytes = MemoryStore<[UInt8]>()
    // snippet.several-types-in-one-store
    let inbox = bytes.typed(Note.self, prefix: "inbox/", codec: .json())
    let archive = bytes.typed(Note.self, prefix: "archive/", codec: .json())
    let counts = bytes.typed(Int.self, prefix: "count/", codec: .json())
    try await inbox.setValue(Note(text: "Buy milk"), forKey: "7")

    try await bytes.transaction { tx in
      let note = try await tx.value(forKey: "7", in: inbox)
      guard let note else { return .discard(()) }
      try await tx.removeValue(forKey: "7", in: inbox)
      try await tx.setValue(note, forKey: "7", in: archive)
      try await tx.update("archived", in: counts) { $0 = ($0 ?? 0) + 1 }
      return .commit(())
    }
    // snippet.end
    #expect(try bytes.keys(in: .all, limit: .max, order: .ascending) == ["archive/7", "count/archived"])
    #expect(try await counts.value(forKey: "archived") == 1)
  }

  @Test func `a walk`() async throws {
    let store = MemoryStore<Int>()
    try store.apply([.set("2025-12-31", 1), .set("2026-01-01", 2), .set("2026-01-31", 3), .set("2026-02-01", 4)])
    var latestFirst: [Int] = []
    // snippet.walks-and-pages
    for try await entry in store.entries(in: "2026-01"..<"2026-02", order: .descending) {
      latestFirst.append(entry.value)
    }
    // snippet.end
    #expect(latestFirst == [3, 2])
  }
}
