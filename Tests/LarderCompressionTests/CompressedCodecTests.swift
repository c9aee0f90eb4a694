#if Compression
import Larder
import LarderTesting
import Testing

@testable import LarderCompression

@Suite struct CompressedCodecTests {
  private let text = Array(String(repeating: "to be or not to be, that is the question; ", count: 20).utf8)

  private func dictionary(_ text: String) throws -> CompressionDictionary {
    try CompressionDictionary(Array(text.utf8))
  }

  // MARK: The format

  @Test func `the name says that values are compressed`() throws {
    #expect(JSONCodec<String>().compressed().name == "json+deflate")
    #expect(RawCodec.raw.checksummed().compressed(level: 9).checksummed().name == "raw+crc32c+deflate+crc32c")
    #expect(RawCodec.raw.compressed(dictionary: try dictionary("that")).name == "raw+deflate")
    #expect(JSONCodec<String>().compressed().format == .binary)
  }

  @Test func `small and incompressible values cost one byte`() throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "CompressedCodecTests")
    for count in [0, 1, 47, 48, 511, 512, 3000, 100_000] {
      let noise = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
      for codec in [
        RawCodec().compressed(threshold: 0), RawCodec().compressed(dictionary: try dictionary("that"), threshold: 0),
      ] {
        let bytes = try Coding.bytes(of: noise, by: codec)
        #expect(bytes == [0] + noise)
        #expect(try Coding.value(of: bytes, by: codec) == noise)
      }
    }
    #expect(try Coding.bytes(of: Array(text.prefix(511)), by: .raw.compressed()).first == 0)
    #expect(try Coding.bytes(of: Array(text.prefix(512)), by: .raw.compressed()).first == 1)
    let short = RawCodec.raw.compressed(dictionary: try dictionary(String(decoding: text, as: UTF8.self)))
    #expect(try Coding.bytes(of: Array(text.prefix(47)), by: short).first == 0)
    #expect(try Coding.bytes(of: Array(text.prefix(48)), by: short).first == 2)
    #expect(try Coding.bytes(of: text, by: .raw.compressed(threshold: .max)) == [0] + text)
  }

  @Test func `the layout is the published one`() throws {
    let bytes = try Coding.bytes(of: text, by: .raw.compressed())
    var deflater = try ZlibDeflater()
    var deflated: [UInt8] = []
    try text.withUnsafeBytes { try deflater.deflate($0, appendingTo: &deflated) }
    let saved = text.count - deflated.count
    #expect(saved > 127 && saved < 16_384)
    let checksum = text.withUnsafeBytes { ZlibCRC32.checksum(of: $0) }
    let header: [UInt8] = [1, UInt8(saved & 0x7F) | 0x80, UInt8(saved >> 7)]
    #expect(Array(bytes.prefix(7)) == header + withUnsafeBytes(of: checksum.littleEndian) { Array($0) })
    #expect(try Coding.value(of: bytes, by: .raw.compressed()) == text)
    // The window is smaller than the maximum, which makes no difference for so short a value.
    #expect(Array(bytes.dropFirst(7)) == deflated)

    let dictionary = try dictionary("123456789")
    #expect(dictionary.id.rawValue == 0x3926)
    let withDictionary = try Coding.bytes(of: text, by: .raw.compressed(dictionary: dictionary))
    #expect(Array(withDictionary.prefix(3)) == [2, 0x26, 0x39])
  }

  @Test func `encoding appends to existing bytes`() throws {
    for value in [text, Array(text.prefix(10))] {
      var bytes: [UInt8] = [7, 8, 9]
      try RawCodec.raw.compressed().encode(value, into: &bytes)
      #expect(try bytes == [7, 8, 9] + Coding.bytes(of: value, by: .raw.compressed()))
    }
  }

  @Test(arguments: [-5, 1, 6, 9, 50], [0, 20, 5000, 32_768])
  func `values of every size round trip`(level: Int, dictionarySize: Int) throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "CompressedCodecTests \(level)")
    func text(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 97...104, using: &generator) } }
    let dictionary = dictionarySize == 0 ? nil : try CompressionDictionary(text(dictionarySize))
    let codec = RawCodec.raw.compressed(level: level, dictionary: dictionary, threshold: 0)
    for count in [0, 1, 2, 60, 150, 2047, 2048, 2049, 70_000, 3] {
      let value = text(count)
      let bytes = try Coding.bytes(of: value, by: codec)
      #expect(bytes.count <= count + 1)
      #expect(try Coding.value(of: bytes, by: codec) == value)
    }
  }

  @Test func `the window fits every size`() {
    #expect(CompressionStreams.windowBits(for: 0) == 10)
    #expect(CompressionStreams.windowBits(for: 1024 - 262) == 10)
    #expect(CompressionStreams.windowBits(for: 1024 - 261) == 11)
    #expect(CompressionStreams.windowBits(for: 32_768) == 15)
    #expect(CompressionStreams.windowBits(for: .max / 2) == 15)
  }

  @Test func `errors of the base codec pass through`() throws {
    #expect(throws: EncodingError.self) { try Coding.bytes(of: Double.nan, by: JSONCodec().compressed()) }
    let bytes = try Coding.bytes(of: text, by: .raw.compressed())
    #expect(throws: JSONSyntaxError.self) { try Coding.value(of: bytes, by: JSONTextCodec().compressed()) }
    #expect(throws: JSONSyntaxError.self) { try Coding.value(of: [0, 1], by: JSONTextCodec().compressed()) }
  }

  @Test func `one codec serves many tasks`() async throws {
    let samples = SampleRecords.users(200, seed: 1)
    let codec = RawCodec.raw.compressed(dictionary: try .train(on: samples, size: 1024))
    let expected = try samples.map { try Coding.bytes(of: $0, by: codec) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { @concurrent () async throws in
          for (sample, bytes) in zip(samples, expected) {
            #expect(try Coding.bytes(of: sample, by: codec) == bytes)
            #expect(try Coding.value(of: bytes, by: codec) == sample)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  // MARK: Dictionaries

  @Test func `old values stay readable after a new dictionary`() throws {
    let old = try dictionary("to be or not to be")
    let new = try dictionary("that is the question")
    let value = Array(text.prefix(60))
    var dictionaries = CompressionDictionaries()
    let plain = try Coding.bytes(of: value, by: .raw.compressed(dictionaries: dictionaries, threshold: 0))
    try dictionaries.add(old)
    let first = try Coding.bytes(of: value, by: .raw.compressed(dictionaries: dictionaries))
    try dictionaries.add(new)
    let codec = RawCodec.raw.compressed(dictionaries: dictionaries)
    let second = try Coding.bytes(of: value, by: codec)
    #expect([plain, first, second].map { $0[0] } == [1, 2, 2])
    #expect(first != second)
    #expect(try second == Coding.bytes(of: value, by: .raw.compressed(dictionary: new)))
    for bytes in [plain, first, second] { #expect(try Coding.value(of: bytes, by: codec) == value) }
  }

  @Test func `a missing dictionary is named`() throws {
    let missing = try dictionary("to be or not to be")
    let other = try dictionary("that is the question")
    let bytes = try Coding.bytes(of: Array(text.prefix(60)), by: .raw.compressed(dictionary: missing))
    #expect(throws: MissingDictionaryError(id: missing.id, availableIDs: [])) {
      try Coding.value(of: bytes, by: .raw.compressed())
    }
    let error = #expect(throws: MissingDictionaryError.self) {
      try Coding.value(of: bytes, by: .raw.compressed(dictionary: other))
    }
    #expect(error == MissingDictionaryError(id: missing.id, availableIDs: [other.id]))
    #expect(error?.description.contains("the dictionary \(missing.id), and only \(other.id) is available") == true)
  }

  @Test func `another dictionary with the same identifier gives no wrong value`() throws {
    let original = try dictionary("to be or not to be")
    // One in 65,536 dictionaries has the same identifier, so one can be found by search.
    let namesake = try #require(
      try (0..<2_000_000 as Range<Int>).lazy.map { try dictionary("to be xor not to be \($0)") }
        .first { $0.id == original.id })
    #expect(namesake != original)
    let bytes = try Coding.bytes(of: Array(text.prefix(60)), by: .raw.compressed(dictionary: original))
    #expect(throws: ChecksumError(byteCount: 60)) {
      try Coding.value(of: bytes, by: .raw.compressed(dictionary: namesake))
    }
  }

  // MARK: Damage

  private func expectDamageIsFound(of bytes: [UInt8], value: [UInt8], by codec: some Codec<[UInt8]>) {
    for length in 0..<bytes.count {
      let error = #expect(throws: (any Error).self) { try Coding.value(of: Array(bytes.prefix(length)), by: codec) }
      #expect(error is any RedactedError, "\(length) bytes")
    }
    for bit in 0..<8 * bytes.count {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << (bit % 8)
      do {
        // The first byte may become that of an uncompressed value, which has no checksum.
        let found = try Coding.value(of: damaged, by: codec)
        #expect(found == value || damaged[0] == 0, "bit \(bit)")
      } catch {
        #expect(error is any RedactedError, "bit \(bit)")
      }
    }
  }

  @Test func `every truncation and every changed bit is found`() throws {
    let value = Array(text.prefix(100))
    let plain = RawCodec.raw.compressed(threshold: 0)
    expectDamageIsFound(of: try Coding.bytes(of: value, by: plain), value: value, by: plain)
    let with = RawCodec.raw.compressed(dictionary: try dictionary("that is the question"))
    expectDamageIsFound(of: try Coding.bytes(of: value, by: with), value: value, by: with)
    #expect(throws: ValueFormatError("the value is empty")) { try Coding.value(of: [], by: plain) }
    #expect(throws: ValueFormatError.self) { try Coding.value(of: [3] + value, by: plain) }
  }

  @Test func `uncompressed values can have a checksum`() throws {
    let value = Array(text.prefix(30))
    let codec = RawCodec.raw.compressed().checksummed()
    let bytes = try Coding.bytes(of: value, by: codec)
    for bit in 0..<8 * bytes.count {
      var damaged = bytes
      damaged[bit / 8] ^= 1 << (bit % 8)
      #expect(throws: ChecksumError.self) { try Coding.value(of: damaged, by: codec) }
    }
  }

  @Test func `a false size allocates no memory`() throws {
    var deflater = try ZlibDeflater()
    var bomb: [UInt8] = []
    try [UInt8](repeating: 0, count: 1_000_000).withUnsafeBytes { try deflater.deflate($0, appendingTo: &bomb) }
    let checksum = [UInt8](repeating: 0, count: 1_000_000).withUnsafeBytes { ZlibCRC32.checksum(of: $0) }
    func bytes(declaring size: Int) -> [UInt8] {
      CompressedValueHeader(dictionaryID: nil, size: size, checksum: checksum).bytes(contentSize: bomb.count) + bomb
    }
    let codec = RawCodec.raw.compressed()
    #expect(try Coding.value(of: bytes(declaring: 1_000_000), by: codec).count == 1_000_000)
    for size in [bomb.count, 100_000, 999_999, 1_000_001] {
      #expect(throws: ValueFormatError("the compressed bytes are damaged")) {
        try Coding.value(of: bytes(declaring: size), by: codec)
      }
    }
    for size in [bomb.count * 1033 + 1033, .max] {
      #expect(
        throws: ValueFormatError("\(bomb.count) compressed bytes are too few for the length that the value states")
      ) {
        try Coding.value(of: bytes(declaring: size), by: codec)
      }
    }
    // A length beyond all integers, and a length that never ends.
    for length: [UInt8] in [
      Array(repeating: 0xFF, count: 9) + [0x01], Array(repeating: 0xFF, count: 9) + [0x02],
      Array(repeating: 0x80, count: 12) + [0x01], Array(repeating: 0x80, count: 40),
    ] {
      #expect(throws: ValueFormatError.self) {
        try Coding.value(of: [1] + length + [0, 0, 0, 0] + bomb, by: codec)
      }
    }
  }
}
#endif
