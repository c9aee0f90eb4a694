import Foundation
import Larder
import LarderCBOR
import LarderTesting
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct CBORItemTests {
  private func item(_ hex: String) throws -> CBORItem {
    let digits = hex.compactMap(\.hexDigitValue).map(UInt8.init)
    return try CBORItem(stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] })
  }

  /// The examples of RFC 8949, Appendix A.
  ///
  /// The last element is the JSON, if it differs from the diagnostic notation.
  @Test(
    arguments: [
      ("00", "0", nil), ("1bffffffffffffffff", "18446744073709551615", nil), ("20", "-1", nil),
      ("c249010000000000000000", "18446744073709551616", nil),
      ("3bffffffffffffffff", "-18446744073709551616", nil),
      ("c349010000000000000000", "-18446744073709551617", nil),
      ("f90000", "0.0", nil), ("f98000", "-0.0", nil), ("fb3ff199999999999a", "1.1", nil), ("f97bff", "65504.0", nil),
      ("fb7e37e43c8800759c", "1e+300", nil), ("f90001", "5.960464477539063e-08", nil),
      ("f97c00", "Infinity", #"{"$float":"Infinity"}"#), ("f9fc00", "-Infinity", #"{"$float":"-Infinity"}"#),
      ("f97e00", "NaN", #"{"$float":"NaN"}"#),
      ("f4", "false", nil), ("f5", "true", nil), ("f6", "null", nil), ("f7", "undefined", #"{"$simple":23}"#),
      ("f0", "simple(16)", #"{"$simple":16}"#), ("f8ff", "simple(255)", #"{"$simple":255}"#),
      (
        "c074323031332d30332d32315432303a30343a30305a", #"0("2013-03-21T20:04:00Z")"#,
        #"{"$tag":0,"$value":"2013-03-21T20:04:00Z"}"#
      ),
      ("c11a514b67b0", "1(1363896240)", #"{"$tag":1,"$value":1363896240}"#),
      ("d74401020304", "23(h'01020304')", #"{"$tag":23,"$value":{"$base64":"AQIDBA=="}}"#),
      ("d818456449455446", "24(h'6449455446')", #"{"$tag":24,"$value":{"$base64":"ZElFVEY="}}"#),
      ("40", "h''", #"{"$base64":""}"#), ("4401020304", "h'01020304'", #"{"$base64":"AQIDBA=="}"#),
      ("60", #""""#, nil), ("62225c", #""\"\\""#, nil), ("62c3bc", "\"ü\"", nil), ("64f0908591", "\"\u{10151}\"", nil),
      ("80", "[]", nil), ("8301820203820405", "[1, [2, 3], [4, 5]]", "[1,[2,3],[4,5]]"),
      ("a0", "{}", nil), ("a201020304", "{1: 2, 3: 4}", #"{"$map":[[1,2],[3,4]]}"#),
      ("a26161016162820203", #"{"a": 1, "b": [2, 3]}"#, #"{"a":1,"b":[2,3]}"#),
    ] as [(String, String, String?)])
  func `shows and round trips items`(_ hex: String, _ notation: String, _ json: String?) throws {
    let item = try item(hex)
    #expect(try item.notation() == notation)
    #expect(try item.json() == JSONText(json ?? notation))
    #expect(try CBORItem(item.json()) == item)
  }

  @Test(arguments: [
    ("5f42010243030405ff", "h'0102030405'", #"{"$base64":"AQIDBAU="}"#),
    ("7f657374726561646d696e67ff", #""streaming""#, #""streaming""#),
    ("9fff", "[]", "[]"), ("9f018202039f0405ffff", "[1, [2, 3], [4, 5]]", "[1,[2,3],[4,5]]"),
    ("bf61610161629f0203ffff", #"{"a": 1, "b": [2, 3]}"#, #"{"a":1,"b":[2,3]}"#),
    ("1800", "0", "0"), ("c24101", "2(h'01')", #"{"$tag":2,"$value":{"$base64":"AQ=="}}"#),
    ("a2616101616102", #"{"a": 1, "a": 2}"#, #"{"$map":[["a",1],["a",2]]}"#),
    ("a1642474616701", #"{"$tag": 1}"#, #"{"$$tag":1}"#),
    ("5fff", "h''", #"{"$base64":""}"#), ("7fff", #""""#, "\"\""),
  ]) func `shows other forms`(_ hex: String, _ notation: String, _ json: String) throws {
    let item = try item(hex)
    #expect(try item.notation() == notation)
    #expect(try item.json() == JSONText(json))
  }

  /// JSON cannot represent the payload of a NaN.
  @Test(arguments: ["f9fe00", "f97e01", "f97c01", "fa7fc00001", "fb7ff8000000000001", "8201f97e01"])
  func `every bit of a na n is preserved`(_ hex: String) throws {
    let item = try item(hex)
    let json = try item.json()
    #expect(json.description.contains(#"{"$diagnostic":"NaN","$base64":""#))
    #expect(try CBORItem(json) == item)
  }

  @Test(arguments: [
    #"{"$ref":"x"}"#, #"{"$tag":"x"}"#, #"{"$tag":1}"#, #"{"$tag":1,"$value":2,"more":3}"#, #"{"$base64":"*"}"#,
    #"{"$simple":25}"#, #"{"$map":[[1]]}"#, #"{"$float":"1"}"#, #"{"b":1,"a":[true,null,-0.5,1e30]}"#,
    "340282366920938463463374607431768211455", "-340282366920938463463374607431768211455",
  ]) func `other JSON is read as plain JSON`(_ text: String) throws {
    let item = try CBORItem(JSONText(text))
    let json = try item.json()
    #expect(try CBORItem(json) == item)
    if !text.contains("tag\"") && !text.contains("base64") && !text.contains("simple") && !text.contains("map")
      && !text.contains("float") && !text.contains("e30")
    {
      #expect(try json == JSONText(text))
    }
  }

  @Test(arguments: [
    (#"{"\u0024base64":"AQID"}"#, "43010203"), (#"{"\u0024$base64":"AQID"}"#, "a167246261736536346441514944"),
    (#"{"\u0061":[ ]}"#, "a1616180"), ("-0", "00"), ("-9223372036854775808", "3b7fffffffffffffff"),
    ("9223372036854775807", "1b7fffffffffffffff"), ("-9223372036854775809", "3b8000000000000000"),
    ("9223372036854775808", "1b8000000000000000"),
    ("[" + String(repeating: "0,", count: 23) + "0]", "9818" + String(repeating: "00", count: 24)),
  ]) func `JSON becomes the shortest form`(_ text: String, _ hex: String) throws {
    #expect(try CBORItem(JSONText(text)) == item(hex))
  }

  @Test(arguments: ["1e999", "-1e999", String(repeating: "9", count: 40), #"{"a":1,"a":2}"#, #"[{"b":{"a":1,"a":2}}]"#])
  func `unrepresentable items are refused`(_ text: String) throws {
    let json = try JSONText(text)
    #expect(throws: CBORConversionError.self) { try CBORItem(json) }
  }

  @Test(arguments: ["", "0000", "61ff", "81", "ff", "9f", "7f61c361a9ff", "a161ff00", "1c", "81f800", "9f61ffff"])
  func `malformed items are refused`(_ hex: String) {
    #expect(throws: DecodingError.self) { try item(hex) }
  }

  @Test func `random items round trip through JSON`() throws {
    let leaves = [
      "00", "3bffffffffffffffff", "c249010000000000000000", "f98000", "fb3ff199999999999a", "f97c00", "f4", "f6", "f7",
      "f8ff", "40", "4401020304", "60", "64f0908591", "6424746167", "652424746167", "64246d6170", "6165", "6365cc81",
    ]
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "CBOR as JSON")
    func hex(depth: Int) -> String {
      let count = Int.random(in: 0..<6, using: &random)
      func items(_ count: Int) -> String { (0..<count).map { _ in hex(depth: depth + 1) }.joined() }
      return switch Int.random(in: 0..<(depth < 4 ? 8 : 5), using: &random) {
      case 5: "8\(count)" + items(count)
      case 6: "a\(count)" + items(2 * count)
      case 7: "d8\(Int.random(in: 24..<100, using: &random))" + items(1)
      default: leaves.randomElement(using: &random) ?? "00"
      }
    }
    for _ in 0..<2000 {
      let item = try item(hex(depth: 0))
      #expect(try CBORItem(item.json()) == item, "\(item)")
    }
  }

  /// 200 nested maps, each with a number as its key, take three levels of JSON each.
  @Test func `items too deep for JSON are shown as text`() throws {
    let hex = String(repeating: "a101", count: 200) + "0" + "2"
    let item = try item(hex)
    let json = try item.json()
    let members = try #require(try json.members())
    #expect(members.map(\.name) == ["$diagnostic", "$base64"])
    #expect(try members[0].value.string() == item.notation())
    #expect(try CBORItem(json) == item)
    // As a part of another item, and twice over.
    #expect(try CBORItem(JSONText("[1,\(json)]")).bytes == [0x82, 0x01] + item.bytes)
    let other = JSONText(string: "[1]")
    for changed in [
      json.description.replacing("{1: 2}", with: "{1: 3}"), #"{"$diagnostic":\#(other),"$base64":"gQI="}"#,
      #"{"$diagnostic":\#(other),"$base64":"gQ=="}"#, #"{"$diagnostic":"","$base64":"AQI="}"#,
    ] {
      #expect(throws: CBORConversionError.self) { try CBORItem(JSONText(changed)) }
    }
    #expect(try CBORItem(JSONText(#"{"$diagnostic":\#(other),"$base64":"gQE="}"#)).bytes == [0x81, 0x01])
    // Maps that resemble a tagged object stay maps.
    for text in [#"{"$diagnostic":\#(other)}"#, #"{"$diagnostic":\#(other),"$base64":"gQE=","more":1}"#] {
      let map = try CBORItem(JSONText(text))
      #expect(map.bytes[0] & 0xE0 == 0xA0)
      #expect(try map.json().description.hasPrefix("{\"$$diagnostic\""))
      #expect(try CBORItem(map.json()) == map)
    }
  }

  /// Nested maps whose last key is not text.
  ///
  /// None is processed twice for each level.
  ///
  /// Doubling the work at each of 150 levels would never end. The limit is generous, because a loaded machine delays
  /// tests.
  @Test(.timeLimit(.minutes(60)), arguments: [40, 150]) func `nested maps take time proportional to their depth`(
    depth: Int
  )
    throws
  {
    let bytes =
      Array(repeating: [0xA2, 0x61, 0x61] as [UInt8], count: depth).flatMap(\.self) + [0x00]
      + Array(repeating: [0x00, 0x00] as [UInt8], count: depth).flatMap(\.self)
    let json = try CBORItem(bytes).json()
    #expect(json.description.hasPrefix("{\"$map\":[[\"a\",{\"$map\":"))
    #expect(try CBORItem(json).bytes == bytes)
  }
}
