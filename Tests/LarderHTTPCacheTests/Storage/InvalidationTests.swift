#if HTTPCache
import Foundation
import HTTPCachingRules
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Invalidations, and the responses whose requests were under way when they came.
@Suite struct InvalidationTests {
  private let clock = ManualClock()
  private let memory = MemoryStore<[UInt8]>()

  private func open() async throws -> ResponseStorage<MemoryStore<[UInt8]>> {
    try await ResponseStorage(memory, options: smallOptions(clock, capacity: 100_000_000))
  }

  private func urls(_ storage: ResponseStorage<MemoryStore<[UInt8]>>) async throws -> [String] {
    try await storage.entries(in: storage.layout.responses, limit: .max).entries.map(\.response.url)
      .sorted()
  }

  @Test func `every variant in every partition goes`() async throws {
    let storage = try await open()
    for variant in 0..<20 {
      try await storage.fetch("https://a/x", version: 1, length: 10, variant: "\(variant)")
      var response = StoredResponse.sample("https://a/x")
      response.partition = [UInt8(variant)]
      try await storage.store(response, parts: [], body: nil, token: try await storage.beginFetch())
    }
    for url in ["https://a/", "https://a/xy", "https://a/x\u{1}", "https://b/"] {
      try await storage.fetch(url, version: 1, length: 10)
    }
    try await storage.invalidate(url: "https://a/x")
    #expect(try await urls(storage) == ["https://a/", "https://a/x\u{1}", "https://a/xy", "https://b/"])
    try await storage.invalidate(prefix: "https://a/x")
    #expect(try await urls(storage) == ["https://a/", "https://b/"])
    try await storage.removeAll()
    #expect(try await urls(storage).isEmpty)
    try await storage.expectConsistent()
    clock.advance(by: .seconds(61))
    try await storage.sweep()
    try await storage.expectConsistent(isSwept: true)
  }

  @Test func `long URLs have prefixes`() async throws {
    let storage = try await open()
    let path = (0..<200).map { "https://a/" + String(repeating: "ä", count: $0 * 2) + "/\($0)" }
    for url in path { try await storage.fetch(url, version: 1, length: 1) }
    let prefix = "https://a/" + String(repeating: "ä", count: 350)
    try await storage.invalidate(prefix: prefix)
    let expected = path.filter { !$0.hasPrefix(prefix) }
    #expect(expected.count == 175)
    #expect(try await urls(storage) == expected.sorted())
  }

  @Test(arguments: ["url", "prefix", "everything"])
  func `a response that was under way is not stored`(_ kind: String) async throws {
    let (storage, other) = (try await open(), try await open())
    let stored = try await storage.fetch("https://b/", version: 1, length: 10)
    let token = try await storage.beginFetch()
    switch kind {
    case "url": try await other.invalidate(url: "https://a/x")
    case "prefix": try await other.invalidate(prefix: "https://a/")
    default: try await other.removeAll()
    }
    await #expect(throws: StorageRefusal.invalidated) {
      try await storage.fetch("https://a/x", version: 2, length: 2_000_000, token: token)
    }
    // Neither is an answer to a validation.
    var head = stored.response
    head.url = "https://a/x"
    if kind == "everything" {
      await #expect(throws: StorageRefusal.invalidated) { try await storage.freshen(stored, by: head, token: token) }
    } else {
      try await storage.fetch("https://b/", version: 3, length: 10, token: token)
    }
    try await storage.fetch("https://a/x", version: 4, length: 10)
    try await storage.expectConsistent()
  }

  /// The check is part of the commit: an invalidation between the check and the commit is not missed.
  @Test func `an invalidation during the commit is not missed`() async throws {
    let base = memory.faulty()
    let storage = try await ResponseStorage(base, options: smallOptions(clock))
    let other = try await open()
    for isMatching in [true, false] {
      base.schedule(.suspension(), on: .update)
      let fetch = Task { try await storage.fetch("https://a/", version: 1, length: 10) }
      try await base.waitForSuspended(1, of: .update)
      try await other.invalidate(url: isMatching ? "https://a/" : "https://b/")
      base.resume()
      if isMatching {
        await #expect(throws: StorageRefusal.invalidated) { try await fetch.value }
      } else {
        _ = try await fetch.value
      }
      #expect(try await urls(other).isEmpty == isMatching)
    }
    try await other.expectConsistent()
  }

  /// A response to POST invalidates its own URL, and may be stored for it nevertheless.
  @Test func `a request survives its own invalidation only`() async throws {
    let (storage, other) = (try await open(), try await open())
    try await storage.fetch("https://a/", version: 1, length: 10)
    let token = try await storage.beginFetch()
    try await other.invalidate(url: "https://b/")
    let next = try #require(try await storage.invalidate(url: "https://a/", after: token))
    #expect(try await urls(storage).isEmpty)
    try await storage.fetch("https://a/", version: 2, length: 10, token: next)
    #expect(try await urls(storage) == ["https://a/"])
    // The URL was invalidated by another request since.
    #expect(try await storage.invalidate(url: "https://a/", after: token) == nil)
    #expect(try await storage.invalidate(url: "https://a/") == nil)
    #expect(try await urls(storage).isEmpty)
    await #expect(throws: StorageRefusal.invalidated) {
      try await storage.fetch("https://a/", version: 3, length: 10, token: next)
    }
    try await storage.expectConsistent()
  }

  @Test func `a request that is older than the log is not stored`() async throws {
    let storage = try await open()
    let old = try await storage.beginFetch()
    try await storage.invalidate(url: "https://b/")
    let young = try await storage.beginFetch()
    for _ in 0..<Invalidation.logLength { try await storage.invalidate(url: "https://b/") }
    try await storage.fetch("https://a/", version: 1, length: 10, token: young)
    await #expect(throws: StorageRefusal.invalidated) {
      try await storage.fetch("https://a/", version: 2, length: 10, token: old)
    }
    // A store that was emptied in the meantime has counted less.
    await #expect(throws: StorageRefusal.invalidated) {
      try await storage.fetch("https://a/", version: 2, length: 10, token: FetchToken(invalidations: .max))
    }
    let log = KeyRange.prefix("http/i")
    #expect(try memory.count(in: log) == Int(Invalidation.logLength))
    try await storage.expectConsistent()
    // A damaged entry of the log stands for everything.
    let last = try #require(try memory.keys(in: log, limit: 1, order: .descending).first)
    let token = FetchToken(invalidations: Invalidation.logLength)
    for damage: [UInt8] in [[], [1], [4, 5]] {
      try await memory.setValue(damage, forKey: last)
      await #expect(throws: StorageRefusal.invalidated) {
        try await storage.fetch("https://a/", version: 3, length: 10, token: token)
      }
    }
  }

  @Test func `entries of the log match URLs`() {
    let url = "https://a.example/b"
    let long = String(repeating: "a", count: 2_000)
    for (invalidation, matches): (Invalidation, Bool) in [
      (Invalidation(url: url), true), (Invalidation(url: url + "c"), false), (Invalidation(prefix: "https://a"), true),
      (Invalidation(prefix: ""), true), (Invalidation(prefix: url + "c"), false), (.everything, true),
    ] {
      #expect(invalidation.matches(url) == matches)
      #expect(Invalidation(bytes: invalidation.bytes) == invalidation)
    }
    // A long prefix is cut, and then stands for more URLs.
    #expect(Invalidation(prefix: long).matches(long))
    #expect(Invalidation(prefix: long).bytes.count == 1 + Invalidation.maximumPrefixLength)
    #expect(Invalidation(prefix: long).matches(String(repeating: "a", count: 1_024)))
  }
}
#endif
