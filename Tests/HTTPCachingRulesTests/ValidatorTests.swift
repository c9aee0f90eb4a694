#if HTTPCache
import Foundation
import HTTPTypes
import Testing

@testable import HTTPCachingRules

struct ValidatorTests {
  private func tag(_ text: String) -> EntityTag? { EntityTag(Array(text.utf8)) }

  private func list(_ lines: String...) -> EntityTagList {
    var list = EntityTagList()
    for line in lines { list.add(Array(line.utf8)) }
    return list
  }

  @Test("Entity tags", arguments: [("\"a\"", false), ("W/\"a\"", true), ("\"\"", false), ("\"a,\\\"", false)])
  func tags(text: String, isWeak: Bool) throws {
    let parsed = try #require(tag(text))
    #expect(parsed.isWeak == isWeak)
    #expect(parsed.bytes == Array(text.utf8))
  }

  @Test(arguments: ["", "a", "w/\"a\"", "W\"a\"", "\"a", "\"a\"b", "\"a b\"", "*"])
  func `Anything else is no tag`(text: String) {
    #expect(tag(text) == nil)
  }

  @Test func `A tag keeps bytes above 127`() throws {
    let bytes: [UInt8] = [0x22, 0xFC, 0xFF, 0x22]
    #expect(try #require(EntityTag(bytes)).bytes == bytes)
  }

  @Test("The table of comparisons in RFC 9110, section 8.8.3.2")
  func comparisons() throws {
    let rows = [
      ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false), ("W/\"1\"", "\"1\"", false, true),
      ("\"1\"", "\"1\"", true, true),
    ]
    for (one, other, strong, weak) in rows {
      let (one, other) = (try #require(tag(one)), try #require(tag(other)))
      #expect(one.stronglyEquals(other) == strong)
      #expect(one.weaklyEquals(other) == weak)
    }
  }

  @Test("A list of tags skips what is no tag")
  func lists() {
    #expect(
      list("\"a\", W/\"b\",, c, \"d\"e", "\"f\"").tags.map { String(decoding: $0.opaque, as: UTF8.self) } == [
        "a", "b", "f",
      ])
    #expect(list("\"a, b\"").tags.isEmpty)
    #expect(list("*").hasAny)
    #expect(!list("*a").hasAny)
  }

  @Test func `Last-Modified is strong if it is at least a minute older than Date`() throws {
    for (seconds, isStrong) in [(0, false), (59, false), (60, true)] {
      let date = 1_800_000_000
      let fields: HTTPFields = [.date: Duel.text(date), .lastModified: Duel.text(date - seconds)]
      #expect(ResponseFacts(fields, received: Double(date)).validator.isStrong == isStrong)
    }
  }

  @Test func `Strong dates are compared only where neither response has a tag`() {
    func validator(_ modified: Int, tag: String? = nil) -> Validator {
      var fields: HTTPFields = [.date: Duel.text(1_800_000_000), .lastModified: Duel.text(modified)]
      if let tag { fields[.eTag] = tag }
      return ResponseFacts(fields, received: 1_800_000_000).validator
    }
    let (old, recent) = (1_700_000_000, 1_800_000_000)
    #expect(validator(old).stronglyEquals(validator(old)))
    #expect(!validator(old).stronglyEquals(validator(old + 1)))
    #expect(!validator(recent).stronglyEquals(validator(recent)))
    #expect(!validator(old).stronglyEquals(validator(old, tag: "\"a\"")))
    #expect(!validator(old, tag: "\"a\"").stronglyEquals(validator(old)))
  }

  @Test func `A response with two entity tags has none`() {
    let fields: HTTPFields = [.eTag: "\"a\"", .eTag: "\"b\""]
    #expect(ResponseFacts(fields, received: 0).validator.isEmpty)
  }
}
#endif
