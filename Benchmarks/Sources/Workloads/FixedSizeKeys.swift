import Larder

/// Keys like `user:123456`, for Larder and, one behind another, for C.
struct FixedSizeKeys: Sendable {
  let size = 11
  let keys: [StoreKey]
  let bytes: [UInt8]

  var count: Int { keys.count }

  /// Makes the keys of numbers below a million.
  init(_ numbers: some Sequence<Int>) {
    keys = numbers.map { number in
      let digits = String(number)
      return StoreKey("user:" + String(repeating: "0", count: 6 - digits.count) + digits)
    }
    bytes = keys.flatMap(\.bytes)
  }

  /// The keys of a part of these.
  subscript(range: Range<Int>) -> FixedSizeKeys {
    FixedSizeKeys(keys: Array(keys[range]), bytes: Array(bytes[range.lowerBound * size..<range.upperBound * size]))
  }

  private init(keys: [StoreKey], bytes: [UInt8]) {
    self.keys = keys
    self.bytes = bytes
  }
}
