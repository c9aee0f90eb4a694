#if HTTPCache
import Foundation
import HTTPCachingRules
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Entries that are missing, damaged, or written by another program.
@Suite struct StorageDamageTests {
  /// The ways in which a value can be damaged.
  enum Damage: CaseIterable {
    case unreadable, empty, foreign, missing
  }

  private let clock = ManualClock()
  private let store = ProbedStore()

  private func open() async throws -> ResponseStorage<ProbedStore> {
    try await ResponseStorage(store, options: smallOptions(clock, capacity: 500_000))
  }

  private func damage(_ prefix: StoreKey, _ damage: Damage) async throws {
    for key in try await store.keys(in: .prefix(prefix), limit: .max, order: .ascending) {
      switch damage {
      case .unreadable: store.damage([key])
      case .empty: try await store.apply([.set(key, [])])
      case .foreign: try await store.apply([.set(key, [UInt8](repeating: 77, count: 100))])
      case .missing: try await store.apply([.remove(key)])
      }
    }
  }

  /// Fills the cache twice over, after which nothing damaged must be left.
  private func fill(_ storage: ResponseStorage<ProbedStore>) async throws {
    for number in 0..<30 {
      clock.advance(by: .seconds(10))
      try await storage.fetch("https://new/\(number)", version: clock.date.microsecondsSince1970, length: 40_000)
    }
  }

  @Test(arguments: Damage.allCases) func `a damaged chunk throws`(_ damage: Damage) async throws {
    let storage = try await open()
    let entry = try await storage.fetch(version: 1, length: 200_000)
    let reader = try #require(try await storage.reader(of: entry))
    try await self.damage("http/b", damage)
    await expectStoreError(.corrupted) { try await reader.bytes(from: 0, upTo: 10) }
    await expectStoreError(.corrupted) { try await reader.bytes(from: 199_999, upTo: 200_000) }
    // The change of another program is not counted, but the count of the body ends with it.
    try await storage.remove([entry])
    clock.advance(by: .seconds(61))
    try await fill(storage)
    try await storage.sweep()
    #expect(try await storage.usage().bytes <= 500_000)
  }

  @Test(arguments: Damage.allCases) func `damaged chunks leave no trace`(_ damage: Damage) async throws {
    let storage = try await open()
    try await storage.remove([try await storage.fetch(version: 1, length: 200_000)])
    try await self.damage("http/b", damage)
    clock.advance(by: .seconds(61))
    try await storage.sweep()
    try await storage.expectConsistent(isSwept: true)
    #expect(try await storage.usage() == StorageUsage(bytes: 0, responses: 0))
  }

  @Test(arguments: [Damage.unreadable, .empty, .foreign]) func `a damaged response is a miss`(_ damage: Damage)
    async throws
  {
    let storage = try await open()
    let entry = try await storage.fetch(version: 1, length: 200_000)
    try await storage.fetch("https://other/", version: 1, length: 10)
    try await self.damage("http/rhttps://a", damage)
    #expect(try await storage.entries(url: "https://a.example/", partition: []).isEmpty)
    #expect(storage.counters.damagedResponses == 1)
    #expect(try await storage.entries(url: "https://other/", partition: []).count == 1)
    // Every operation does without it.
    #expect(try await storage.freshen(entry, by: entry.response, token: try await storage.beginFetch()) == nil)
    try await storage.remove([entry])
    clock.advance(by: .seconds(601))
    storage.noteUse(of: entry)
    await storage.settleUses()
    #expect(storage.counters.failedUses == 0)
    try await storage.invalidate(url: "https://a.example/")
    try await storage.fetch(version: 2, length: 10, replacing: [entry])
    #expect(try await storage.entries(url: "https://a.example/", partition: []).count == 1)
    // It is evicted when its turn comes, with its body.
    try await fill(storage)
    try await storage.expectConsistent()
  }

  @Test(arguments: [Damage.unreadable, .empty, .foreign]) func `damaged responses are removed with the rest`(
    _ damage: Damage
  ) async throws {
    let storage = try await open()
    for number in 0..<3 { try await storage.fetch("https://\(number)/", version: 1, length: 100_000) }
    try await self.damage("http/r", damage)
    try await storage.removeAll()
    clock.advance(by: .seconds(61))
    try await storage.sweep()
    try await storage.expectConsistent(isSwept: true)
    #expect(try await storage.usage().responses == 0)
  }

