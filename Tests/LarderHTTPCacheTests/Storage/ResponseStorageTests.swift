#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Storing, reading, replacing and removing responses.
@Suite struct ResponseStorageTests {
  private let clock = ManualClock()
  private let store = ProbedStore()
  private let url = "https://a.example/"

  private func open(_ capacity: Int = 100_000_000) async throws -> ResponseStorage<ProbedStore> {
    try await ResponseStorage(store, options: smallOptions(clock, capacity: capacity))
  }

  @Test(arguments: [0, 1, 65_407, 65_408, 65_409, 1_046_527, 1_046_528, 1_046_529, 3_000_000])
  func `bodies round trip`(_ length: Int) async throws {
    let storage = try await open()
    let stored = try await storage.fetch(version: 1, length: length)
    let found = try await storage.entries(url: url, partition: [])
    #expect(found == [stored])
    #expect(TestBody.isWhole(try #require(try await storage.body(of: stored)), 1, length: Int64(length)))
    try await storage.expectConsistent(isSwept: true)
    #expect(try await storage.usage().responses == 1)
    // Fewer than 16 full chunks and their record are one update. Otherwise there is one for each batch.
    let updates = store.updateCount
    if length < 16 * StorageLayout.chunkLength { #expect(updates == 1) } else { #expect(updates >= 2) }
  }

  @Test func `a range is read chunk by chunk`() async throws {
    let storage = try await open()
    let stored = try await storage.fetch(version: 7, length: 300_000)
    let whole = TestBody.bytes(7, length: 300_000)
    let reader = try #require(try await storage.reader(of: stored))
    for range in [0..<1, 65_000..<66_000, 100_000..<299_999, 299_999..<300_000, 65_408..<130_816] {
      var bytes: [UInt8] = []
      while bytes.count < range.count {
        bytes += try await reader.bytes(from: Int64(range.lowerBound + bytes.count), upTo: Int64(range.upperBound))
      }
      #expect(bytes == Array(whole[range]))
    }
    await expectStoreError(.corrupted) { try await reader.bytes(from: 300_000, upTo: 300_001) }
  }

  @Test func `urls and partitions are apart`() async throws {
    let storage = try await open()
    let long = "https://a.example/" + String(repeating: "ä/", count: 500)
    let urls = [url, url + "?", url + "\u{1}", "https://A.example/", long, long + "1"]
    for (number, url) in urls.enumerated() { try await storage.fetch(url, version: Int64(number), length: 10) }
    for (number, url) in urls.enumerated() {
      #expect(try await storage.entries(url: url, partition: []).map(\.response.version) == [Int64(number)])
      #expect(try await storage.entries(url: url, partition: [1]).isEmpty)
    }
    // A response under the key of another URL is not found for it.
    let entry = try #require(try await storage.entries(url: url, partition: []).first)
    let other = storage.layout.responseKey(url: "https://b.example/", partition: [], identifier: 1)
    try await store.apply([.set(other, try #require(try await store.value(forKey: entry.key)))])
    #expect(try await storage.entries(url: "https://b.example/", partition: []).isEmpty)
  }

  // MARK: Replacing

  @Test func `a new response replaces the one for the same requests`() async throws {
    let storage = try await open()
    try await storage.fetch(version: 1, length: 10, variant: "de")
    try await storage.fetch(version: 2, length: 10, variant: "en")
    try await storage.fetch(version: 3, length: 10, variant: "de")
    #expect(try await storage.entries(url: url, partition: []).map(\.response.version) == [3, 2])
    // An older one, which came late, would otherwise remain when the newer one is evicted.
    await #expect(throws: StorageRefusal.superseded) {
      try await storage.fetch(version: 1, length: 10, variant: "en")
    }
    #expect(try await storage.entries(url: url, partition: []).map(\.response.version) == [3, 2])
    // A response from the future is that of a clock that was wrong.
    let future = clock.date.addingTimeInterval(1000).microsecondsSince1970
    try await storage.fetch(version: future, length: 10, variant: "en")
    try await storage.fetch(version: 4, length: 10, variant: "en")
    #expect(try await storage.entries(url: url, partition: []).map(\.response.version) == [4, 3])
    try await storage.expectConsistent()
  }

  /// The comparison is part of the commit, so two processes do not both store a response for the same requests.
  @Test func `a newer response during the commit is not missed`() async throws {
    let base = store.base.faulty()
    let storage = try await ResponseStorage(base, options: smallOptions(clock))
    let other = try await open(1_000_000)
    base.schedule(.suspension(), on: .update)
    let fetch = Task { try await storage.fetch(version: 1, length: 10) }
    try await base.waitForSuspended(1, of: .update)
    let newer = try await other.fetch(version: 2, length: 10)
    base.resume()
    await #expect(throws: StorageRefusal.superseded) { _ = try await fetch.value }
    #expect(try await other.entries(url: url, partition: []) == [newer])
    try await other.expectConsistent()
  }

  @Test func `the oldest of too many variants goes`() async throws {
    var options = smallOptions(clock, capacity: 100_000_000)
    options.maximumVariants = 5
    let storage = try await ResponseStorage(store, options: options)
    for version in 1...20 {
      try await storage.fetch(version: Int64(version), length: 10, variant: "\(version)")
      let versions = try await storage.entries(url: url, partition: []).map(\.response.version)
      #expect(versions == (max(1, Int64(version) - 4)...Int64(version)).reversed())
    }
    try await storage.expectConsistent()
  }

  @Test func `a reader of a replaced body finishes`() async throws {
    let storage = try await open()
    let old = try await storage.fetch(version: 1, length: 200_000)
    var reader = try await storage.reader(of: old)
    var bytes = try await reader?.bytes(from: 0, upTo: 200_000) ?? []
    try await storage.fetch(version: 2, length: 100)
    clock.advance(by: .seconds(3600))
    try await storage.sweep()
    while bytes.count < 200_000 {
      bytes += try #require(try await reader?.bytes(from: Int64(bytes.count), upTo: 200_000))
    }
    #expect(TestBody.isWhole(Array(bytes), 1, length: 200_000))
    #expect(try await storage.reader(of: old) == nil)
    try await storage.expectConsistent()
    #expect(try await storage.usage().bytes > 200_000)
    reader = nil
    try await storage.sweep()
    try await storage.expectConsistent(isSwept: true)
    #expect(try await storage.usage().bytes < 10_000)
  }

  /// Two storages over one store are as two processes.
  @Test func `a reader elsewhere has a minute`() async throws {
    let (storage, other) = (try await open(), try await open())
    let old = try await storage.fetch(version: 1, length: 200_000)
    let reader = try #require(try await storage.reader(of: old))
    try await other.fetch(version: 2, length: 100)
    clock.advance(by: .seconds(59))
    try await other.sweep()
    #expect(TestBody.isWhole(try await reader.allBytes(), 1, length: 200_000))
    clock.advance(by: .seconds(2))
    try await other.sweep()
    await expectStoreError(.corrupted) { try await reader.allBytes() }
    try await other.expectConsistent(isSwept: true)
  }

  // MARK: Parts

  @Test func `parts are combined and their bodies kept`() async throws {
    let storage = try await open()
    func store(_ range: Range<Int64>, _ old: StoredEntry?, keeping kept: Range<Int64>? = nil) async throws
      -> StoredEntry
    {
      let token = try await storage.beginFetch()
      let writer = try storage.makeWriter(expectedLength: Int64(range.count))
      let whole = TestBody.bytes(5, length: 400_000)
      try await writer.append(whole[Int(range.lowerBound)..<Int(range.upperBound)])
      var response = StoredResponse.sample(version: 5)
      response.length = 400_000
      let parts = (old?.parts ?? []).map { part in
        StoredPart(range: part.range.clamped(to: kept ?? part.range), body: part.body, bodyStart: part.bodyStart)
      }
      let all = (parts + [StoredPart(range: range, body: writer.body, bodyStart: range.lowerBound)])
        .sorted { $0.range.lowerBound < $1.range.lowerBound }
      return try await storage.store(
        response, parts: all, body: writer, replacing: old.map { [$0] } ?? [], token: token)
    }
    let first = try await store(100_000..<200_000, nil)
    let second = try await store(300_000..<400_000, first)
    #expect(second.bodies.count == 2)
    let third = try await store(150_000..<300_000, second, keeping: 0..<150_000)
    // The part that was cut away entirely has no body anymore.
    #expect(third.bodies.count == 2)
    try await storage.expectConsistent()
    let reader = try #require(try await storage.reader(of: third))
    #expect(try await reader.bytes(from: 149_990, upTo: 300_000).count == 10)
    await expectStoreError(.corrupted) { try await reader.bytes(from: 0, upTo: 1) }
    // A response that builds on one that is gone is not stored.
    await #expect(throws: StorageRefusal.superseded) { try await store(0..<100_000, first) }
    try await storage.expectConsistent()
  }

  // MARK: Heads

  @Test func `a head is replaced and the body kept`() async throws {
    let storage = try await open()
    let stored = try await storage.fetch(version: 1, length: 1000)
    var head = stored.response
    head.fields[.age] = "7"
    head.responseTime = Date(microsecondsSince1970: 20)
    let token = try await storage.beginFetch()
    let fresh = try #require(try await storage.freshen(stored, by: head, token: token))
    #expect(fresh.response == head)
    #expect(try await storage.entries(url: url, partition: []) == [fresh])
    #expect(TestBody.isWhole(try #require(try await storage.body(of: stored)), 1, length: 1000))
    // A head that came later, but is older, changes nothing.
    head.responseTime = Date(microsecondsSince1970: 10)
    #expect(try await storage.freshen(stored, by: head, token: token) == fresh)
    try await storage.expectConsistent()
    try await storage.fetch("https://b.example/", version: 1, length: 1000)
    try await storage.remove([stored, stored])
    try await storage.expectConsistent()
    #expect(try await storage.freshen(stored, by: head, token: token) == nil)
    try await storage.remove([stored])
    #expect(try await storage.entries(url: url, partition: []).isEmpty)
    try await storage.expectConsistent()
  }

  // MARK: Opening

  @Test func `settings are checked`() async throws {
    for change: (inout StorageOptions) -> Void in [
      { $0.capacity = 0 }, { $0.largestBody = -1 }, { $0.maximumVariants = 0 },
      { $0.prefix = StoreKey(String(repeating: "a", count: 440)) },
    ] {
      var options = smallOptions(clock)
      change(&options)
      await expectStoreError(.invalidArgument) { [options] in try await ResponseStorage(store, options: options) }
    }
  }

  @Test func `another format or program is refused`() async throws {
    let storage = try await open()
    try await storage.fetch(version: 1, length: 10)
    let totals = try #require(try await store.value(forKey: "http/t"))
    for (value, code): ([UInt8]?, StoreError.Code) in [
      ([4], .versionMismatch), ([1], .versionMismatch), ([], .corrupted), ([0], .corrupted), ([3], .corrupted),
      (totals + [0], .corrupted), (nil, .corrupted), ([3] + [UInt8](repeating: 255, count: 48), .corrupted),
    ] {
      try await store.apply([value.map { .set("http/t", $0) } ?? .remove("http/t")])
      await expectStoreError(code) { try await open() }
    }
    try await store.removeAll(in: .prefix("http/"))
    _ = try await open().fetch(version: 1, length: 10)
  }

  /// The format is that of the article "The format of HTTP caches".
  @Test func `the format is the published one`() async throws {
    var options = smallOptions(clock, capacity: 10_000_000)
    options.processes = TestProcesses().start(5, at: 6)
    let storage = try await ResponseStorage(store, options: options)
    let token = try await storage.beginFetch()
    let writer = try storage.makeWriter()
    try await writer.append([7, 8, 9])
    var fields = HTTPFields()
    fields[.age] = "1"
    let response = StoredResponse(
      url: "http://a/", partition: [], status: 200, fields: fields,
      selecting: SelectingFields(sets: [[.init(name: "te", value: [5])]]), requestTime: Date(microsecondsSince1970: 1),
      responseTime: Date(microsecondsSince1970: 2), length: 3,
      userData: [6])
    let parts = [StoredPart(range: 0..<3, body: writer.body, bodyStart: 0)]
    let entry = try await storage.store(response, parts: parts, body: writer, token: token)
    try await storage.invalidate(prefix: "ab")
    let unfinished = try storage.makeWriter(expectedLength: 2_000_000)
    let batch = [UInt8](repeating: 1, count: 16 * StorageLayout.chunkLength)
    try await unfinished.append(batch)
    let renewed = UInt64(clock.date.microsecondsSince1970).bigEndianBytes
    let identifier = entry.key.bytes.suffix(8)
    let used = UInt64(entry.used).bigEndianBytes
    func number(_ value: UInt8, bytes count: Int = 8) -> [UInt8] { [UInt8](repeating: 0, count: count - 1) + [value] }
    let key = Array("r".utf8) + Array("http://a/".utf8) + number(0, bytes: 9) + identifier
    let body = writer.body.bytes
    var record: [UInt8] = [1] + number(1) + used + [0, 200] + number(1) + number(2) + number(3)
    record += number(9, bytes: 4) + Array("http://a/".utf8) + number(0, bytes: 4)
    record += [0, 1, 0, 1] + number(2, bytes: 4) + Array("te".utf8) + [1] + number(1, bytes: 4) + [5]
    record += [0, 1] + number(3, bytes: 4) + Array("Age".utf8) + number(1, bytes: 4) + Array("1".utf8)
    record += [0, 1] + body + number(3)
    record += [0, 1] + body + number(0) + number(0) + number(3)
    record += number(1, bytes: 4) + [6]
    let use: [UInt8] = number(UInt8(record.count), bytes: 4) + [0, 1] + body + number(3) + key
    let invalidation: [UInt8] = [2] + Array("ab".utf8)
    let prefix = Array("http/".utf8)
    let mark: [UInt8] =
      storage.owner.bigEndianBytes + [UInt8](repeating: 1, count: 16) + number(5, bytes: 4) + number(6) + renewed
      + UInt64(batch.count).bigEndianBytes + UInt64(2_000_000).bigEndianBytes
    var expected: [[UInt8]: [UInt8]] = [
      prefix + key: record, prefix + [111] + number(1) + identifier: use,
      prefix + [98] + body + number(0): [7, 8, 9], prefix + [105] + number(1): invalidation,
      prefix + [109] + unfinished.body.bytes: mark,
    ]
    for offset in stride(from: 0, to: batch.count, by: 65_408) {
      let key = prefix + [98] + unfinished.body.bytes + UInt64(offset).bigEndianBytes
      expected[key] = Array(batch.prefix(65_408))
    }
    let bytes = expected.reduce(0) { $0 + $1.key.count + $1.value.count }
    let transient = expected.filter { $0.key.starts(with: prefix + [109]) || $0.value.count == 65_408 }
      .reduce(0) { $0 + $1.key.count + $1.value.count }
    var totals: [UInt8] = [3] + UInt64(bytes).bigEndianBytes
    totals += number(1) + number(1) + number(1) + UInt64(2_000_000).bigEndianBytes + UInt64(transient).bigEndianBytes
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    let stored = Dictionary(uniqueKeysWithValues: entries.map { ($0.key.bytes, $0.value) })
    // Not the dictionaries, whose descriptions are long.
    for (key, value) in expected.merging([prefix + [116]: totals], uniquingKeysWith: { $1 }) {
      let isEqual = stored[key] == value
      #expect(isEqual, "\(StoreKey(bytes: key))")
    }
    #expect(stored.count == expected.count + 1)
  }
}
#endif
