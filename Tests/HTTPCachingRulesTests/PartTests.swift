#if HTTPCache
import Foundation
import HTTPTypes
import LarderTesting
import Testing

@testable import HTTPCachingRules

/// RFC 9111, sections 3.3 and 3.4, and RFC 9110, sections 13.1.5, 14 and 15.3.7.
struct PartTests {
  private static let text = "0123456789"

  /// Returns the answer of an origin that has one representation.
  private static func origin(_ text: String = text, tag: String? = "\"a\"", control: String = "max-age=60") -> (
    HTTPRequest
  ) -> Session.Reply {
    { request in
      var fields: HTTPFields = [.cacheControl: control]
      if let tag { fields[.eTag] = tag }
      let isSame = request.headerFields[.ifRange].map { $0 == tag } ?? true
      guard isSame, let value = request.headerFields[.range], let ranges = ByteRange.ranges(in: Array(value.utf8)),
        let bytes = ranges[0].bytes(of: Int64(text.utf8.count))
      else { return Session.Reply(fields: fields, body: text) }
      fields[.contentRange] = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(text.utf8.count)"
      fields[.contentLength] = "\(bytes.count)"
      let part = Array(text.utf8)[Int(bytes.lowerBound)..<Int(bytes.upperBound)]
      return Session.Reply(status: 206, fields: fields, body: String(decoding: part, as: UTF8.self))
    }
  }

  @Test(
    "14.2: a range out of a complete response",
    arguments: [
      ("bytes=0-1", "01", "bytes 0-1/10"), ("bytes=8-", "89", "bytes 8-9/10"), ("bytes=-3", "789", "bytes 7-9/10"),
      ("bytes=5-100", "56789", "bytes 5-9/10"), ("bytes=0-", text, "bytes 0-9/10"),
    ])
  func range(range: String, body: String, contentRange: String) throws {
    var session = Session()
    _ = try session.request(origin: Self.origin())
    let hit = try session.request(.get, "/", [.range: range], at: 1)
    #expect(hit.isHit)
    #expect(hit.status == 206)
    #expect(hit.body == body)
    #expect(hit.fields[.contentRange] == contentRange)
    #expect(hit.fields[.contentLength] == "\(body.utf8.count)")
  }

  @Test func `14.2: a field that must be ignored, several ranges, and HEAD get the whole response`() throws {
    var session = Session()
    _ = try session.request(origin: Self.origin())
    for range in ["bytes=5-4", "lines=0-1", "bytes=x", "bytes=0-0,5-5"] {
      let hit = try session.request(.get, "/", [.range: range], at: 1)
      #expect(hit.isHit)
      #expect(hit.status == 200)
      #expect(hit.body == Self.text)
    }
    #expect(try session.request(.head, "/", [.range: "bytes=0-1"], at: 1).status == 200)
  }

  @Test(arguments: ["bytes=10-", "bytes=-0", "bytes=99-100"])
  func `15.5.17: a range that has no byte is answered by 416`(range: String) throws {
    var session = Session()
    _ = try session.request(origin: Self.origin())
    let hit = try session.request(.get, "/", [.range: range], at: 1)
    #expect(hit.isHit)
    #expect(hit.status == 416)
    #expect(hit.fields[.contentRange] == "bytes */10")
    #expect(hit.fields[.eTag] == nil)
    #expect(hit.body.isEmpty)
  }

  @Test("13.1.5: If-Range")
  func ifRange() throws {
    let modified = dateText(-100)
    for (condition, tag, status) in [
      ("\"a\"", "\"a\"", 206), ("\"b\"", "\"a\"", 200), ("W/\"a\"", "W/\"a\"", 200), (modified, "\"a\"", 206),
      (dateText(-99), "\"a\"", 200), ("x", "\"a\"", 200),
    ] {
      var session = Session()
      try session.store([.cacheControl: "max-age=60", .eTag: tag, .lastModified: modified], body: Self.text)
      let hit = try session.request(.get, "/", [.range: "bytes=0-1", .ifRange: condition], at: 1)
      #expect(hit.isHit)
      #expect(hit.status == status, "\(condition)")
    }
    // A date that a second change could share isn't strong.
    var session = Session()
    try session.store([.cacheControl: "max-age=60", .lastModified: dateText(-10)], body: Self.text)
    #expect(try session.request(.get, "/", [.range: "bytes=0-1", .ifRange: dateText(-10)], at: 1).status == 200)
  }

