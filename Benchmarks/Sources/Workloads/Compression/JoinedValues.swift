/// Values one behind another, as a program in C would have them.
struct JoinedValues {
  /// The bytes of all.
  let bytes: [UInt8]

  /// How many bytes each has.
  let sizes: [Int]
}

extension JoinedValues {
  /// Joins values.
  init(_ values: [[UInt8]]) {
    bytes = Array(values.joined())
    sizes = values.map(\.count)
  }
}