  @Test(arguments: [Damage.unreadable, .empty, .foreign]) func `damaged marks and retired bodies are swept`(
    _ damage: Damage
  ) async throws {
    var options = smallOptions(clock, capacity: 5_000_000)
    options.markTimeout = .seconds(10)
    let storage = try await ResponseStorage(store, options: options)
    var writer: BodyWriter<ProbedStore>? = try storage.makeWriter()
    try await writer?.append(TestBody.bytes(1, length: 1_500_000))
    writer = nil
    try await self.damage("http/m", damage)
    try await storage.sweep()
    #expect(try store.base.count(in: .prefix("http/m")) == 0)
    try await self.damage("http/x", damage)
    clock.advance(by: .seconds(61))
    try await storage.sweep()
    #expect(try store.base.count(in: .prefix("http/b")) == 0)
    #expect(try store.base.count(in: .prefix("http/x")) == 0)
    try await storage.fetch(version: 1, length: 10)
    #expect(try await storage.usage().bytes < 10_000)
  }

  @Test(arguments: [Damage.unreadable, .empty, .foreign]) func `a damaged mark reserves nothing`(
    _ damage: Damage
  ) async throws {
    let storage = try await ResponseStorage(store, options: smallOptions(clock, capacity: 5_000_000))
    var lost: BodyWriter<ProbedStore>? = try storage.makeWriter(expectedLength: 2_000_000)
    try await lost?.append(TestBody.bytes(1, length: 1_500_000))
    lost = nil
    try await self.damage("http/m", damage)
    let writer = try storage.makeWriter(expectedLength: 1_800_000)
    try await writer.append(TestBody.bytes(1, length: 1_500_000))
    try await storage.sweep()
    #expect(try await storage.totals(for: .verify).unfinished == 1_800_000)
    try await writer.abandon()
    #expect(try await storage.totals(for: .verify).unfinished == 0)
  }

  @Test(arguments: [Damage.unreadable, .empty, .foreign]) func `a damaged place is restored by a use`(
    _ damage: Damage
  ) async throws {
    let storage = try await open()
    let entry = try await storage.fetch(version: 1, length: 40_000)
    try await self.damage("http/o", damage)
    try await fill(storage)
    #expect(try await storage.entries(url: "https://a.example/", partition: []) == [entry])
    clock.advance(by: .seconds(601))
    storage.noteUse(of: entry)
    await storage.settleUses()
    try await fill(storage)
    #expect(try await storage.entries(url: "https://a.example/", partition: []).isEmpty)
    let findings = try await storage.findings(isSwept: false)
    #expect(findings.allSatisfy { $0.contains("bytes counted") }, "\(findings)")
  }

  @Test func `large numbers of other programs are harmless`() async throws {
    let storage = try await open()
    try await storage.fetch(version: 1, length: 100)
    let layout = storage.layout
    for number: UInt64 in 0..<40 {
      let body = BodyIdentifier(high: 0, low: number)
      let value = (UInt64(Int64.max) - number).bigEndianBytes
      try await store.apply([
        .set(layout.retiredKey(of: body, at: .max - Int64(number)), value),
        .set(layout.retiredKey(of: body, at: .min + Int64(number)), value),
        .set(layout.markKey(of: body), value + value + value),
        .set(layout.useKey(of: "http/r12345678", at: number), value + value + value),
      ])
    }
    for _ in 0..<2 {
      try await fill(storage)
      try await storage.sweep()
      clock.advance(by: .seconds(61))
    }
    for kind: StoreKey in ["http/m", "http/x"] { #expect(try store.base.count(in: .prefix(kind)) < 20, "\(kind)") }
    let entry = try #require(try await storage.entries(url: "https://new/29", partition: []).first)
    #expect(TestBody.isWhole(try #require(try await storage.body(of: entry)), entry.response.version, length: 40_000))
  }

  /// A store that fails at any operation of a fetch, an eviction and a sweep leaves counted what is there.
  @Test func `every operation may fail`() async throws {
    for number in 1...80 {
      for moment in [StoreFault.Moment.before, .after] {
        let memory = MemoryStore<[UInt8]>()
        let base = memory.faulty()
        let storage = try await ResponseStorage(base, options: smallOptions(clock, capacity: 4_000_000))
        base.schedule(.error(.ioFailed, moment), number: number)
        var stored: [Int64] = []
        for version in 1...4 {
          do {
            let entry = try await storage.fetch(version: Int64(version), length: 1_500_000)
            stored.append(entry.response.version)
            storage.noteUse(of: entry)
            try await storage.sweep()
          } catch StoreError.Code.ioFailed {}
        }
        base.clearFaults()
        await storage.settleUses()
        clock.advance(by: .seconds(61))
        try await storage.sweep()
        // The first sweep retires, the second one removes.
        clock.advance(by: .seconds(61))
        try await storage.sweep()
        try await storage.expectConsistent(isSwept: true, "operation \(number), \(moment)")
        for entry in try await storage.entries(url: "https://a.example/", partition: []) {
          let version = entry.response.version
          #expect(version >= stored.last ?? 0)
          #expect(TestBody.isWhole(try #require(try await storage.body(of: entry)), version, length: 1_500_000))
        }
      }
    }
  }
}
#endif
