import Workloads

/// Measures how many bytes values take.
enum SizeMeasurement {
  /// Encodes an array of records in several formats.
  static func comparisons(where isWanted: (String) -> Bool) throws -> [Measured] {
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
}
