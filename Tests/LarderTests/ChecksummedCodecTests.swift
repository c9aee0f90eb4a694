import Larder
import LarderTesting
import Testing

@Suite struct ChecksummedCodecTests {
  private let codec: some Codec<[UInt8]> = .raw.checksummed()

  private func bytes<Value>(of value: Value, by codec: some Codec<Value>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  private func value<Value>(of bytes: [UInt8], by codec: some Codec<Value>) throws -> Value {
    try bytes.withUnsafeBytes { try codec.decode($0.bytes) }
  }

  @Test func `the checksum follows the bytes in little endian order`() throws {
    let value = Array("123456789".utf8)
    let bytes = try bytes(of: value, by: codec)
    // The check value of CRC-32C, 0xE3069283, inverted.
    #expect(bytes == value + [0x7C, 0x6D, 0xF9, 0x1C])
    #expect(try self.value(of: bytes, by: codec) == value)
  }

  @Test func `encoding appends to existing bytes`() throws {
    var bytes: [UInt8] = [1, 2, 3]
    try codec.encode(Array("123456789".utf8), into: &bytes)
    #expect(bytes == [1, 2, 3] + Array("123456789".utf8) + [0x7C, 0x6D, 0xF9, 0x1C])
  }

  @Test(arguments: [0, 1, 3, 4, 5, 7, 8, 9, 31, 200])
  func `every flipped bit and every truncation is found`(count: Int) throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "ChecksummedCodecTests \(count)")
    let value = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let sound = try bytes(of: value, by: codec)
    #expect(sound.count == count + 4)
    #expect(try self.value(of: sound, by: codec) == value)
    for bit in 0..<sound.count * 8 {
      var damaged = sound
      damaged[bit / 8] ^= 1 << (bit % 8)
      #expect(throws: ChecksumError(byteCount: sound.count)) { try self.value(of: damaged, by: codec) }
    }
    for length in 0..<min(sound.count, 4) {
      #expect(throws: ChecksumError(byteCount: length)) { try self.value(of: Array(sound.prefix(length)), by: codec) }
    }
  }

  @Test func `zeros are damage`() throws {
    for count in 0...100 {
      #expect(throws: ChecksumError.self) { try self.value(of: Array(repeating: 0, count: count), by: codec) }
    }
    #expect(try bytes(of: [], by: codec) == [0xFF, 0xFF, 0xFF, 0xFF])
  }

  @Test func `the codec has its own name and format`() {
    let json = JSONTextCodec.jsonText.checksummed()
    #expect(json.name == "json+crc32c")
    #expect(json.format == .binary)
    #expect(json.base.name == "json")
    #expect(json.checksummed().name == "json+crc32c+crc32c")
  }

  @Test func `errors of the base pass through`() throws {
    let codec = JSONTextCodec.jsonText.checksummed()
    let noJSON = try bytes(of: Array("{".utf8), by: self.codec)
    #expect(throws: JSONSyntaxError.self) { try self.value(of: noJSON, by: codec) }
    #expect(throws: EncodingError.self) { try self.bytes(of: Double.nan, by: .json().checksummed()) }
  }

  @Test func `the error shows no value`() {
    let error = StoreError(
      .corrupted, during: .value, store: "s", message: "damaged", underlying: ChecksumError(byteCount: 7))
    #expect(error.description.contains("the checksum does not match the 7 bytes"))
  }
}
