import Foundation
import LarderCBOR
import Testing

/// The examples of RFC 8949, Appendix A, that have a counterpart in Swift.
@Suite struct AppendixATests {
  /// Decodes an example, and expects that encoding the value gives the same bytes.
  private func expect<Value: Codable & Sendable & Equatable>(
    _ value: Value, _ hex: String, isPreferred: Bool = true, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try Coding.decoded(Value.self, hex: hex) == value, "\(hex)", sourceLocation: sourceLocation)
    if isPreferred {
      #expect(try Coding.hex(Coding.encoded(value)) == hex, sourceLocation: sourceLocation)
    }
  }

  @Test func integers() throws {
    try expect(0, "00")
    try expect(1, "01")
    try expect(10, "0a")
    try expect(23, "17")
    try expect(24, "1818")
    try expect(25, "1819")
    try expect(100, "1864")
    try expect(1000, "1903e8")
    try expect(1_000_000, "1a000f4240")
    try expect(1_000_000_000_000, "1b000000e8d4a51000")
    try expect(UInt64.max, "1bffffffffffffffff")
    try expect(UInt128(18_446_744_073_709_551_616), "c249010000000000000000")
    try expect(Int128(-18_446_744_073_709_551_616), "3bffffffffffffffff")
    try expect(Int128(-18_446_744_073_709_551_617), "c349010000000000000000")
    try expect(-1, "20")
    try expect(-10, "29")
    try expect(-100, "3863")
    try expect(-1000, "3903e7")
  }

  @Test func `floating point numbers`() throws {
    try expect(0.0, "f90000")
    try expect(1.0, "f93c00")
    try expect(1.1, "fb3ff199999999999a")
    try expect(1.5, "f93e00")
    try expect(65504.0, "f97bff")
    try expect(100_000.0, "fa47c35000")
    try expect(3.4028234663852886e+38, "fa7f7fffff")
    try expect(1.0e+300, "fb7e37e43c8800759c")
    try expect(5.960464477539063e-8, "f90001")
    try expect(0.00006103515625, "f90400")
    try expect(-4.0, "f9c400")
    try expect(-4.1, "fbc010666666666666")
    try expect(Double.infinity, "f97c00")
    try expect(-Double.infinity, "f9fc00")
    try expect(Double.infinity, "fa7f800000", isPreferred: false)
    try expect(-Double.infinity, "faff800000", isPreferred: false)
    try expect(Double.infinity, "fb7ff0000000000000", isPreferred: false)
    try expect(-Double.infinity, "fbfff0000000000000", isPreferred: false)
    #expect(try Coding.hex(Coding.encoded(-0.0)) == "f98000")
    #expect(try Coding.decoded(Double.self, hex: "f98000").sign == .minus)
    #expect(try Coding.hex(Coding.encoded(Double.nan)) == "f97e00")
    for hex in ["f97e00", "fa7fc00000", "fb7ff8000000000000"] {
      #expect(try Coding.decoded(Double.self, hex: hex).isNaN)
      #expect(try Coding.decoded(Float.self, hex: hex).isNaN)
    }
  }

  @Test func `simple values`() throws {
    try expect(false, "f4")
    try expect(true, "f5")
    try expect(Int?.none, "f6")
    try expect(Int?.none, "f7", isPreferred: false)
    // Unassigned simple values have no counterpart in Swift, but they may occur in a field that no type reads.
    struct Empty: Codable, Equatable {}
    for hex in ["f0", "f8ff"] {
      Coding.expectRefused(Int.self, hex)
      #expect(throws: Never.self) { try Coding.decoded(Empty.self, hex: "a16161" + hex) }
    }
  }

  @Test func tags() throws {
    let date = Date(timeIntervalSince1970: 1_363_896_240)
    try expect(date, "c074323031332d30332d32315432303a30343a30305a", isPreferred: false)
    try expect(date, "c11a514b67b0")
    try expect(Date(timeIntervalSince1970: 1_363_896_240.5), "c1fb41d452d9ec200000")
    try expect(Data([1, 2, 3, 4]), "d74401020304", isPreferred: false)
    try expect(Data("dIETF".utf8), "d818456449455446", isPreferred: false)
    let url = try #require(URL(string: "http://www.example.com"))
    try expect(url, "d82076687474703a2f2f7777772e6578616d706c652e636f6d")
  }

  @Test func strings() throws {
    try expect(Data(), "40")
    try expect(Data([1, 2, 3, 4]), "4401020304")
    try expect("", "60")
    try expect("a", "6161")
    try expect("IETF", "6449455446")
    try expect("\"\\", "62225c")
    try expect("\u{00fc}", "62c3bc")
    try expect("\u{6c34}", "63e6b0b4")
    try expect("\u{10151}", "64f0908591")
    try expect(Data([1, 2, 3, 4, 5]), "5f42010243030405ff", isPreferred: false)
    try expect("streaming", "7f657374726561646d696e67ff", isPreferred: false)
  }

  private struct Mixed: Codable, Equatable {
    var first: Int
    var inner: [[Int]]

    init(_ first: Int, _ inner: [[Int]]) {
      (self.first, self.inner) = (first, inner)
    }

    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      first = try container.decode(Int.self)
      inner = []
      while !container.isAtEnd { inner.append(try container.decode([Int].self)) }
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      try container.encode(first)
      for array in inner { try container.encode(array) }
    }
  }

  private struct Fields: Codable, Equatable {
    var a: Int
    var b: [Int]
  }

  private struct TextAndMap: Codable, Equatable {
    var text: String
    var map: [String: String]

    init(_ text: String, _ map: [String: String]) {
      (self.text, self.map) = (text, map)
    }

    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      text = try container.decode(String.self)
      map = try container.decode([String: String].self)
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      try container.encode(text)
      try container.encode(map)
    }
  }

  private struct Flagged: Codable, Equatable {
    var isFun: Bool
    var amount: Int

    enum CodingKeys: String, CodingKey {
      case isFun = "Fun"
      case amount = "Amt"
    }
  }

  @Test func arrays() throws {
    let mixed = Mixed(1, [[2, 3], [4, 5]])
    try expect([Int](), "80")
    try expect([1, 2, 3], "83010203")
    try expect(mixed, "8301820203820405")
    try expect(Array(1...25), "98190102030405060708090a0b0c0d0e0f101112131415161718181819")
    try expect([Int](), "9fff", isPreferred: false)
    for hex in ["9f018202039f0405ffff", "9f01820203820405ff", "83018202039f0405ff", "83019f0203ff820405"] {
      try expect(mixed, hex, isPreferred: false)
    }
    try expect(
      Array(1...25), "9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", isPreferred: false)
  }

  @Test func maps() throws {
    try expect([String: Int](), "a0")
    try expect([1: 2, 3: 4], "a201020304")
    try expect(Fields(a: 1, b: [2, 3]), "a26161016162820203")
    try expect(TextAndMap("a", ["b": "c"]), "826161a161626163")
    try expect(
      ["a": "A", "b": "B", "c": "C", "d": "D", "e": "E"], "a56161614161626142616361436164614461656145")
    try expect(Fields(a: 1, b: [2, 3]), "bf61610161629f0203ffff", isPreferred: false)
    try expect(TextAndMap("a", ["b": "c"]), "826161bf61626163ff", isPreferred: false)
    try expect(Flagged(isFun: true, amount: -2), "bf6346756ef563416d7421ff", isPreferred: false)
  }
}
