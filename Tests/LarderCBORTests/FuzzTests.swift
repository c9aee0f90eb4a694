import Foundation
import LarderCBOR
import LarderTesting
import Testing

/// A short version of `make fuzz`.
@Suite struct FuzzTests {
  /// A record with a field of every kind.
  private static let record = Coding.bytes(
    "b1626964187b646e616d656341646164666c6167f565736d616c6c3863" + "6477696465c249010000000000000000"
      + "666e756d626572fb3ff199999999999a6464617465d903e9a10582361b0bd58440ffbe76c9"
      + "6475756964d8255000112233445566778899aabbccddeeff6464617461430102036764"
      + "6563696d616cc48221196ab36375726cd8206d687474703a2f2f612e622f632464746167738261786179"
      + "6673636f726573a26161f93e006162fa47c3500068" + "62794e756d626572a201410205427071" + "6373657483010203"
      + "657368617065a166636972636c65a2667261646975730165" + "6c6162656cf6" + "65696e6e657280")

  @Test func `mutated values are handled safely`() throws {
    var random = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "fuzzing of CBOR")
    var acceptedCount = 0
    for round in 0..<1500 {
      var bytes = round.isMultiple(of: 3) ? FuzzTests.record : RandomItem.bytes(using: &random)
      if bytes.isEmpty { continue }
      for _ in 0..<Int.random(in: 0..<4, using: &random) {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
        case 3 where bytes.count > 1: bytes.remove(at: index)
        case 4 where bytes.count > 1: bytes.removeSubrange(index...)
        default: bytes.insert(contentsOf: bytes[index..<min(index + 12, bytes.count)], at: index)
        }
        if bytes.isEmpty { bytes = [0] }
      }
      acceptedCount += try bytes.withUnsafeBytes { bytes in
        DecoderProbe.ask(bytes)
        return try DecoderProbe.run(bytes)
      }
    }
    // Ensures that some values are accepted.
    #expect(acceptedCount > 300)
  }

  /// Length prefixes far beyond the input.
  @Test(arguments: ["5b", "7b", "9b", "bb", "c25b", "c4829b", "d903e9a1059b", "a162696" + "49b", "819b", "a1619b"])
  func `lengths without bytes take no memory`(_ head: String) throws {
    for length in ["0000000100000000", "00000fffffffffff", "7fffffffffffffff", "8000000000000000", "ffffffffffffffff"] {
      for rest in ["", "00", String(repeating: "00", count: 100)] {
        let bytes = Coding.bytes(head + length + rest)
        #expect(try bytes.withUnsafeBytes { try DecoderProbe.run($0) } == 0)
      }
    }
  }
}
