import Larder
import LarderTesting
import Testing

@Suite struct RawCodecTests {
  @Test func `bytes stay unchanged`() throws {
    var random = SeededGenerator()
    for value in [[], [0], Array(UInt8.min...UInt8.max), [0x00, 0x80, 0xC0, 0xFF], random.bytes(count: 100_000)] {
      var bytes: [UInt8] = [9]
      try RawCodec.raw.encode(value, into: &bytes)
      #expect(bytes == [9] + value)
      #expect(try value.withUnsafeBytes { try RawCodec.raw.decode($0.bytes) } == value)
    }
  }

  @Test func `is named`() {
    func name(of codec: some Codec<[UInt8]>) -> String { codec.name }
    #expect(name(of: .raw) == "raw")
    #expect(RawCodec().format == .binary)
  }
}
