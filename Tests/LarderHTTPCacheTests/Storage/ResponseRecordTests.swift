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
@Suite struct ResponseRecordTests {
  private static func record() throws -> ResponseRecord {
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
      requestTime: Date(microseconds: 1_767_225_600_000_001), responseTime: Date(microseconds: -5), length: 1000,
      parts: [
        StoredPart(range: 10..<20, body: bodies[0].identifier, bodyStart: 5),
        StoredPart(range: 20..<70, body: bodies[1].identifier, bodyStart: 20),
        StoredPart(range: 90..<105, body: bodies[0].identifier, bodyStart: 5),
      ], userData: [9, 8, 7])
    return ResponseRecord(place: 17, used: 1_767_225_600_000_000, response: response, bodies: bodies)
  }

  @Test func recordsRoundTripExactly() throws {
    let record = try Self.record()
    let decoded = try #require(ResponseRecord(record.encoded()))
    #expect(decoded == record)
    #expect(decoded.response.fields.map { $0.name.rawName }.last == "Cache-Control")
    #expect(decoded.response.fields.contains { $0.name.rawName == "X-Mixed-Case" })
    var empty = StoredResponse.sample()
    empty.length = 0
    let small = ResponseRecord(place: 0, used: 0, response: empty, bodies: [])
    #expect(ResponseRecord(try small.encoded()) == small)
  }

  @Test func everyBeginningIsDamage() throws {
    let bytes = try Self.record().encoded()
    for count in 0..<bytes.count { #expect(ResponseRecord(Array(bytes.prefix(count))) == nil, "\(count) bytes") }
    #expect(ResponseRecord(bytes + [0]) == nil)
    #expect(ResponseRecord([2] + bytes.dropFirst()) == nil)
  }

  /// A change of one byte gives damage, or a record that keeps every rule and is written as it was read.
  @Test func everyByteMayBeWrong() throws {
    let bytes = try Self.record().encoded()
    var readable = 0
    for index in bytes.indices {
      for value in [UInt8(0), 1, 10, 13, 127, 128, 255, bytes[index] ^ 1] where value != bytes[index] {
        var changed = bytes
        changed[index] = value
        guard let record = ResponseRecord(changed) else { continue }
        readable += 1
        Self.expectHarmless(record)
        #expect(ResponseRecord(try record.encoded()) == record)
      }
    }
    #expect(readable > 100)
  }

  @Test func randomBytesAreHarmless() throws {
    let seed = SeededGenerator.seedOfProcess
    var generator = SeededGenerator(seed: seed, purpose: "random records of responses")
    let bytes = try Self.record().encoded()
    for _ in 0..<ConformanceSuite.roundsOfProcess * (TestDepth.isShort ? 200 : 500) {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let start = Int.random(in: 0..<changed.count, using: &generator)
        let end = min(changed.count, start + Int.random(in: 0...8, using: &generator))
        let count = Int.random(in: 0...8, using: &generator)
        changed.replaceSubrange(start..<end, with: (0..<count).map { _ in .random(in: 0...255, using: &generator) })
        if changed.isEmpty { break }
      }
      if let record = ResponseRecord(changed) { Self.expectHarmless(record, "seed \(seed)") }
    }
  }

  private static func expectHarmless(_ record: ResponseRecord, _ comment: Comment? = nil) {
    for field in record.response.fields {
      field.withUnsafeBytesOfValue { bytes in #expect(!bytes.contains { [0, 10, 13].contains($0) }, comment) }
      #expect(!field.name.rawName.utf8.contains { [0, 10, 13, 32, 58].contains($0) }, comment)
    }
    #expect(!record.response.url.utf8.contains { [0, 10, 13].contains($0) }, comment)
    for part in record.response.parts {
      let body = record.bodies.first { $0.identifier == part.body }
      #expect(part.rangeInBody.lowerBound >= 0 && part.rangeInBody.upperBound <= body?.length ?? -1, comment)
      #expect(part.range.upperBound <= record.response.length ?? .max, comment)
    }
  }

  @Test(arguments: [[UInt8]](arrayLiteral: [0], [10], [13], Array("a\r\nSet-Cookie: b".utf8)))
  func linesNeverComeOut(_ value: [UInt8]) throws {
    // The same record with a harmless value of the same length.
    var response = StoredResponse.sample()
    let harmless = [UInt8](repeating: UInt8(ascii: "~"), count: value.count + 20)
    response.fields.append(HTTPField(name: .server, value: harmless))
    let bytes = try ResponseRecord(place: 1, used: 1, response: response, bodies: []).encoded()
    let start = try #require(bytes.indices.first { bytes[$0...].starts(with: harmless) })
    #expect(ResponseRecord(bytes) != nil)
    #expect(ResponseRecord(Array(bytes[..<start]) + value + bytes[(start + value.count)...]) == nil)
  }

  @Test func largeHeadsAreRefused() throws {
    func encode(_ change: (inout StoredResponse) -> Void) throws {
      var response = StoredResponse.sample()
      change(&response)
      _ = try ResponseRecord(place: 1, used: 1, response: response, bodies: []).encoded()
    }
    try encode { $0.userData = [UInt8](repeating: 1, count: 1_000_000) }
    #expect(throws: StorageRefusal.tooLarge) {
      try encode { $0.userData = [UInt8](repeating: 1, count: ResponseRecord.maximumLength) }
    }
    #expect(throws: StorageRefusal.tooLarge) {
      try encode { response in
        for _ in 0...ResponseRecord.maximumFieldCount { response.fields.append(HTTPField(name: .via, value: "a")) }
      }
    }
    #expect(throws: StorageRefusal.tooLarge) {
      try encode { $0.selecting = SelectingFields(sets: [[SelectingFields.Field]](repeating: [], count: 17)) }
    }
  }

  /// A large number in a damaged record allocates nothing.
  @Test func numbersBeyondTheBytesAreDamage() throws {
    var bytes = try ResponseRecord(place: 1, used: 1, response: .sample(), bodies: []).encoded()
    let url = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("https".utf8)) })
    bytes.replaceSubrange((url - 4)..<url, with: [255, 255, 255, 255])
    #expect(ResponseRecord(bytes) == nil)
  }
}
#endif
