import Foundation
import Larder
import Testing

@Suite struct JSONTextWritingTests {
  private static func json(_ text: some Sequence<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    JSONText.append(string: text, to: &bytes)
    return bytes
  }

  @Test func `every character round trips`() throws {
    let scalars =
      (UInt32(0)...0x2FF).compactMap(UnicodeScalar.init) + [
        "\u{2028}", "\u{D7FF}", "\u{E000}", "\u{FFFF}", "\u{10FFFF}",
      ]
    for scalar in scalars {
      let text = "a\(Character(scalar))b"
      let json = JSONTextWritingTests.json(text.utf8)
      let read = try JSONSerialization.jsonObject(with: Data(json), options: .fragmentsAllowed) as? String
      #expect(read.map { Array($0.utf8) } == Array(text.utf8), "U+\(String(scalar.value, radix: 16))")
      var scanner = JSONScanner(json[...])
      #expect(try scanner.string() == Array(text.utf8))
      #expect(!json.contains { $0 < 0x20 })
    }
  }

  @Test func `escapes only required characters`() {
    #expect(String(decoding: JSONTextWritingTests.json("\"\\/\u{7F}é🐄".utf8), as: UTF8.self) == "\"\\\"\\\\/\u{7F}é🐄\"")
    #expect(String(decoding: JSONTextWritingTests.json("\n\r\t".utf8), as: UTF8.self) == #""\n\r\t""#)
    #expect(
      String(decoding: JSONTextWritingTests.json("\0\u{8}\u{C}\u{1F}".utf8), as: UTF8.self)
        == #""\u0000\u0008\u000c\u001f""#)
    #expect(JSONTextWritingTests.json([]) == [0x22, 0x22])
  }

  @Test func `writing appends to existing bytes`() {
    var bytes: [UInt8] = [1, 2]
    JSONText.append(string: "a".utf8, to: &bytes)
    JSONText.append(compacted: Array("x[ 1 ]x".utf8)[1..<6], to: &bytes)
    #expect(bytes == [1, 2] + Array("\"a\"[1]".utf8))
  }

  @Test func `compacting removes only whitespace between tokens`() {
    for (text, expected) in [
      (" [ 1 ,\n2\t]\r\n", "[1,2]"), ("\" a \"", "\" a \""), ("[\"\\\\\" , \"\\\" ,\" ]", "[\"\\\\\",\"\\\" ,\"]"),
      ("1", "1"), ("", ""),
      ("{ }", "{}"),
    ] {
      var bytes: [UInt8] = []
      JSONText.append(compacted: Array(text.utf8)[...], to: &bytes)
      #expect(String(decoding: bytes, as: UTF8.self) == expected)
    }
  }
}
