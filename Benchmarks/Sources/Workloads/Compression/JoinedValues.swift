/// Values that are stored one after another, as in a C program.
struct JoinedValues {
  /// The bytes of all values.
  let bytes: [UInt8]

  /// The size of each value, in bytes.
  let sizes: [Int]
}

extension JoinedValues {
  /// Joins values.
  init(_ values: [[UInt8]]) {
    bytes = Array(values.joined())
    sizes = values.map(\.count)
  }
}