  @Test func `3.3: a part is stored, and reused for what it contains`() throws {
    var session = Session()
    let first = try session.request(.get, "/", [.range: "bytes=2-6"], origin: Self.origin())
    #expect(first.status == 206)
    for (range, body) in [("bytes=2-6", "23456"), ("bytes=3-4", "34")] {
      let hit = try session.request(.get, "/", [.range: range], at: 1)
      #expect(hit.isHit)
      #expect(hit.body == body)
    }
    #expect(try !session.request(.head, at: 1, origin: { _ in .init(status: 404) }).isHit)
    #expect(try session.request(.get, "/", [.range: "bytes=2-6", .ifNoneMatch: "\"a\""], at: 1).status == 304)
  }

  @Test func `3.3: a part of an unknown whole is reused for what it contains`() throws {
    var session = Session()
    _ = try session.request(.get, "/", [.range: "bytes=2-6"]) { _ in
      .init(
        status: 206, fields: [.cacheControl: "max-age=60", .eTag: "\"a\"", .contentRange: "bytes 2-6/*"], body: "23456")
    }
    let hit = try session.request(.get, "/", [.range: "bytes=3-4"], at: 1)
    #expect(hit.isHit && hit.status == 206 && hit.body == "34")
    for range in ["bytes=3-9223372036854775807", "bytes=3-"] {
      var copy = session
      #expect(try !copy.request(.get, "/", [.range: range], at: 1, origin: Self.origin()).isHit, "\(range)")
    }
  }

  @Test(arguments: [("max-age=60", true), ("no-store", false)])
  func `3.4: a part of what is stored freshens it, unless it must not be stored`(control: String, isFresh: Bool) throws
  {
    var session = Session()
    try session.store([.cacheControl: "max-age=5", .eTag: "\"a\""], body: Self.text)
    let part = try session.request(
      .get, "/", [.range: "bytes=0-1", .cacheControl: "no-cache"], at: 10, origin: Self.origin(control: control))
    #expect(part.status == 206 && part.body == "01")
    #expect(try session.request(at: 11, origin: Self.origin()).isHit == isFresh)
  }

  @Test func `3.3: a part without a validator is never the whole, and isn't completed`() throws {
    for tag in [nil, "W/\"a\""] {
      var session = Session()
      _ = try session.request(.get, "/", [.range: "bytes=0-4"], origin: Self.origin(tag: tag))
      #expect(try session.request(.get, "/", [.range: "bytes=0-4"], at: 1).isHit)
      let whole = try session.request(at: 1, origin: Self.origin(tag: tag))
      #expect(whole.forwarded[0].headerFields[.range] == nil)
      #expect(whole.body == Self.text)
    }
  }

  @Test("3.4: a part is completed by what is missing")
  func completion() throws {
    for (first, request, missing, body) in [
      ("bytes=0-4", nil, "bytes=5-", Self.text), ("bytes=-5", nil, "bytes=0-4", Self.text),
      ("bytes=2-5", "bytes=4-7", "bytes=6-7", "4567"),
      ("bytes=2-5", "bytes=0-3", "bytes=0-1", "0123"), ("bytes=2-5", nil, nil, Self.text),
    ] as [(String, String?, String?, String)] {
      var session = Session()
      _ = try session.request(.get, "/", [.range: first], origin: Self.origin())
      let fields: HTTPFields = request.map { [.range: $0] } ?? [:]
      let result = try session.request(.get, "/", fields, at: 1, origin: Self.origin())
      #expect(result.forwarded.count == 1)
      #expect(result.forwarded[0].headerFields[.range] == missing)
      #expect(result.forwarded[0].headerFields[.ifRange] == missing.map { _ in "\"a\"" })
      #expect(result.body == body)
      #expect(result.status == (request == nil ? 200 : 206))
      #expect(try session.request(.get, "/", fields, at: 2).isHit)
    }
  }

  @Test func `Bytes that complete a part for a request that must not be stored say why they aren't`() throws {
    var session = Session()
    _ = try session.request(.get, "/", [.range: "bytes=0-4"], origin: Self.origin())
    let whole = try session.request(.get, "/", [.authorization: "Basic eA=="], at: 1, origin: Self.origin())
    #expect(whole.forwarded[0].headerFields[.range] == "bytes=5-")
    #expect(whole.body == Self.text)
    #expect(session.cache.refusal == .part)
  }

  @Test func `15.3.7: a part that nothing asked for, or that contradicts itself, is passed on`() throws {
    for (request, range) in [([:], "bytes 0-3/10"), ([.range: "bytes=0-3"], "bytes 0-2/10")] as [(HTTPFields, String)] {
      var session = Session()
      let result = try session.request(.get, "/", request) { _ in
        .init(status: 206, fields: [.cacheControl: "max-age=60", .contentRange: range, .contentLength: "4"])
      }
      #expect(result.status == 206 && result.body == "body")
      #expect(result.cache.detail == "not-stored-part")
      #expect(session.cache.refusal == .part)
      #expect(session.stored().isEmpty)
    }
  }

