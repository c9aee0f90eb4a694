#if Compression
import LarderTesting
import Testing

@testable import LarderCompression

@Suite struct ZlibDeflaterTests {
  private func deflated(_ data: [UInt8], by deflater: inout ZlibDeflater) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try data.withUnsafeBytes { try deflater.deflate($0, appendingTo: &bytes) }
    return bytes
  }

  private func inflated(_ bytes: [UInt8], size: Int, dictionary: [UInt8] = []) throws -> [UInt8] {
    var inflater = try ZlibInflater()
    return try bytes.withUnsafeBytes { try inflater.inflate($0, size: size, dictionary: dictionary.span.bytes) }
  }

  private func text(_ count: Int, by generator: inout SeededGenerator) -> [UInt8] {
    (0..<count).map { _ in UInt8.random(in: 97...104, using: &generator) }
  }

  @Test(arguments: [0, 1, 6, 9], [[], Array("hello, hello, world".utf8)])
  func `one stream serves many pieces of data`(level: Int, dictionary: [UInt8]) throws {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "ZlibDeflaterTests")
    var deflater = try ZlibDeflater(level: level, dictionary: dictionary.span.bytes)
    for count in [0, 1, 2, 100, 3, 70_000, 0, 40_000, 150] {
      let data = text(count, by: &generator)
      let bytes = try deflated(data, by: &deflater)
      #expect(try inflated(bytes, size: count, dictionary: dictionary) == data)
    }
  }

  @Test func `every piece is compressed independently`() throws {
    let dictionary = Array("the quick brown fox".utf8)
    let data = Array("the lazy dog and the quick brown fox".utf8)
    var used = try ZlibDeflater(dictionary: dictionary.span.bytes)
    let first = try deflated(data, by: &used)
    _ = try deflated(Array(repeating: 1, count: 100_000), by: &used)
    #expect(try deflated(data, by: &used) == first)
    var without = try ZlibDeflater()
    #expect(try deflated(data, by: &without).count > first.count)
  }

  @Test func `insufficient capacity is reported`() throws {
    let data = Array("abcdefghijklmnopqrstuvwxyz".utf8)
    var deflater = try ZlibDeflater()
    let whole = try deflated(data, by: &deflater)
    for room in 0...whole.count {
      var output = [UInt8](repeating: 0, count: room)
      let written = try data.withUnsafeBytes { data in
        try output.withUnsafeMutableBytes { try deflater.deflate(data, into: $0) }
      }
      #expect(written == (room == whole.count ? room : nil))
    }
    #expect(try deflated(data, by: &deflater) == whole)
  }

  @Test(arguments: [(-2, 15, 8), (10, 15, 8), (6, 16, 8), (6, 7, 8), (6, 15, 0), (6, 15, 10)])
  func `a parameter outside its range is refused`(level: Int, windowBits: Int, memoryLevel: Int) {
    #expect(throws: ZlibError(code: -2)) {
      _ = try ZlibDeflater(level: level, windowBits: windowBits, memoryLevel: memoryLevel)
    }
  }

  @Test func `errors include the librarys message`() {
    #expect(ZlibError(code: -3).description == "data error (-3)")
    #expect(ZlibError(code: -4).description == "insufficient memory (-4)")
  }
}
#endif
