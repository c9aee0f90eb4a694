import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderExpiry

@Suite struct ExpiringCodecTests {
  private let json = JSONTextCodec.jsonText.expiring()
  private let raw = RawCodec.raw.expiring()

  private func bytes<Value>(of value: Value, by codec: some Codec<Value>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  private func value<Value>(of bytes: [UInt8], by codec: some Codec<Value>) throws -> Value {
    try bytes.withUnsafeBytes { try codec.decode($0.bytes) }
  }

  private func deadline(_ microseconds: Int64, window: Int64? = nil) -> ExpiryDeadline {
    ExpiryDeadline(time: WallTime(microseconds: microseconds), windowMicroseconds: window)
  }

  @Test func `the name and the format depend on the base`() {
    #expect(json.name == "json+expiring")
    #expect(json.format == .json)
    #expect(raw.name == "raw+expiring")
    #expect(raw.format == .binary)
    #expect(json.base.name == "json")
    #expect(RawCodec.raw.checksummed().expiring().name == "raw+crc32c+expiring")
    #expect(RawCodec.raw.expiring().checksummed().name == "raw+expiring+crc32c")
  }

  @Test func `json stays JSON`() throws {
    let text = try JSONText(#"{"name":"Ada"}"#)
    let forms: [(ExpiryDeadline?, String)] = [
      (nil, #"{"value":{"name":"Ada"}}"#),
      (deadline(1_767_225_600_000_000), #"{"expires":1767225600000000,"value":{"name":"Ada"}}"#),
      (
        deadline(1_767_225_600_000_000, window: 60_000_000),
        #"{"expires":1767225600000000,"window":60000000,"value":{"name":"Ada"}}"#
      ),
      (deadline(-1), #"{"expires":-1,"value":{"name":"Ada"}}"#),
    ]
    for (deadline, form) in forms {
      let expiring = Expiring(text, deadline: deadline)
      #expect(String(decoding: try bytes(of: expiring, by: json), as: UTF8.self) == form)
      #expect(try value(of: Array(form.utf8), by: json) == expiring)
    }
  }

  @Test func `json edited by hand is read`() throws {
    let text = "\n{ \"value\" : [1, 2] ,\n \"expires\" : 7 }\n"
    #expect(try value(of: Array(text.utf8), by: json) == Expiring(JSONText("[1,2]"), deadline: deadline(7)))
  }

  @Test(arguments: [
    #"{}"#, #"{"expires":1}"#, #"{"expires":1,"expires":2,"value":1}"#, #"{"value":1,"value":2}"#,
    #"{"expire":1,"value":1}"#, #"{"expires":1.5,"value":1}"#, #"{"expires":"1","value":1}"#,
    #"{"expires":null,"value":1}"#, #"{"expires":9223372036854775808,"value":1}"#, #"{"window":1,"value":1}"#,
    #"{"expires":1,"window":0,"value":1}"#, #"{"expires":1,"window":-1,"value":1}"#,
  ])
  func `json with an invalid deadline is refused`(_ text: String) {
    #expect(throws: ValueFormatError.self) { try value(of: Array(text.utf8), by: json) }
  }

  @Test(arguments: ["", "7", "{", #"{"value":1"#, #"{"value":1}}"#, #"{"value":}"#, "[]"])
  func `other than objects are refused`(_ text: String) {
    #expect(throws: JSONSyntaxError.self) { try value(of: Array(text.utf8), by: json) }
  }

  @Test func `binary values follow their deadline`() throws {
    let forms: [(ExpiryDeadline?, [UInt8])] = [
      (nil, [1]),
      (deadline(0x0102_0304_0506_0708), [2, 1, 2, 3, 4, 5, 6, 7, 8]),
      (deadline(-1, window: 258), [3, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 1, 2]),
    ]
    for (deadline, header) in forms {
      for content in [[], [9], [1, 2, 3]] as [[UInt8]] {
        let expiring = Expiring(content, deadline: deadline)
        #expect(try bytes(of: expiring, by: raw) == header + content)
        #expect(try value(of: header + content, by: raw) == expiring)
      }
      for length in 0..<header.count {
        #expect(throws: ValueFormatError.self) { try value(of: Array(header.prefix(length)), by: raw) }
      }
    }
    for mark in [0, 4, 255] as [UInt8] {
      #expect(throws: ValueFormatError.self) { try value(of: [mark] + Array(repeating: 1, count: 30), by: raw) }
    }
    #expect(throws: ValueFormatError.self) { try value(of: [3] + Array(repeating: 0, count: 16), by: raw) }
  }

  @Test func `encoding appends to existing bytes`() throws {
    var bytes: [UInt8] = [7]
    try raw.encode(Expiring([8], deadline: nil), into: &bytes)
    #expect(bytes == [7, 1, 8])
  }

  @Test func `random values round trip with every codec`() throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "ExpiringCodecTests")
    let codecs: [any Codec<Expiring<String?>>] = [
      JSONCodec<String?>().expiring(), JSONCodec<String?>().checksummed().expiring(),
      JSONCodec<Expiring<String?>>(), JSONCodec<String?>().expiring().checksummed(),
    ]
    for _ in 0..<500 {
      var expiring = Expiring<String?>(Bool.random(using: &generator) ? "\(generator.next())" : nil)
      if Bool.random(using: &generator) {
        let window = Bool.random(using: &generator) ? Int64.random(in: 1 ... .max, using: &generator) : nil
        expiring.deadline = deadline(.random(in: .min ... .max, using: &generator), window: window)
      }
      for codec in codecs {
        #expect(
          try value(of: bytes(of: expiring, by: codec), by: codec) == expiring,
          "seed \(SeededGenerator.seedOfProcess), \(codec.name)")
      }
    }
  }

  /// The `Codable` conformance writes the same JSON as the codec, so a program can change from one to the other.
  @Test func `codable writes the same JSON`() throws {
    let expiring = Expiring(7, deadline: deadline(5, window: 3))
    let own: [UInt8] = try bytes(of: expiring, by: JSONCodec<Expiring<Int>>())
    #expect(try value(of: own, by: JSONCodec<Int>().expiring()) == expiring)
    let text = try bytes(of: expiring, by: JSONCodec<Int>().expiring())
    #expect(try value(of: text, by: JSONCodec<Expiring<Int>>()) == expiring)
    #expect(throws: ValueFormatError.self) {
      try value(of: Array(#"{"window":3,"value":7}"#.utf8), by: JSONCodec<Expiring<Int>>())
    }
  }

  @Test func `errors of the base pass through and errors show no value`() throws {
    #expect(throws: EncodingError.self) { try bytes(of: Expiring(Double.nan), by: .json().expiring()) }
    #expect(throws: DecodingError.self) {
      try value(of: Array(#"{"value":"x"}"#.utf8), by: JSONCodec<Int>().expiring())
    }
    let error = try #require(throws: ValueFormatError.self) {
      try value(of: Array(#"{"secret":1,"value":1}"#.utf8), by: json)
    }
    let shown = StoreError(.corrupted, during: .value, message: "damaged", underlying: error).description
    #expect(shown.contains(error.description))
    #expect(!shown.contains("secret"))
  }
}
