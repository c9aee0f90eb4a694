import ArgumentParser
import LarderTesting

/// A workload that is made up, for a cache of a given size.
enum SyntheticWorkload: String, CaseIterable, ExpressibleByArgument {
  /// Popular keys and less popular ones, a hundred times as many as entries, always the same.
  case zipf90 = "zipf-0.9"
  case zipf99 = "zipf-0.99"

  /// The same keys in the same order again and again, half as many again as entries.
  case loop

  /// Popular keys, and now and then twice as many keys as entries, each once.
  case scan = "scan-zipf"

  /// A set of keys, somewhat smaller than the cache, that is asked for most of the time and gives way to another one.
  case shift

  /// Keys that are asked for a few times soon after each other, and then never again.
  case bursts

  /// The keys, in the order in which they are asked for.
  ///
  /// - Parameters:
  ///   - count: How many.
  ///   - entries: How many entries the cache holds.
  ///   - seed: Decides what is left to chance.
  func keys(count: Int, entries: Int, seed: UInt64) -> [UInt64] {
    var random = SeededGenerator(seed: seed, purpose: rawValue)
    switch self {
    case .zipf90: return SyntheticWorkload.zipf(0.9, count: count, entries: entries, using: &random)
    case .zipf99: return SyntheticWorkload.zipf(0.99, count: count, entries: entries, using: &random)
    case .loop: return (0..<count).map { UInt64($0 % (entries + (entries + 1) / 2)) }
    case .scan: return SyntheticWorkload.scan(count: count, entries: entries, using: &random)
    case .shift: return SyntheticWorkload.shift(count: count, entries: entries, using: &random)
    case .bursts: return SyntheticWorkload.bursts(count: count, entries: entries, using: &random)
    }
  }

  // Keys that never come again, apart from those that do.
  private static var firstUnique: UInt64 { 1 << 40 }

  private static func zipf(
    _ exponent: Double, count: Int, entries: Int, using random: inout SeededGenerator
  ) -> [UInt64] {
    let distribution = ZipfDistribution(count: entries * 100, exponent: exponent)
    return (0..<count).map { _ in distribution.next(using: &random) }
  }

  private static func scan(count: Int, entries: Int, using random: inout SeededGenerator) -> [UInt64] {
    let distribution = ZipfDistribution(count: entries * 50, exponent: 0.99)
    var nextUnique = firstUnique
    var scanEnd = nextUnique
    return (0..<count).map { _ in
      if nextUnique == scanEnd {
        guard Int.random(in: 0..<entries * 4, using: &random) == 0 else { return distribution.next(using: &random) }
        scanEnd += UInt64(entries * 2)
      }
      defer { nextUnique += 1 }
      return nextUnique
    }
  }

  private static func shift(count: Int, entries: Int, using random: inout SeededGenerator) -> [UInt64] {
    (0..<count).map { index in
      // Each set stays for ten times as many requests as there are entries.
      let firstKey = UInt64(index / (entries * 10)) * firstUnique
      let isHot = Int.random(in: 0..<5, using: &random) > 0
      let keyCount = UInt64(isHot ? max(1, entries * 3 / 5) : entries * 10)
      return firstKey + UInt64.random(in: 0..<keyCount, using: &random)
    }
  }

  private static func bursts(count: Int, entries: Int, using random: inout SeededGenerator) -> [UInt64] {
    // Those to come again, each twice, among the latest half of the cache.
    var waiting: [UInt64] = []
    var nextUnique = firstUnique
    return (0..<count).map { _ in
      guard waiting.count >= max(2, entries / 2) else {
        defer { nextUnique += 1 }
        waiting += [nextUnique, nextUnique]
        return nextUnique
      }
      let place = Int.random(in: 0..<waiting.count, using: &random)
      waiting.swapAt(place, waiting.count - 1)
      return waiting.removeLast()
    }
  }
}
