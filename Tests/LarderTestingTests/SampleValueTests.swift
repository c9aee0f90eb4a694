import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct SampleValueTests {
  private let codec = JSONCodec<SampleValue?>()

  private func roundTrip(_ value: SampleValue?) throws -> SampleValue? {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return try codec.decode(bytes.span.bytes)
  }

  @Test func `round trips`() throws {
    let value = SampleValue(
      "text", integer: .min, natural: .max, double: -0.0, flag: true, bytes: Data([0, 255]),
      date: Date(timeIntervalSinceReferenceDate: 0.1), list: ["a"], dictionary: ["a": [1]], children: [SampleValue()])
    #expect(try roundTrip(value) == value)
    #expect(try roundTrip(SampleValue()) == SampleValue())
    #expect(try roundTrip(nil) == nil)
  }

  @Test func `every part distinguishes values`() {
    let values = [
      SampleValue(), SampleValue("a"), SampleValue(integer: 1), SampleValue(natural: 1), SampleValue(double: 1),
      SampleValue(double: -0.0), SampleValue(flag: true), SampleValue(bytes: Data([1])), SampleValue(date: Date()),
      SampleValue(list: ["a"]), SampleValue(dictionary: ["a": []]), SampleValue(children: [SampleValue()]),
      SampleValue("\u{E9}"), SampleValue("e\u{301}"), SampleValue(list: ["\u{E9}"]), SampleValue(list: ["e\u{301}"]),
      .unencodable(""), .undecodable(""),
    ]
    #expect(Set(values).count == values.count)
    for (index, value) in values.enumerated() {
      #expect(values.firstIndex(of: value) == index)
    }
    #expect(SampleValue("a").hashValue == SampleValue("a").hashValue)
  }

  @Test func `an unencodable value throws on encoding`() {
    var bytes: [UInt8] = []
    #expect(throws: SampleValue.Refusal.encoding) { try codec.encode(.unencodable(), into: &bytes) }
    #expect(throws: SampleValue.Refusal.encoding) {
      try codec.encode(SampleValue(children: [.unencodable()]), into: &bytes)
    }
  }

  @Test func `an undecodable value is encoded and throws on decoding`() throws {
    var bytes: [UInt8] = []
    try codec.encode(.undecodable(), into: &bytes)
    #expect(throws: SampleValue.Refusal.decoding) { try codec.decode(bytes.span.bytes) }
  }

  @Test func `a description shows the content`() {
    #expect(SampleValue("a", integer: 1).description == #"SampleValue("a", integer: 1)"#)
    let long = String(repeating: "x", count: 100)
    #expect(SampleValue(long).description.hasPrefix("SampleValue(text of 100 bytes #"))
    #expect(SampleValue(long).description != SampleValue(long.dropLast() + "y").description)
  }
}
