#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Bodies that show whether they are whole.
enum TestBody {
  private static let block: [UInt8] = {
    var generator = SeededGenerator(seed: 1)
    return (0..<4096).map { _ in .random(in: 0...255, using: &generator) }
  }()

  /// Returns the body of a version, every 4 KiB of which begin with the version and their number.
  static func bytes(_ version: Int64, length: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(length + block.count)
    while bytes.count < length {
      let start = bytes.count
      bytes.append(contentsOf: block)
      bytes.replaceSubrange(
        start..<(start + 16), with: UInt64(version).bigEndianBytes + UInt64(start).bigEndianBytes)
    }
    bytes.removeLast(bytes.count - length)
    return bytes
  }

  static func isWhole(_ bytes: [UInt8], _ version: Int64, length: Int64) -> Bool {
    // `memcmp`, because a debug build compares arrays slowly.
    let expected = Self.bytes(version, length: Int(length))
    guard bytes.count == expected.count else { return false }
    return bytes.withUnsafeBytes { bytes in
      expected.withUnsafeBytes { expected in
        guard let left = bytes.baseAddress, let right = expected.baseAddress else { return true }
        return memcmp(left, right, bytes.count) == 0
      }
    }
  }
}

extension StoredResponse {
  /// Returns a response without a body whose version is its time, in microseconds.
  static func sample(_ url: String = "https://a.example/", version: Int64 = 1, variant: String? = nil) -> StoredResponse
  {
    var fields = HTTPFields()
    fields[.eTag] = "\"\(version)\""
    fields[.cacheControl] = "max-age=60"
    let set = variant.map { [SelectingFields.Field(name: "accept-language", value: Array($0.utf8))] } ?? []
    return StoredResponse(
      url: url, status: 200, fields: fields, selecting: SelectingFields(sets: [set]),
      requestTime: Date(microsecondsSince1970: version), responseTime: Date(microsecondsSince1970: version), length: nil
    )
  }

  var version: Int64 { responseTime.microsecondsSince1970 }
}

extension ResponseStorage {
  /// Stores a response as a fetch does.
  @discardableResult
  func fetch(
    _ url: String = "https://a.example/", version: Int64, length: Int, variant: String? = nil,
    replacing: [StoredEntry] = [], token: FetchToken? = nil, slice: Int = 100_000
  ) async throws -> StoredEntry {
    let known = if let token { token } else { try await beginFetch() }
    let writer = try makeWriter()
    do {
      let bytes = TestBody.bytes(version, length: length)
      for start in stride(from: 0, to: length, by: slice) {
        try await writer.append(bytes[start..<min(length, start + slice)])
      }
      var response = StoredResponse.sample(url, version: version, variant: variant)
      response.length = Int64(length)
      let parts = [StoredPart(range: 0..<Int64(length), body: writer.body, bodyStart: 0)]
      return try await store(response, parts: parts, body: writer, replacing: replacing, token: known)
    } catch {
      try await writer.abandon()
      throw error
    }
  }

  /// Reads the whole body of a response, or returns `nil` if the response is gone.
  func body(of entry: StoredEntry) async throws -> [UInt8]? {
    guard let reader = try await reader(of: entry) else { return nil }
    return try await reader.allBytes()
  }

  /// Expects that the counted bytes are the stored ones, and that every entry belongs to another one.
  ///
  /// - Parameter isSwept: A Boolean value that indicates whether there must be no mark and no retired body.
  func expectConsistent(
    isSwept: Bool = false, _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let findings = try await findings(isSwept: isSwept)
    #expect(findings == [], comment, sourceLocation: sourceLocation)
  }

  /// Returns the contradictions between the entries.
  func findings(isSwept: Bool) async throws -> [String] {
    var check = StorageCheck(layout: layout)
    var rest: KeyRange? = layout.everything
    while let range = rest {
      let page = try await page(in: range, limit: 64)
      for entry in page.entries { check.add(entry) }
      rest = page.rest
    }
    return check.findings(try await totals(for: .verify), isSwept: isSwept)
  }
}

extension BodyReader {
  func allBytes() async throws -> [UInt8] {
    var bytes: [UInt8] = []
    let length = response.length ?? 0
    while bytes.count < length { bytes += try await self.bytes(from: Int64(bytes.count), upTo: length) }
    return bytes
  }
}

/// All entries of a cache, compared with each other.
private struct StorageCheck {
  let layout: StorageLayout
  var bytes = 0
  var responses: [StoreKey: StoredEntry] = [:]
  var uses: [StoreKey: UseRecord] = [:]
  var owners: [BodyIdentifier: [(name: String, footprint: Int)]] = [:]
  var chunks: [BodyIdentifier: Int] = [:]
  var transient = 0
  var found: [String] = []
  var transientCount = 0
  var reserved = 0

