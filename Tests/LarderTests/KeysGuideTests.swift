import Foundation
import Larder
import TestSupport
import Testing

/// The Swift code of the guide `Modules/Larder/Larder.docc/Keys.md`.
///
/// It must appear in the guide unchanged, and it must work.
@Suite struct KeysGuideTests {
  private let account = "GB33-0042"
  private let date = Date(timeIntervalSince1970: 1_767_225_600)

  @Test func keys() {
    let (id, data) = (1, Data([0, 0xFF]))
    let keys: [StoreKey] = [
      "user:1",  // text, as UTF-8
      "user:\(id)",
      StoreKey(integer: 42),  // 8 bytes, in numeric order
      StoreKey(UUID()),  // 16 bytes
      StoreKey(bytes: data),  // any bytes
      StoreKey(components: "txn", account, date, 17),
    ]
    #expect(keys[0] == keys[1])
    #expect(Array(keys[0].bytes) == Array("user:1".utf8))
    #expect(keys[2...4].map(\.count) == [8, 16, 2])
    #expect(StoreKey(integer: -1) < keys[2])
  }

  @Test func componentsOfAKey() throws {
    let key = StoreKey(components: "txn", "GB33-0042", date, 17)
    let ofAccount = KeyRange.prefix(components: "txn", "GB33-0042")
    let number = try key.components()[3].integer
    #expect(ofAccount.contains(key))
    #expect(number == 17)
  }

  @Test func ranges() {
    let ranges: [KeyRange] = [
      .all,  // all keys
      .prefix("user:"),  // keys with this prefix
      "a"..<"b",  // from "a" up to, but not including, "b"
      "a"..."b",  // including "b"
      "a"...,  // from "a" on
      ..<"b",  // up to, but not including, "b"
      .prefix(components: "txn", account),
    ]
    let keys: [StoreKey] = [
      "A", "a", "az", "b", "b0", "user:1", StoreKey(components: "txn", account), StoreKey(components: "txn", "else"),
    ]
    // The keys in each of the ranges.
    #expect(
      ranges.map { range in keys.indices.filter { range.contains(keys[$0]) } }
        == [Array(0...7), [5], [1, 2], [1, 2, 3], [1, 2, 3, 4, 5], [0, 1, 2, 6, 7], [6]])
  }

  @Test func aWalk() async throws {
    let store = MemoryStore<Int>()
    try store.apply([.set("2025-12-31", 1), .set("2026-01-01", 2), .set("2026-01-31", 3), .set("2026-02-01", 4)])
    var latestFirst: [Int] = []
    for try await entry in store.entries(in: "2026-01"..<"2026-02", order: .descending) {
      latestFirst.append(entry.value)
    }
    #expect(latestFirst == [3, 2])
  }

  @Test func theGuideShowsThisCode() throws {
    let guide = try Guide("Modules/Larder/Larder.docc/Keys.md")
    #expect(guide.pieces.count == 4)
    #expect(try guide.piecesMissing() == [])
  }
}
