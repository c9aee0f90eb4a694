import ArgumentParser
import LarderTesting

/// A synthetic workload for a cache of a given size.
enum SyntheticWorkload: String, CaseIterable, ExpressibleByArgument {
  /// Popular and less popular keys, a hundred times as many as entries, with constant popularity.
  case zipf90 = "zipf-0.9"
  case zipf99 = "zipf-0.99"

  /// The same keys in the same order again and again, one and a half times as many as entries.
  case loop

  /// Popular keys, with an occasional scan over twice as many keys as entries.
  case scan = "scan-zipf"

  /// A set of keys, somewhat smaller than the cache, that has most of the reads and is replaced by another set.
  case shift

  /// Keys that are read a few times within a short time, and then never again.
  case bursts

  /// Returns the keys, in the order of the reads.
  ///
  /// - Parameters:
  ///   - count: The number of reads.
  ///   - entries: The number of entries that the cache holds.
  ///   - seed: The seed of the random numbers.
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

  // Keys that are never read again start here, apart from the others.
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
      // Each set stays for ten times as many reads as there are entries.
      let firstKey = UInt64(index / (entries * 10)) * firstUnique
      let isHot = Int.random(in: 0..<5, using: &random) > 0
      let keyCount = UInt64(isHot ? max(1, entries * 3 / 5) : entries * 10)
      return firstKey + UInt64.random(in: 0..<keyCount, using: &random)
    }
  }

  private static func bursts(count: Int, entries: Int, using random: inout SeededGenerator) -> [UInt64] {
    // The keys to read again, each twice, among the latest half of the cache.
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
