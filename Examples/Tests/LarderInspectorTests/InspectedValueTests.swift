import Larder
import LarderCBOR
import LarderTesting
import Testing

@testable import LarderInspector

@Suite("Forms of values")
struct InspectedValueTests {
  private func forms(_ bytes: [UInt8], _ format: CodecFormat = .binary) -> [InspectedValue.Form] {
    InspectedValue(bytes, format: format).forms
  }

  @Test func `the bytes decide the forms`() throws {
    #expect(forms(Array(#"{"a":1}"#.utf8)) == [.json, .text, .hex])
    #expect(forms(Array("plain".utf8)) == [.text, .hex])
    #expect(forms(Array("7".utf8)) == [.text, .hex])
    #expect(forms(Array("7".utf8), .json) == [.json, .text, .hex])
    #expect(forms([0xA1, 0x61, 0x61, 0x01]) == [.json, .cbor, .hex])
    #expect(forms([0x01], .cbor) == [.json, .cbor, .text, .hex])
    #expect(forms([0xFF, 0xFE]) == [.hex])
    #expect(forms([]) == [.text, .hex])
  }

  @Test(
    "Only four kinds of image are images",
    arguments: [
      ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00], "image/png"), ([0xFF, 0xD8, 0xFF, 0xE0], "image/jpeg"),
      (Array("GIF89a.".utf8), "image/gif"), (Array("GIF87a".utf8), "image/gif"),
      (Array("RIFF....WEBPVP8".utf8), "image/webp"),
      (Array("<svg xmlns='http://www.w3.org/2000/svg'>".utf8), nil), (Array("<html>".utf8), nil),
      (Array("%PDF-".utf8), nil),
      (Array("GIF88a".utf8), nil), (Array("RIFF....WAVE".utf8), nil), ([0x89, 0x50, 0x4E, 0x47], nil), ([], nil),
      (Array("BM....".utf8), nil), ([0x00, 0x00, 0x01, 0x00], nil), (Array(" GIF89a".utf8), nil),
    ] as [([UInt8], String?)]) func images(bytes: [UInt8], type: String?)
  {
    #expect(InspectedValue.Image(bytes)?.mediaType == type)
  }

  @Test("An edited value that is not touched stays the same value", arguments: [CodecFormat.json, .cbor, .binary])
  func editing(format: CodecFormat) throws {
    var generator = SeededGenerator(seed: 7)
    let texts = [
      #"{"a":[1.50,"x\u202e"],"b":{}}"#, "[\"\u{202E}\"]", "two\nlines\n", "\ntwo", "a\rb", "nul\u{0}", "", " ",
      "é<&>\"'", "\u{FEFF}x",
    ].map { Array($0.utf8) }
    let random = (0..<200).map { _ in
      (0..<Int.random(in: 0...80, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
    let items = try [#"{"a":[1,{"$base64":"AQID"}],"$b":2.5}"#, #"{"$tag":1,"$value":7}"#].map {
      try CBORItem(JSONText($0)).bytes
    }
    for bytes in texts + random + items {
      let edited = try #require(InspectedValue(bytes, format: format).edited)
      // A browser sends line ends as two characters.
      let sent = edited.text.replacing("\n", with: "\r\n")
      let stored = try edited.form.bytes(of: sent)
      #expect(try edited.form == .json ? JSONText(stored) == JSONText(bytes) : stored == bytes)
    }
  }

  @Test func `what has not the form is refused`() {
    for (form, text) in [(EditForm.json, "{"), (.cbor, "nope"), (.hex, "0"), (.hex, "zz")] {
      #expect(throws: PageFailure.self) { try form.bytes(of: text) }
    }
  }

  @Test func `sizes and counts are readable`() {
    #expect(
      [0, 999, 1000, 1234, 12_345, 999_600, 5_000_000_000].map { Readable.size($0) } == [
        "0 B", "999 B", "1.0 kB", "1.2 kB", "12 kB", "1.0 MB", "5.0 GB",
      ])
    #expect([0, 999, 1000, -1_234_567].map { Readable.count($0) } == ["0", "999", "1,000", "-1,234,567"])
    #expect(Readable.duration(.milliseconds(5)) == "5 ms")
    #expect(Readable.duration(.seconds(3725)) == "1 h 2 min")
  }
}
