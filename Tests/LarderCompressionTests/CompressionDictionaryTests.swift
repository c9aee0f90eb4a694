#if Compression
import Larder
import LarderTesting
import TestSupport
import Testing

@testable import LarderCompression

@Suite struct CompressionDictionaryTests {
  private func sizes(of records: [[UInt8]], by codec: some Codec<[UInt8]>) throws -> Int {
    try records.reduce(0) { try $0 + Coding.bytes(of: $1, by: codec).count }
  }

  /// Returns the factor by which a dictionary, trained on other records, shrinks records, including all overhead.
  private func gain(_ records: (Int, UInt64) -> [[UInt8]], samples: Int, size: Int) throws -> Double {
    let dictionary = try CompressionDictionary.train(on: records(samples, 1), size: size)
    #expect(dictionary.bytes.count <= size)
    #expect(dictionary.bytes.count > size * 9 / 10)
    let tested = records(200, 2)
    let original = tested.reduce(0) { $0 + $1.count }
    let without = try sizes(of: tested, by: .raw.compressed(threshold: 0))
    let with = try sizes(of: tested, by: .raw.compressed(dictionary: dictionary))
    print("200 records of \(original) bytes: \(without) bytes, and \(with) with a dictionary of \(size) bytes")
    return Double(without) / Double(with)
  }

  @Test(arguments: [(4096, 2.5), (16_384, 2.7)]) func `records of 150 bytes become much smaller`(
    size: Int, atLeast: Double
  ) throws {
    let records = SampleRecords.users(100, seed: 3)
    #expect(130...170 ~= records.reduce(0) { $0 + $1.count } / records.count)
    let gain = try gain(SampleRecords.users, samples: 800, size: size)
    #expect(gain >= atLeast)
  }

  @Test(arguments: [(4096, 1.4), (16_384, 1.8)]) func `records of 800 bytes become smaller`(
    size: Int, atLeast: Double
  ) throws {
    let records = SampleRecords.customers(100, seed: 3)
    #expect(700...900 ~= records.reduce(0) { $0 + $1.count } / records.count)
    let gain = try gain(SampleRecords.customers, samples: 200, size: size)
    #expect(gain >= atLeast)
  }

  @Test func `the same samples give the same dictionary`() throws {
    let samples = SampleRecords.users(100, seed: 5)
    let dictionary = try CompressionDictionary.train(on: samples, size: 1000)
    #expect(try CompressionDictionary.train(on: samples, size: 1000) == dictionary)
    #expect(try CompressionDictionary.train(on: samples, codec: .raw, size: 1000) == dictionary)
    #expect(dictionary.description == "CompressionDictionary(\(dictionary.id), \(dictionary.bytes.count) bytes)")
    #expect(dictionary.id.description.count == 4)
  }

  @Test func `common parts of samples occur in the dictionary once`() throws {
    let common = Array("{\"a rather long name of a member\":".utf8)
    // The seed is fixed, because occasionally two sequences share a count and would be mistaken for one that two
    // samples share.
    var generator = SeededGenerator(seed: 1)
    let samples = (0..<20).map { number in
      common + [UInt8(number)] + (0..<6).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
    // Useless bytes at the ends of segments are left out, so only the common part remains.
    #expect(try CompressionDictionary.train(on: samples, size: 4096).bytes == common)
  }

  @Test func `the most useful part is last`() throws {
    let frequent = Array("<frequent sequence of bytes>".utf8)
    let rare = Array("[a rarer one, in few samples]".utf8)
    var generator = SeededGenerator(seed: 1)
    let samples = (0..<24 as Range<UInt8>).map { number in
      let noise = (0..<6).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
      return (number.isMultiple(of: 4) ? rare : []) + [number] + noise + [number] + frequent + [number]
    }
    let bytes = DictionaryTraining(samples).dictionary(size: 64, segmentLength: 32)
    #expect(bytes == rare + frequent)
  }

  @Test func `unusable samples are refused`() throws {
    for samples: [[UInt8]] in [[], [[]], [Array("abcdefghijkl".utf8)], [Array("abcdefg".utf8), Array("abcdefg".utf8)]] {
      let error = expectStoreError(.invalidArgument) { try CompressionDictionary.train(on: samples) }
      #expect(error?.message.contains("of the \(samples.count) samples") == true)
    }
    for size in [-1, 0, 63, 32_769] {
      expectStoreError(.invalidArgument) {
        try CompressionDictionary.train(on: SampleRecords.users(10, seed: 1), size: size)
      }
    }
    #expect(try CompressionDictionary.train(on: SampleRecords.users(2, seed: 1), size: 64).bytes.count <= 64)
  }

  @Test func `a dictionary is neither empty nor too large`() throws {
    expectStoreError(.invalidArgument) { try CompressionDictionary([]) }
    expectStoreError(.invalidArgument) { try CompressionDictionary(Array(repeating: 1, count: 32_769)) }
    #expect(try CompressionDictionary(Array(repeating: 1, count: 32_768)).bytes.count == 32_768)
  }
}
#endif
