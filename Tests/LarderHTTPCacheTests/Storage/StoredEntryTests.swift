#if HTTPCache
import Foundation
import HTTPCachingRules
import HTTPTypes
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderHTTPCache

/// Records of responses, which may have been written by anybody.
@Suite struct StoredEntryTests {
  private static let key: StoreKey = "http/r1"

  private static func entry() throws -> StoredEntry {
    let bodies = [
      StoredBody(identifier: BodyIdentifier(high: 1, low: 2), length: 100),
      StoredBody(identifier: BodyIdentifier(high: 3, low: 4), length: 50),
    ]
    var fields = HTTPFields()
    fields.append(HTTPField(name: .eTag, value: "\"1\""))
    fields.append(
      HTTPField(name: try #require(HTTPField.Name("X-Mixed-Case")), lenientValue: [0x80, 0xFF, 0x09, 0x01, 0x41]))
    fields.append(HTTPField(name: .cacheControl, value: ""))
    fields.append(HTTPField(name: .cacheControl, value: "max-age=60"))
    let response = StoredResponse(
      url: "https://a.example/%2F?q=ä", partition: [0, 1, 2], status: 206, fields: fields,
      selecting: SelectingFields(sets: [
        [.init(name: "accept", value: [0, 10, 255]), .init(name: "cookie", value: nil)], [],
      ]),
      requestTime: Date(microsecondsSince1970: 1_767_225_600_000_001), responseTime: Date(microsecondsSince1970: -5),
      length: 1000,
      userData: [9, 8, 7])
    let parts = [
      StoredPart(range: 10..<20, body: bodies[0].identifier, bodyStart: 5),
      StoredPart(range: 20..<70, body: bodies[1].identifier, bodyStart: 20),
      StoredPart(range: 90..<105, body: bodies[0].identifier, bodyStart: 5),
    ]
    return try StoredEntry(
      key: key, place: 17, used: 1_767_225_600_000_000, response: response, parts: parts, bodies: bodies)
  }

  @Test func `records round trip exactly`() throws {
    let entry = try Self.entry()
    let decoded = try #require(StoredEntry(Self.key, entry.bytes))
    #expect(decoded == entry)
    #expect(decoded.response.fields.map { $0.name.rawName }.last == "Cache-Control")
    #expect(decoded.response.fields.contains { $0.name.rawName == "X-Mixed-Case" })
    var empty = StoredResponse.sample()
    empty.length = 0
    let small = try StoredEntry(key: Self.key, place: 0, used: 0, response: empty, bodies: [])
    #expect(StoredEntry(Self.key, small.bytes) == small)
  }

  @Test func `every beginning is damage`() throws {
    let bytes = try Self.entry().bytes
    for count in 0..<bytes.count { #expect(StoredEntry(Self.key, Array(bytes.prefix(count))) == nil, "\(count) bytes") }
    #expect(StoredEntry(Self.key, bytes + [0]) == nil)
    #expect(StoredEntry(Self.key, [2] + bytes.dropFirst()) == nil)
  }

  /// A change of one byte gives damage, or a record that keeps every rule and is written as it was read.
  @Test func `every byte may be wrong`() throws {
    let bytes = try Self.entry().bytes
    var readable = 0
    for index in bytes.indices {
      for value in [UInt8(0), 1, 10, 13, 127, 128, 255, bytes[index] ^ 1] where value != bytes[index] {
        var changed = bytes
        changed[index] = value
        guard let entry = StoredEntry(Self.key, changed) else { continue }
        readable += 1
        Self.expectHarmless(entry)
        let again = try entry.freshened(by: entry.response)
        #expect(StoredEntry(Self.key, again.bytes) == again && again.response == entry.response)
      }
    }
    #expect(readable > 100)
  }

  @Test func `random bytes are harmless`() throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "random records of responses")
    let bytes = try Self.entry().bytes
    for _ in 0..<ConformanceSuite.roundsOfProcess * (TestDepth.isShort ? 200 : 500) {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let start = Int.random(in: 0..<changed.count, using: &generator)
        let end = min(changed.count, start + Int.random(in: 0...8, using: &generator))
        let count = Int.random(in: 0...8, using: &generator)
        changed.replaceSubrange(start..<end, with: (0..<count).map { _ in .random(in: 0...255, using: &generator) })
        if changed.isEmpty { break }
      }
      if let entry = StoredEntry(Self.key, changed) { Self.expectHarmless(entry, "seed \(seed)") }
    }
  }

  private static func expectHarmless(_ entry: StoredEntry, _ comment: Comment? = nil) {
    for field in entry.response.fields {
      field.withUnsafeBytesOfValue { bytes in #expect(!bytes.contains { [0, 10, 13].contains($0) }, comment) }
      #expect(!field.name.rawName.utf8.contains { [0, 10, 13, 32, 58].contains($0) }, comment)
    }
    #expect(!entry.response.url.utf8.contains { [0, 10, 13].contains($0) }, comment)
    #expect(entry.response.ranges == entry.parts.map(\.range), comment)
    for part in entry.parts {
      let body = entry.bodies.first { $0.identifier == part.body }
      #expect(part.rangeInBody.lowerBound >= 0 && part.rangeInBody.upperBound <= body?.length ?? -1, comment)
      #expect(part.range.upperBound <= entry.response.length ?? .max, comment)
    }
  }

  @Test(arguments: [[UInt8]](arrayLiteral: [0], [10], [13], Array("a\r\nSet-Cookie: b".utf8)))
  func `lines never come out`(_ value: [UInt8]) throws {
    // The same record with a harmless value of the same length.
    var response = StoredResponse.sample()
    let harmless = [UInt8](repeating: UInt8(ascii: "~"), count: value.count + 20)
    response.fields.append(HTTPField(name: .server, value: harmless))
    let bytes = try StoredEntry(key: Self.key, place: 1, used: 1, response: response, bodies: []).bytes
    let start = try #require(bytes.indices.first { bytes[$0...].starts(with: harmless) })
    #expect(StoredEntry(Self.key, bytes) != nil)
    #expect(StoredEntry(Self.key, Array(bytes[..<start]) + value + bytes[(start + value.count)...]) == nil)
  }

  @Test func `large heads are refused`() throws {
    func encode(_ change: (inout StoredResponse) -> Void) throws {
      var response = StoredResponse.sample()
      change(&response)
      _ = try StoredEntry(key: Self.key, place: 1, used: 1, response: response, bodies: []).bytes
    }
    try encode { $0.userData = [UInt8](repeating: 1, count: 1_000_000) }
    #expect(throws: StorageRefusal.tooLarge) {
      try encode { $0.userData = [UInt8](repeating: 1, count: StoredEntry.maximumLength) }
    }
    #expect(throws: StorageRefusal.tooLarge) {
      try encode { response in
        for _ in 0...StoredEntry.maximumFieldCount { response.fields.append(HTTPField(name: .via, value: "a")) }
      }
    }
    #expect(throws: StorageRefusal.tooLarge) {
      try encode { $0.selecting = SelectingFields(sets: [[SelectingFields.Field]](repeating: [], count: 17)) }
    }
  }

  /// A large number in a damaged record allocates nothing.
  @Test func `numbers beyond the bytes are damage`() throws {
    var bytes = try StoredEntry(key: Self.key, place: 1, used: 1, response: .sample(), bodies: []).bytes
    let url = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("https".utf8)) })
    bytes.replaceSubrange((url - 4)..<url, with: [255, 255, 255, 255])
    #expect(StoredEntry(Self.key, bytes) == nil)
  }
}
#endif
