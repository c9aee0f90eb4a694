#if HTTPCache
import Foundation
import HTTPCachingRules
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// The capacity, the order of use, and the sweep.
@Suite struct StorageRoomTests {
  private let clock = ManualClock()
  private let store = ProbedStore()

  /// - Parameter lasting: The number of bytes of responses that there is room for.
  private func open(_ lasting: Int, largestBody: Int = 12_000) async throws -> ResponseStorage<ProbedStore> {
    let share = max(lasting / 4 + 1, largestBody)
    let layout = try ResponseStorage(unopened: store, options: smallOptions(clock)).layout
    let capacity = lasting + layout.footprint(ofUnfinished: share)
    let storage = try await ResponseStorage(
      store, options: smallOptions(clock, capacity: capacity, largestBody: largestBody))
    #expect(abs(storage.lastingCapacity - lasting) < 200)
    return storage
  }

  /// The URLs that are stored, of `a`, `b` and so on.
  private func stored(_ storage: ResponseStorage<ProbedStore>) async throws -> String {
    var found = ""
    for letter in "abcdefghij" {
      if try await !storage.entries(url: "https://\(letter)/", partition: []).isEmpty { found.append(letter) }
    }
    return found
  }

  private func fetch(_ letters: String, _ storage: ResponseStorage<ProbedStore>, length: Int = 10_000) async throws {
    for letter in letters {
      clock.advance(by: .milliseconds(1))
      try await storage.fetch("https://\(letter)/", version: clock.date.microsecondsSince1970, length: length)
    }
  }

