import Foundation
import Larder
import LarderCBOR
import Testing

/// Items of any type, which are kept as bytes.
@Suite struct CBORItemTests {
  @Test func `a field of any item is preserved`() throws {
    struct Envelope: Codable, Equatable {
      var kind: String
      var content: CBORItem
    }
    // {"kind": "x", "content": {_ "a": 1, "b": [_ 2, 3]}}
    let bytes = Coding.bytes("a2" + "646b696e646178" + "67636f6e74656e74" + "bf61610161629f0203ffff")
    let envelope = try Coding.decoded(Envelope.self, bytes)
    #expect(try Coding.encoded(envelope) == bytes)
    #expect(try envelope.content == CBORItem(Coding.bytes("bf61610161629f0203ffff")))
    // Another codec has a form for it, too.
    #expect(try JSONDecoder().decode(Envelope.self, from: JSONEncoder().encode(envelope)) == envelope)
  }

  @Test(arguments: ["", "0000", "61ff", "81", "ff", "9f", "7f61c361a9ff", "a161ff00", "1c", "81f800", "9f61ffff"])
  func `malformed items are neither read nor written`(_ hex: String) throws {
    Coding.expectRefused(CBORItem.self, hex)
    #expect(throws: DecodingError.self) { try CBORItem(Coding.bytes(hex)) }
    // Another codec cannot check the bytes.
    let json = try JSONEncoder().encode(["bytes": Coding.bytes(hex)])
    let item = try JSONDecoder().decode(CBORItem.self, from: json)
    #expect(throws: EncodingError.self) { try Coding.encoded([item]) }
  }

  /// An item that nests as deep as the limit can stand alone, but not in an array.
  @Test func `items that nest too deep are not written`() throws {
    let bytes = [UInt8](repeating: 0x81, count: 512) + [0]
    let item = try CBORItem(bytes)
    #expect(try Coding.encoded(item) == bytes)
    #expect(throws: EncodingError.self) { try Coding.encoded([item]) }
    #expect(throws: DecodingError.self) { try CBORItem([0x81] + bytes) }
  }
}
