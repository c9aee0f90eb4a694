import Testing

@testable import LarderCommand

@Suite struct HexadecimalTextTests {
  @Test func digitsOfEitherCaseAreAccepted() {
    #expect(HexadecimalText.bytes(of: "80c0FF") == [0x80, 0xC0, 0xFF])
    #expect(HexadecimalText.bytes(of: "") == [])
  }

  @Test(arguments: ["8", "8g", " 80", "80 ", "0x80", "٣٣", "８０"])
  func textThatIsNotPairsOfDigitsIsRefused(text: String) {
    #expect(HexadecimalText.bytes(of: text) == nil)
  }

  @Test func everyByteRoundTrips() {
    let bytes = Array(UInt8.min...UInt8.max)
    #expect(HexadecimalText.bytes(of: HexadecimalText.text(of: bytes)) == bytes)
  }
}
