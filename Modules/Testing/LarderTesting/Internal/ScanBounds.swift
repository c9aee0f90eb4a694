import Larder

/// Bounds in every place relative to twenty keys, "00" to "95" in steps of five: before the first, on the first, behind
/// it, between two keys, on one, behind one, on the last, behind the last.
enum ScanBounds {
  static let keys: [StoreKey] = (0..<20).map { StoreKey(($0 * 5 < 10 ? "0" : "") + "\($0 * 5)") }

  static let places: [StoreKey] = [
    "", "\0", "0", "00", "00\0", "48", "50", "50\0", "52", "9", "95", "95\0", "99", "a",
  ]

  /// Every pair of bounds, also those in the wrong order.
  static let ranges: [KeyRange] = places.flatMap { lower in
    places.map { KeyRange(from: lower, upTo: $0) } + [KeyRange(from: lower, upTo: nil)]
  }
}
