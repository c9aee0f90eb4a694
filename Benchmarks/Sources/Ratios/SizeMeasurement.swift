import Workloads

/// Measures the size of encoded values.
enum SizeMeasurement {
  /// Encodes an array of records in several formats, and compresses records with and without a dictionary.
  static func comparisons(where isWanted: (String) -> Bool) throws -> [Measured] {
    try formats(where: isWanted) + compression(where: isWanted)
  }

  private static func formats(where isWanted: (String) -> Bool) throws -> [Measured] {
    let name = "size of 1,000 records of six fields as CBOR"
    guard isWanted(name) else { return [] }
    let sizes = try Codecs.sizes()
    return [
      Measured(
        name: name, figure: Double(sizes.cbor), unit: .bytes,
        yardsticks: [
          Measured.Yardstick(name: "as JSON", figure: Double(sizes.json), limit: 0.85),
          Measured.Yardstick(name: "as Protocol Buffers", figure: Double(sizes.protobuf), limit: nil),
        ])
    ]
  }

  private static func compression(where isWanted: (String) -> Bool) throws -> [Measured] {
    let name = "size of 1,000 records of 150 bytes, compressed each with a dictionary of 16 KiB"
    guard isWanted(name) else { return [] }
    let sizes = try Compression.sizes()
    return [
      Measured(
        name: name, figure: Double(sizes.withDictionary), unit: .bytes,
        yardsticks: [
          Measured.Yardstick(name: "compressed without one", figure: Double(sizes.without), limit: 1 / 2.5),
          Measured.Yardstick(name: "uncompressed", figure: Double(sizes.uncompressed), limit: nil),
        ])
    ]
  }
}
