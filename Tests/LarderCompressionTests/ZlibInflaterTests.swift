#if Compression
import LarderTesting
import Testing

@testable import LarderCompression

@Suite struct ZlibInflaterTests {
  private let data = Array("to be or not to be, that is the question whether to be".utf8)

  private func deflated(_ data: [UInt8], dictionary: [UInt8] = []) throws -> [UInt8] {
    var deflater = try ZlibDeflater(dictionary: dictionary.span.bytes)
    var bytes: [UInt8] = []
    try data.withUnsafeBytes { try deflater.deflate($0, appendingTo: &bytes) }
    return bytes
  }

  private func inflated(_ bytes: [UInt8], size: Int, dictionary: [UInt8] = []) throws -> [UInt8] {
    var inflater = try ZlibInflater()
    return try bytes.withUnsafeBytes { try inflater.inflate($0, size: size, dictionary: dictionary.span.bytes) }
  }

  @Test func `the size must be exact`() throws {
    let bytes = try deflated(data)
    #expect(try inflated(bytes, size: data.count) == data)
    for size in [-1, 0, data.count - 1, data.count + 1, .max] {
      #expect(throws: ZlibError.damaged) { try inflated(bytes, size: size) }
    }
    let nothing = try deflated([])
    #expect(try inflated(nothing, size: 0) == [])
    #expect(throws: ZlibError.damaged) { try inflated(nothing, size: 1) }
  }

  @Test func `truncated and trailing bytes are damage`() throws {
    let bytes = try deflated(data)
    for length in 0..<bytes.count {
      #expect(throws: ZlibError.damaged) { try inflated(Array(bytes.prefix(length)), size: data.count) }
    }
    #expect(throws: ZlibError.damaged) { try inflated(bytes + [0], size: data.count) }
  }

  @Test func `one stream serves many pieces of data`() throws {
    let dictionary = Array("that is the question".utf8)
    let with = try deflated(data, dictionary: dictionary)
    let without = try deflated(data)
    var inflater = try ZlibInflater()
    for _ in 0..<3 {
      let first = try with.withUnsafeBytes {
        try inflater.inflate($0, size: data.count, dictionary: dictionary.span.bytes)
      }
      #expect(first == data)
      #expect(throws: ZlibError.damaged) { try with.withUnsafeBytes { try inflater.inflate($0, size: data.count) } }
      let second = try without.withUnsafeBytes { try inflater.inflate($0, size: data.count) }
      #expect(second == data)
    }
  }

  @Test func `no data expands beyond the bound for declared sizes`() throws {
    let zeros = [UInt8](repeating: 0, count: 10_000_000)
    let bytes = try deflated(zeros)
    #expect(bytes.count * ZlibInflater.maximumExpansion > zeros.count)
    #expect(bytes.count * 1000 < zeros.count)
    #expect(try inflated(bytes, size: zeros.count) == zeros)
  }

  @Test func `the checksum matches the published algorithm`() {
    let digits = Array("123456789".utf8)
    #expect(digits.withUnsafeBytes { ZlibCRC32.checksum(of: $0) } == 0xCBF4_3926)
    let start = digits.prefix(4).withUnsafeBytes { ZlibCRC32.checksum(of: $0) }
    #expect(digits.dropFirst(4).withUnsafeBytes { ZlibCRC32.checksum(of: $0, continuing: start) } == 0xCBF4_3926)
    #expect(ZlibCRC32.checksum(of: UnsafeRawBufferPointer(start: nil, count: 0), continuing: start) == start)
  }
}
#endif
