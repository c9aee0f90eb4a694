import Foundation
import Larder
import LarderExpiry
import LarderJSON
import LarderTesting
import TestSupport
import Testing

@Suite struct ReopeningTests {
  private let folder: TemporaryFolder
  private let clock = ManualClock()

  init() throws {
    folder = try TemporaryFolder()
  }

  private func open(
    _ timeToLive: TimeToLive = .never
  ) async throws -> ExpiringStore<JSONFileStore<Expiring<String>>, String> {
    let clock = clock
    return try await JSONFileStore(path: folder.path("store.json"), codec: .json(String.self).expiring())
      .expiring(timeToLive) { clock.date }
  }

  @Test func `deadlines survive reopening`() async throws {
    let first = try await open()
    try await first.setValue("a", forKey: "after", timeToLive: .after(.seconds(10)))
    try await first.setValue("s", forKey: "sliding", timeToLive: .sliding(.seconds(10)))
    try await first.setValue("n", forKey: "never")
    try await first.close()
    clock.advance(by: .seconds(9))
    // The options of the second opening affect new entries only.
    let second = try await open(.after(.seconds(1)))
    #expect(try await second.values(forKeys: ["after", "sliding", "never"]) == ["a", "s", "n"])
    #expect(try await second.remainingTime(forKey: "after") == .after(.seconds(1)))
    #expect(try await second.remainingTime(forKey: "sliding") == .after(.seconds(10)))
    #expect(try await second.remainingTime(forKey: "never") == .never)
    try await second.close()
    clock.advance(by: .seconds(9))
    let third = try await open()
    #expect(try await third.keys(in: .all, limit: 10) == ["never", "sliding"])
    try await third.close()
  }

  @Test func `the document is readable`() async throws {
    let store = try await open()
    try await store.setValue("Ada", forKey: "1", timeToLive: .after(.seconds(10)))
    try await store.setValue("Bob", forKey: "2")
    try await store.close()
    let text = try String(contentsOfFile: folder.path("store.json"), encoding: .utf8)
    #expect(text.contains(#""codec":"json+expiring""#))
    #expect(text.contains(#"{"expires":1767225610000000,"value":"Ada"}"#))
    #expect(text.contains(#"{"value":"Bob"}"#))
  }

  @Test func `a store of plain values is not mistaken for an expiring one`() async throws {
    let plain = try await JSONFileStore<String>(path: folder.path("store.json"))
    try await plain.setValue("a", forKey: "k")
    try await plain.close()
    await expectStoreError(.versionMismatch) { try await open() }
  }

  @Test func `statistics distinguish live and expired entries`() async throws {
    let store = try await open()
    for number in 0..<300 {
      try await store.setValue(
        "a", forKey: StoreKey(integer: number),
        timeToLive: number.isMultiple(of: 3) ? .never : .after(.seconds(1)))
    }
    clock.advance(by: .seconds(1))
    let statistics = try await store.storeStatistics()
    #expect(statistics.entryCount == 100)
    #expect(statistics.details.first == StoreStatistics.Detail(name: "expiredEntries", value: 200))
    #expect(statistics.bytesOnDisk != nil)
    #expect(statistics.details.count > 1)
    #expect(try await store.verify() == VerificationReport(entryCount: 300))
    try await store.compact()
    try await store.backup(to: folder.path("copy.json"))
    let copy = try await JSONFileStore(path: folder.path("copy.json"), codec: .json(String.self).expiring())
    #expect(try await copy.count() == 300)
    try await copy.close()
    try await store.close()
    await expectStoreError(.closed) { try await store.storeStatistics() }
  }

  @Test func `statistics count undecodable entries as live`() async throws {
    let store = try await open()
    for number in 0..<10 { try await store.setValue("a", forKey: "\(number)", timeToLive: .after(.seconds(1))) }
    try await store.close()
    let path = folder.path("store.json")
    let text = try String(contentsOfFile: path, encoding: .utf8)
    let damaged = text.replacing(#""4":{"expires":"#, with: #""4":{"expired":"#)
    try #require(damaged != text)
    try damaged.write(toFile: path, atomically: true, encoding: .utf8)
    clock.advance(by: .seconds(1))
    let reopened = try await open()
    let statistics = try await reopened.storeStatistics()
    #expect(statistics.entryCount == 1)
    #expect(statistics.details.first?.value == 9)
    try await reopened.close()
  }
}
