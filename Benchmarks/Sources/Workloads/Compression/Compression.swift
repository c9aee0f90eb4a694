import Foundation
import Larder
import LarderCompression

/// Compressing and decompressing values, next to zlib called from C on the same values.
public enum Compression {
  /// At least 0.95 times the speed of the yardstick.
  private static let limit = 1 / 0.95

  static let comparisons = [
    Comparison(
      deflating("deflating a value of 1 MB", large, dictionarySize: 0),
      beside: [Comparison.Yardstick(rawDeflating("zlib from C", large, dictionarySize: 0), limit: limit)],
      roundCount: 11),
    Comparison(
      inflating("inflating a value of 1 MB", large, dictionarySize: 0),
      beside: [
        Comparison.Yardstick(rawInflating("zlib from C, and CRC-32", large, dictionarySize: 0), limit: limit),
        Comparison.Yardstick(rawInflating("zlib from C, unchecked", large, dictionarySize: 0, wantsChecksum: false)),
      ]),
    Comparison(
      deflating("deflating a record of 150 bytes, with a dictionary of 4 KiB", users, dictionarySize: 4096),
      beside: [Comparison.Yardstick(rawDeflating("zlib from C on records", users, dictionarySize: 4096), limit: limit)]
    ),
    Comparison(
      inflating("inflating a record of 150 bytes, with a dictionary of 4 KiB", users, dictionarySize: 4096),
      // No limit, because such a short time depends on its surroundings, such as the memory of each value.
      beside: [
        Comparison.Yardstick(rawInflating("zlib from C on records, and CRC-32", users, dictionarySize: 4096)),
        Comparison.Yardstick(
          rawInflating("zlib from C on records, unchecked", users, dictionarySize: 4096, wantsChecksum: false)),
      ]),
  ]

  /// Returns the size of 1,000 records of 150 bytes, each compressed by itself.
  ///
  /// - Throws: The error of the compression.
  public static func sizes() throws -> (withDictionary: Int, without: Int, uncompressed: Int) {
    let tested = try records(in: 10_000..<11_000)
    func size(_ codec: CompressedCodec<RawCodec>) throws -> Int {
      try tested.reduce(0) { try $0 + encoded($1, by: codec).count }
    }
    return (
      try size(codec(dictionarySize: 16_384)), try size(RawCodec.raw.compressed(threshold: 0)),
      tested.reduce(0) { $0 + $1.count }
    )
  }

  // MARK: Values

  /// The values to compress.
  private struct Values: Sendable {
    let count: Int
    let make: @Sendable () throws -> [[UInt8]]
  }

  private static let users = Values(count: 1000) { try records(in: 10_000..<11_000) }

  private static let large = Values(count: 1) {
    [Array(try (0..<5000).flatMap { try SampleRecords.record($0).bytes }.prefix(1_000_000))]
  }

  private static func records(in range: Range<Int>) throws -> [[UInt8]] {
    let encoder = JSONCodec<User>.makeEncoder()
    return try range.map { try Array(encoder.encode(User(number: $0))) }
  }

  private static func codec(dictionarySize: Int) throws -> CompressedCodec<RawCodec> {
    guard dictionarySize > 0 else { return RawCodec.raw.compressed() }
    return RawCodec.raw.compressed(dictionary: try .train(on: records(in: 0..<4000), size: dictionarySize))
  }

  private static func encoded(_ value: [UInt8], by codec: CompressedCodec<RawCodec>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try codec.encode(value, into: &bytes)
    return bytes
  }

  // MARK: Larder

  private static func deflating(
    _ name: String, _ values: Values, dictionarySize: Int
  ) -> Workload {
    Workload(name, operationCount: values.count) { _ in
      let values = try values.make()
      let codec = try codec(dictionarySize: dictionarySize)
      return {
        // All values use the same buffer, as in a store.
        var bytes: [UInt8] = []
        for value in values {
          bytes.removeAll(keepingCapacity: true)
          try codec.encode(value, into: &bytes)
        }
        consume(bytes)
      }
    }
  }

  private static func inflating(
    _ name: String, _ values: Values, dictionarySize: Int
  ) -> Workload {
    Workload(name, operationCount: values.count) { _ in
      let codec = try codec(dictionarySize: dictionarySize)
      let stored = try values.make().map { try encoded($0, by: codec) }
      return {
        for bytes in stored { consume(try codec.decode(bytes.span.bytes)) }
      }
    }
  }

  // MARK: C

  private static func rawDeflating(
    _ name: String, _ values: Values, dictionarySize: Int
  ) -> Workload {
    Workload("deflating by \(name)", operationCount: values.count) { _ in
      let (streams, values) = try raw(values.make(), dictionarySize: dictionarySize)
      return { consume(try streams.deflate(values)) }
    }
  }

  private static func rawInflating(
    _ name: String, _ values: Values, dictionarySize: Int, wantsChecksum: Bool = true
  ) -> Workload {
    Workload("inflating by \(name)", operationCount: values.count) { _ in
      let (streams, values) = try raw(values.make(), dictionarySize: dictionarySize)
      let stored = try streams.deflated(values)
      return { consume(try streams.inflate(stored, wantsChecksum: wantsChecksum)) }
    }
  }

  private static func raw(_ values: [[UInt8]], dictionarySize: Int) throws -> (RawStreams, JoinedValues) {
    let dictionary = try codec(dictionarySize: dictionarySize).dictionaries.current?.bytes ?? []
    let longest = values.map(\.count).max() ?? 0
    return (try RawStreams(level: 6, dictionary: dictionary, longest: longest), JoinedValues(values))
  }
}
