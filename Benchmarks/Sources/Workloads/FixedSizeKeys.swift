import Larder

/// Keys like `user:123456`, for Larder and, one after another, for C.
struct FixedSizeKeys: Sendable {
  let size: Int
  let keys: [StoreKey]
  let bytes: [UInt8]

  var count: Int { keys.count }

  /// Creates the keys of numbers below a million.
  init(_ numbers: some Sequence<Int>) {
    keys = numbers.map { number in
      let digits = String(number)
      return StoreKey("user:" + String(repeating: "0", count: 6 - digits.count) + digits)
    }
    bytes = keys.flatMap(\.bytes)
    size = 11
  }

  /// Creates the keys of integers, of 8 bytes each.
  init(integers: Range<Int>) {
    keys = integers.map { StoreKey(integer: $0) }
    bytes = keys.flatMap(\.bytes)
    size = 8
  }

  /// Returns the keys of a range of these.
  subscript(range: Range<Int>) -> FixedSizeKeys {
    FixedSizeKeys(
      size: size, keys: Array(keys[range]), bytes: Array(bytes[range.lowerBound * size..<range.upperBound * size]))
  }

  private init(size: Int, keys: [StoreKey], bytes: [UInt8]) {
    self.size = size
    self.keys = keys
    self.bytes = bytes
  }
}
