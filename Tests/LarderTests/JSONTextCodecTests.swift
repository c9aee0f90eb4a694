import Larder
import Testing

@Suite struct JSONTextCodecTests {
  @Test func `text stays unchanged`() throws {
    for text in ["null", "9007199254740993", "-0.0", "1e308", "\"\\u0041\"", "{\"b\":1,\"a\":[]}"] {
      let value = try JSONText(text)
      var bytes: [UInt8] = [9]
      try JSONTextCodec.jsonText.encode(value, into: &bytes)
      #expect(bytes == [9] + Array(text.utf8))
      #expect(try bytes.dropFirst().withUnsafeBytes { try JSONTextCodec.jsonText.decode($0.bytes) } == value)
    }
  }

  @Test func `both JSON codecs read each others output`() throws {
    let value = ["a": [1.5, -2], "é": []]
    var bytes: [UInt8] = []
    try JSONCodec<[String: [Double]]>().encode(value, into: &bytes)
    let text = try bytes.withUnsafeBytes { try JSONTextCodec().decode($0.bytes) }
    var again: [UInt8] = []
    try JSONTextCodec().encode(text, into: &again)
    #expect(try again.withUnsafeBytes { try JSONCodec<[String: [Double]]>().decode($0.bytes) } == value)
  }

  @Test(arguments: ["", "{", "1 2", "\"\\ud800\""]) func `refuses invalid JSON`(_ text: String) {
    #expect(throws: JSONSyntaxError.self) {
      try Array(text.utf8).withUnsafeBytes { try JSONTextCodec().decode($0.bytes) }
    }
  }

  @Test func `is named`() {
    func name(of codec: some Codec<JSONText>) -> String { codec.name }
    #expect(name(of: .jsonText) == "json")
    #expect(JSONTextCodec().format == .json)
  }
}
