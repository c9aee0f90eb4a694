import Larder
import Testing

@Suite struct HexadecimalTests {
  @Test func `every byte round trips`() {
    let bytes = Array(UInt8.min...UInt8.max)
    let text = Hexadecimal.text(of: bytes)
    #expect(text.hasPrefix("000102") && text.hasSuffix("fdfeff"))
    #expect(text.count == 512)
    #expect(Hexadecimal.bytes(of: Array(text.utf8)) == bytes)
    #expect(Hexadecimal.bytes(of: Array(text.uppercased().utf8)) == bytes)
    #expect(Hexadecimal.digits(of: bytes) == Array(text.utf8))
  }

  @Test func `empty text has no bytes`() {
    #expect(Hexadecimal.text(of: []).isEmpty)
    #expect(Hexadecimal.bytes(of: []) == [])
  }

  @Test(arguments: ["0", "000", "0g", "g0", "/0", ":0", "@0", "G0", "`0", " 0", "0 ", "+1", "-1", "0x", "\u{E9}"])
  func `text other than pairs of digits is refused`(_ digits: String) {
    #expect(Hexadecimal.bytes(of: Array(digits.utf8)) == nil)
  }

  @Test func `a key is created from digits of either case`() {
    #expect(StoreKey(hexadecimal: "80c0FF")?.bytes == [0x80, 0xC0, 0xFF])
    #expect(StoreKey(hexadecimal: "")?.isEmpty == true)
    #expect(StoreKey(bytes: [0x80, 0xC0, 0xFF]).hexadecimal == "80c0ff")
    for text in ["8", "8g", " 80", "80 ", "0x80", "٣٣", "８０"] { #expect(StoreKey(hexadecimal: text) == nil) }
  }

  @Test func `reads only the slice`() {
    #expect(Hexadecimal.bytes(of: Array("zz80c0zz".utf8)[2..<6]) == [0x80, 0xC0])
  }
}