  private func use(_ letter: Character, _ storage: ResponseStorage<ProbedStore>) async throws {
    storage.noteUse(of: try #require(try await storage.entries(url: "https://\(letter)/", partition: []).first))
    await storage.settleUses()
  }

  @Test func `the one that was not used for longest goes`() async throws {
    let storage = try await open(53_000)
    try await fetch("abcde", storage)
    #expect(try await stored(storage) == "abcde")
    // A use within the interval counts in this process, although it is not persisted.
    let updates = store.updateCount
    try await use("a", storage)
    #expect(store.updateCount == updates)
    try await fetch("f", storage)
    #expect(try await stored(storage) == "acdef")
    #expect(storage.counters.evictions == 1 && storage.counters.evictedBytes == 10_000)
    try await storage.expectConsistent()
    // Another process knows the persisted order.
    clock.advance(by: .seconds(601))
    try await use("c", storage)
    let other = try await open(53_000)
    try await fetch("g", other)
    #expect(try await stored(other) == "acefg")
    try await fetch("h", other)
    #expect(try await stored(other) == "acfgh")
    #expect(try await other.totals(for: .verify).lasting <= 53_000)
    try await other.expectConsistent()
  }

  @Test func `a smaller capacity evicts when it is opened`() async throws {
    try await fetch("abcde", try await open(100_000))
    let storage = try await open(25_000)
    #expect(try await stored(storage) == "de")
    #expect(try await storage.totals(for: .verify).lasting <= 25_000)
    try await storage.expectConsistent()
  }

  @Test func `a large body is not stored and evicts nothing`() async throws {
    let storage = try await open(53_000, largestBody: 10_000)
    try await fetch("abcde", storage)
    let updates = store.updateCount
    #expect(throws: StorageRefusal.tooLarge) { try storage.makeWriter(expectedLength: 10_001) }
    await #expect(throws: StorageRefusal.tooLarge) { try await fetch("f", storage, length: 10_001) }
    #expect(store.updateCount == updates)
    #expect(try await stored(storage) == "abcde")
    #expect(StorageOptions(capacity: 1000).largestBody == 50)
  }

  @Test func `what is read here is not evicted`() async throws {
    let storage = try await open(53_000)
    try await fetch("abcde", storage)
    var readers: [BodyReader<ProbedStore>] = []
    for letter in "abcd" {
      let entry = try #require(try await storage.entries(url: "https://\(letter)/", partition: []).first)
      readers.append(try #require(try await storage.reader(of: entry)))
    }
    try await fetch("f", storage)
    #expect(try await stored(storage) == "abcdf")
    await #expect(throws: StorageRefusal.noRoom) { try await fetch("g", storage, length: 12_000) }
    #expect(try await storage.totals(for: .verify).lasting <= 53_000)
    #expect(try await storage.usage().bytes <= storage.options.capacity)
    for reader in readers { #expect(try await reader.allBytes().count == 10_000) }
    readers = []
    try await fetch("g", storage, length: 12_000)
    try await storage.expectConsistent()
  }

  @Test func `retired bodies go before responses`() async throws {
    let storage = try await open(53_000)
    try await fetch("abcd", storage)
    try await fetch("d", storage)
    try await fetch("e", storage)
    #expect(try await stored(storage) == "abcde")
    #expect(storage.counters.evictions == 0)
    try await storage.expectConsistent()
  }

  // MARK: Uses

  @Test func `a million hits cause one write in ten minutes`() async throws {
    let storage = try await open(1_000_000)
    let entry = try await storage.fetch(version: 1, length: 10)
    let before = store.updateCount
    for _ in 0..<10 {
      for _ in 0..<100_000 { storage.noteUse(of: entry) }
      clock.advance(by: .seconds(60))
    }
    await storage.settleUses()
    #expect(store.updateCount == before)
    storage.noteUse(of: entry)
    await storage.settleUses()
    #expect(store.updateCount == before + 1)
    // Each reader has the record as it was when it read it.
    for _ in 0..<1000 { storage.noteUse(of: entry) }
    await storage.settleUses()
    #expect(store.updateCount == before + 1)
    // Another process that starts anew does not write either.
    let other = try await open(1_000_000)
    let read = try #require(try await other.entries(url: "https://a.example/", partition: []).first)
    for _ in 0..<1000 { other.noteUse(of: read) }
    await other.settleUses()
    #expect(store.updateCount == before + 1)
    try await storage.expectConsistent()
  }

  @Test func `a use that cannot be persisted is counted`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let storage = try await ResponseStorage(base, options: smallOptions(clock))
    let entry = try await storage.fetch(version: 1, length: 10)
    clock.advance(by: .seconds(601))
    base.schedule(.error(.ioFailed), on: .update)
    for _ in 0..<100 { storage.noteUse(of: entry) }
    await storage.settleUses()
    #expect(storage.counters.failedUses == 1)
    clock.advance(by: .seconds(601))
    storage.noteUse(of: entry)
    await storage.settleUses()
    #expect(storage.counters.failedUses == 1)
    let read = try await storage.entries(url: "https://a.example/", partition: [])
    #expect(read.first?.used == clock.date.microsecondsSince1970)
  }

  // MARK: Marks

  @Test func `a body that nobody finishes is swept`() async throws {
    let storage = try await open(10_000_000, largestBody: 3_000_000)
    var writer: BodyWriter<ProbedStore>? = try storage.makeWriter()
    try await writer?.append(TestBody.bytes(1, length: 2_000_000))
    let written = try #require(writer?.storedCount)
    #expect(written == 30 * 65_408)
    #expect(try await writer?.bytes(from: 1_000_000, upTo: 1_000_001).count == 1)
    try await storage.expectConsistent()
    // A sweep of its own storage renews the mark, so that no other one takes the body for abandoned.
    let other = try await open(10_000_000, largestBody: 3_000_000)
    for _ in 0..<10 {
      clock.advance(by: .seconds(30))
      try await storage.sweep()
      try await other.sweep()
    }
    #expect(try await other.usage().bytes > written)
    try await writer?.append(TestBody.bytes(2, length: 70_000))
    #expect(try #require(writer?.storedCount) > written)
    clock.advance(by: .seconds(61))
    // Opening sweeps as well. The body stays for another minute, as a retired one.
    let third = try await open(10_000_000, largestBody: 3_000_000)
    await #expect(throws: StorageRefusal.superseded) { try await writer?.append(TestBody.bytes(2, length: 70_000)) }
    try await third.expectConsistent()
    clock.advance(by: .seconds(61))
    try await third.sweep()
    try await third.expectConsistent(isSwept: true)
    #expect(try await third.usage().bytes == 0)
    writer = nil
  }

  @Test func `a mark that cannot be retired does not keep others from it`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let options = smallOptions(clock, capacity: 100_000_000, largestBody: 3_000_000)
    var storage = try await ResponseStorage(base, options: options)
    for _ in 0..<3 { try await storage.makeWriter().append(TestBody.bytes(1, length: 1_500_000)) }
    clock.advance(by: .seconds(61))
    storage = try ResponseStorage(unopened: base, options: options)
    base.schedule(.error(.ioFailed), on: .update)
    await expectStoreError(.ioFailed) { [storage] in try await storage.sweep() }
    #expect(try await base.count(in: storage.layout.marks) == 1)
    #expect(try await base.count(in: storage.layout.retired) == 2)
    try await storage.sweep()
    #expect(try await base.count(in: storage.layout.marks) == 0)
    try await storage.expectConsistent()
  }

  @Test func `an abandoned body is retired at once`() async throws {
    let storage = try await open(10_000_000, largestBody: 3_000_000)
    var writer: BodyWriter<ProbedStore>? = try storage.makeWriter()
    try await writer?.append(TestBody.bytes(1, length: 2_000_000))
    try await writer?.abandon()
    clock.advance(by: .seconds(61))
    try await storage.sweep()
    // An owner of the writer can still read.
    #expect(try await writer?.bytes(from: 0, upTo: 1).count == 1)
    writer = nil
    try await storage.sweep()
    try await storage.expectConsistent(isSwept: true)
    // A writer that is forgotten is swept without waiting for the timeout.
    writer = try storage.makeWriter()
    try await writer?.append(TestBody.bytes(1, length: 2_000_000))
    writer = nil
    try await storage.sweep()
    clock.advance(by: .seconds(61))
    try await storage.sweep()
    try await storage.expectConsistent(isSwept: true)
    #expect(try await storage.usage().bytes == 0)
  }

  @Test func `a sweep reads only marks and retired bodies`() async throws {
    let base = MemoryStore<[UInt8]>().faulty()
    let storage = try await ResponseStorage(base, options: smallOptions(clock))
    for number in 0..<50 { try await storage.fetch("https://a/\(number)", version: 1, length: 10) }
    let before = base.operationCount
    try await storage.sweep()
    #expect(base.operationCount - before == 2)
  }
}
#endif