  @Test func `3.4: parts are combined only under the same strong validator and length`() throws {
    for other in [
      Self.origin("abcdefghij", tag: "\"b\""), Self.origin("0123456789a"),
      { _ in .init(status: 206, fields: [.eTag: "\"a\"", .contentRange: "bytes 6-9/10"], body: "6789") },
      { _ in
        .init(status: 206, fields: [.eTag: "\"a\"", .contentRange: "bytes 5-9/10", .contentLength: "4"], body: "5678")
      },
      { _ in .init(status: 206, fields: [.eTag: "\"a\"", .contentRange: "bytes 5-9/11"], body: "56789") },
      { _ in .init(status: 206, fields: [.eTag: "W/\"a\"", .contentRange: "bytes 5-9/10"], body: "56789") },
      { _ in .init(status: 206, fields: [.contentRange: "bytes 5-9/10"], body: "56789") },
      { _ in .init(status: 416, fields: [.contentRange: "bytes */3"]) },
    ] as [(HTTPRequest) -> Session.Reply] {
      var session = Session()
      _ = try session.request(.get, "/", [.range: "bytes=0-4"], origin: Self.origin())
      let result = try session.request(at: 1) { request in
        request.headerFields[.range] == nil ? Self.origin("whole", tag: "\"c\"")(request) : other(request)
      }
      #expect(["abcdefghij", "whole"].contains(result.body))
    }
    var session = Session()
    _ = try session.request(.get, "/", [.range: "bytes=0-4"], origin: Self.origin())
    _ = try session.request(.get, "/", [.range: "bytes=5-9"], at: 1, origin: Self.origin("abcdefghij", tag: "\"b\""))
    #expect(session.stored().map(\.ranges.count) == [1])
    #expect(try session.request(.get, "/", [.range: "bytes=0-4"], at: 2, origin: Self.origin()).body == "abcde")
  }

  @Test("15.3.7: a 206 that contradicts itself, or that was not asked for, isn't stored")
  func contradictions() throws {
    for (request, fields) in [
      ([.range: "bytes=4-8"], [.contentRange: "bytes 4-9/10", .contentLength: "5"]), ([.range: "bytes=4-8"], [:]),
      ([.range: "bytes=4-8"], [.contentRange: "bytes */10"]), ([.range: "bytes=4-8"], [.contentRange: "bytes 4-10/10"]),
      ([.range: "bytes=4-8"], [.contentRange: "bytes 4-8/10", .contentRange: "bytes 4-8/10"]),
      ([:], [.contentRange: "bytes 4-8/10", .contentLength: "5"]),
    ] as [(HTTPFields, HTTPFields)] {
      var session = Session()
      let result = try session.request(.get, "/", request) { _ in
        .init(status: 206, fields: [.cacheControl: "max-age=60"] + fields, body: "45678")
      }
      #expect(result.status == 206)
      #expect(result.body == "45678")
      #expect(session.stored().isEmpty)
    }
  }

  @Test func `Random ranges of a representation that changes: no answer mixes two versions`() throws {
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed, purpose: "PartTests")
    for _ in 0..<300 {
      var session = Session(.shared) { $0.largestPartCount = Int.random(in: 2...5, using: &random) }
      var version = 0
      for step in 0..<12 {
        if Int.random(in: 0..<4, using: &random) == 0 { version += 1 }
        let text = String(repeating: String(UnicodeScalar(UInt8(97 + version))), count: 20)
        let tagged = String(text.dropLast(2)) + "\(version % 10)!"
        let fields: HTTPFields
        switch Int.random(in: 0..<4, using: &random) {
        case 0: fields = [:]
        case 1: fields = [.range: "bytes=-\(Int.random(in: 1...20, using: &random))"]
        default:
          let first = Int.random(in: 0..<20, using: &random)
          fields = [.range: "bytes=\(first)-\(Int.random(in: first..<24, using: &random))"]
        }
        let result = try session.request(
          .get, "/", fields, at: Double(step * Int.random(in: 0...20, using: &random)),
          origin: Self.origin(tagged, tag: "\"\(version)\"", control: "max-age=30"))
        let owner = Int(result.fields[.eTag]?.dropFirst().dropLast() ?? "") ?? -1
        let letter = String(UnicodeScalar(UInt8(97 + max(0, owner))))
        let whole = Array((String(repeating: letter, count: 18) + "\(owner % 10)!").utf8)
        let range = result.fields[.contentRange].flatMap { ContentRange(Array($0.utf8))?.bytes } ?? 0..<20
        let expected = String(decoding: whole[Int(range.lowerBound)..<Int(range.upperBound)], as: UTF8.self)
        #expect(result.status == 416 || result.body == expected, "seed \(seed)")
      }
    }
  }
}
#endif