  mutating func add(_ entry: StoreEntry<[UInt8]>) {
    let rest = entry.key.bytes.dropFirst(layout.prefix.count)
    if entry.key != layout.totalsKey { bytes += entry.key.count + entry.value.count }
    if layout.isTransient(entry.key) { transient += entry.key.count + entry.value.count }
    switch rest.first.map({ Character(UnicodeScalar($0)) }) {
    case "t", "i": break
    case "r":
      guard let stored = StoredEntry(entry.key, entry.value) else {
        return found.append("damaged response \(entry.key)")
      }
      responses[entry.key] = stored
      for body in stored.bodies { own(body.identifier, "response", layout.footprint(ofBody: body.length)) }
    case "o": uses[entry.key] = UseRecord(entry.value, layout: layout)
    case "m":
      transientCount += 1
      guard let body = layout.body(ofMark: entry.key), let mark = BodyMark(entry.value) else {
        return found.append("damaged mark")
      }
      reserved += Int(mark.reserved)
      own(body, "mark", layout.footprint(ofBody: mark.count))
    case "x":
      transientCount += 1
      guard let retired = layout.retired(entry.key) else { return found.append("damaged retired body") }
      own(retired.body, "retired", Int(UInt64(bigEndianBytes: entry.value)))
    case "b":
      guard let body = BodyIdentifier(rest.dropFirst().prefix(16)) else { return found.append("damaged chunk key") }
      chunks[body, default: 0] += entry.key.count + entry.value.count
    default: found.append("unknown entry \(entry.key)")
    }
  }

  private mutating func own(_ body: BodyIdentifier, _ name: String, _ footprint: Int) {
    owners[body, default: []].append((name, footprint))
  }

  func findings(_ totals: StorageTotals, isSwept: Bool) -> [String] {
    var found = found
    if totals.bytes != bytes { found.append("\(totals.bytes) bytes counted, \(bytes) there") }
    if totals.responses != responses.count {
      found.append("\(totals.responses) responses counted, \(responses.count) there")
    }
    if totals.unfinished != reserved { found.append("\(totals.unfinished) bytes reserved, \(reserved) by marks") }
    let unfinished = chunks.filter { body, _ in owners[body]?.contains { $0.name != "response" } == true }
    let transient = unfinished.reduce(transient) { $0 + $1.value }
    if totals.transient != transient { found.append("\(totals.transient) transient bytes, \(transient) there") }
    if isSwept, transientCount > 0 { found.append("\(transientCount) marks and retired bodies") }
    for (key, stored) in responses {
      if uses[layout.useKey(of: key, at: stored.place)] != stored.use { found.append("a response has a wrong place") }
      if stored.place > totals.place { found.append("a place is greater than the last one") }
    }
    if uses.count != responses.count { found.append("\(uses.count) places for \(responses.count) responses") }
    for (body, size) in chunks where owners[body]?.first?.footprint != size || owners[body]?.count != 1 {
      found.append("a body with \(size) bytes of chunks has the owners \(owners[body] ?? [])")
    }
    for (body, owners) in owners where chunks[body] == nil && owners.contains(where: { $0.footprint > 0 }) {
      found.append("a body has no chunks, but the owners \(owners)")
    }
    return found
  }
}

/// A store in memory that counts updates, and cannot read some values.
final class ProbedStore: PassingStore {
  typealias Value = [UInt8]

  let base = MemoryStore<[UInt8]>()
  private let damaged = Locked<Set<StoreKey>>([])
  private let counts = Locked(0)

  /// The number of updates that have changed something.
  var updateCount: Int { counts.withLock { $0 } }

  /// Damages the values of keys, which are unreadable until something writes them.
  func damage(_ keys: some Sequence<StoreKey>) { damaged.withLock { $0.formUnion(keys) } }

  private func check(_ keys: [StoreKey]) throws {
    guard let key = damaged.withLock({ damaged in keys.first { damaged.contains($0) } }) else { return }
    throw StoreError(.corrupted, during: .value, key: key, message: "the test has damaged the value; restore it")
  }

  func value(forKey key: StoreKey) async throws -> [UInt8]? {
    try check([key])
    return try base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [[UInt8]?] {
    try check(keys)
    return try base.values(forKeys: keys)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<[UInt8]>] {
    let entries = try base.entries(in: range, limit: limit, order: order)
    try check(entries.map(\.key))
    return entries
  }

  func apply(_ changes: ChangeBatch<[UInt8]>) async throws {
    try base.apply(changes)
    damaged.withLock { $0.subtract(changes.changes.compactMap(\.key)) }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<[UInt8]>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try check(keys)
    let result = try await base.update(deciding: keys, body)
    counts.withLock { $0 += 1 }
    return result
  }
}

/// Options with small sizes and a clock that the test moves.
func smallOptions(_ clock: ManualClock, capacity: Int = 1_000_000, largestBody: Int? = nil) -> StorageOptions {
  var options = StorageOptions(capacity: capacity, largestBody: largestBody ?? capacity)
  options.now = { clock.date }
  return options
}
#endif
