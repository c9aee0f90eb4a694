import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct EntryLineTests {
  private func line(_ append: (inout [UInt8]) -> Void) -> String {
    var bytes: [UInt8] = []
    append(&bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test func `an entry is one line`() throws {
    let value = try JSONText("{\"a\" : -0.0}")
    #expect(line { EntryLine.append(key: "a\n\"", value: value, to: &$0) } == #"{"key":"a\n\"","value":{"a":-0.0}}"#)
    #expect(line { EntryLine.append(key: "é", to: &$0) } == #"{"key":"é"}"#)
  }

  @Test func `a key that is not text is digits`() {
    let key = StoreKey(bytes: [0x80, 0xC0] as [UInt8])
    #expect(line { EntryLine.append(key: key, to: &$0) } == #"{"keyBytes":"80c0"}"#)
  }

  @Test func `damage is one line`() {
    let known = VerificationReport.Finding(key: "k", place: "x.json, line 3", message: "it's \"bad\"")
    #expect(
      line { EntryLine.append(known, to: &$0) } == #"{"key":"k","place":"x.json, line 3","message":"it's \"bad\""}"#)
    let unknown = VerificationReport.Finding(key: nil, place: "p", message: "m")
    #expect(line { EntryLine.append(unknown, to: &$0) } == #"{"key":null,"place":"p","message":"m"}"#)
  }
}
