import Larder

/// A `StoreKey`, next to a `String`.
enum Keys {
  private static let count = 100_000

  static let comparisons = [
    Comparison(
      sorting("StoreKey") { StoreKey($0) }, beside: [Comparison.Yardstick(sorting("String") { $0 })], roundCount: 11),
    Comparison(
      hashing("StoreKey") { StoreKey($0) }, beside: [Comparison.Yardstick(hashing("String") { $0 })], roundCount: 11),
  ]

  private static let texts = SampleRecords.shuffledNumbers(count).map { "customer:\($0 + 10_000_000)" }

  private static func sorting<Key: Comparable & Sendable>(
    _ name: String, _ make: @escaping @Sendable (String) -> Key
  ) -> Workload {
    Workload("sorting of 100,000 \(name)s, of 17 bytes", operationCount: count) { _ in
      let keys = texts.map(make)
      return { consume(keys.sorted()) }
    }
  }

  private static func hashing<Key: Hashable & Sendable>(
    _ name: String, _ make: @escaping @Sendable (String) -> Key
  ) -> Workload {
    Workload("lookup in a Set of 100,000 \(name)s, of 17 bytes", operationCount: count) { _ in
      let keys = texts.map(make)
      let set = Set(keys)
      return {
        var found = 0
        for key in keys where set.contains(key) { found += 1 }
        consume(found)
      }
    }
  }
}
