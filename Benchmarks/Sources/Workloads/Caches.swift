import Foundation
import Larder
import LarderCache
import Synchronization

/// Hits in a `MemoryCache`, on one thread and on two, and insertions.
public enum Caches {
  private static let getCount = 200_000

  static let comparisons =
    [1000, 100_000].flatMap { entryCount in
      [
        Comparison(
          hits(entryCount: entryCount), beside: [Comparison.Yardstick(lookups(entryCount: entryCount), limit: 1.6)]),
        Comparison(
          hits(entryCount: entryCount, threadCount: 2),
          beside: [Comparison.Yardstick(lookups(entryCount: entryCount, threadCount: 2), limit: 0.5)]),
      ]
    } + [Comparison(writes, beside: [Comparison.Yardstick(dictionaryWrites)], roundCount: 11)]

  private static func text(of count: Int) -> String { "\(count / 1000),000" }

  private static func name(_ name: String, threadCount: Int) -> String {
    threadCount == 1 ? name : "\(name), on two threads"
  }

  // MARK: Hits

  private static func hits(entryCount: Int, threadCount: Int = 1) -> Workload {
    let name = name("hit in a MemoryCache of \(text(of: entryCount)) entries", threadCount: threadCount)
    return Workload(name, operationCount: getCount * threadCount) { _ in
      let keys = shuffledKeys(count: entryCount)
      let cache = MemoryCache<StoreKey, Int>(entryLimit: entryCount)
      for (number, key) in keys.enumerated() { cache.setValue(number, forKey: key) }
      return round(threadCount: threadCount) {
        var sum = 0
        for index in 0..<getCount { sum &+= cache.value(forKey: keys[index % entryCount]) ?? 0 }
        consume(sum)
      }
    }
  }

  /// The alternative without Larder.
  private static func lookups(entryCount: Int, threadCount: Int = 1) -> Workload {
    let name = name("lookup in a Dictionary of the same size, in a Mutex", threadCount: threadCount)
    return Workload("\(name), \(text(of: entryCount))", operationCount: getCount * threadCount) { _ in
      let keys = shuffledKeys(count: entryCount)
      let dictionary = LockedDictionary()
      dictionary.values.withLock { values in
        for (number, key) in keys.enumerated() { values[key] = number }
      }
      return round(threadCount: threadCount) {
        var sum = 0
        for index in 0..<getCount { sum &+= dictionary.values.withLock { $0[keys[index % entryCount]] } ?? 0 }
        consume(sum)
      }
    }
  }

  private final class LockedDictionary: Sendable {
    let values = Mutex<[StoreKey: Int]>([:])
  }

  private static func shuffledKeys(count: Int) -> [StoreKey] {
    SampleRecords.shuffledNumbers(count).map(SampleRecords.key)
  }

  /// Runs a closure on several threads at the same time.
  private static func round(threadCount: Int, _ body: @escaping @Sendable () -> Void) -> Workload.Round {
    guard threadCount > 1 else { return { body() } }
    return { DispatchQueue.concurrentPerform(iterations: threadCount) { _ in body() } }
  }

  // MARK: Writes

  private static let writeCount = 1_000_000
  private static let writeLimit = 100_000

  private static let writes = Workload(
    "insertion of 1,000,000 keys into a MemoryCache of 100,000 entries", operationCount: writeCount
  ) { _ in
    let keys = shuffledKeys(count: writeCount)
    return {
      let cache = MemoryCache<StoreKey, Int>(entryLimit: writeLimit)
      for (number, key) in keys.enumerated() { cache.setValue(number, forKey: key) }
      consume(cache)
    }
  }

  private static let dictionaryWrites = Workload(
    "insertion of 1,000,000 keys into a Dictionary in a Mutex, which evicts none", operationCount: writeCount
  ) { _ in
    let keys = shuffledKeys(count: writeCount)
    return {
      let dictionary = LockedDictionary()
      for (number, key) in keys.enumerated() { dictionary.values.withLock { $0[key] = number } }
      consume(dictionary)
    }
  }

  /// Measures each of a million insertions into a cache, most of which evict an entry.
  ///
  /// - Returns: The times, in seconds.
  public static func insertionTimes() -> [Double] {
    let keys = shuffledKeys(count: writeCount)
    let cache = MemoryCache<StoreKey, Int>(entryLimit: writeLimit)
    let clock = ContinuousClock()
    var times: [Double] = []
    times.reserveCapacity(writeCount)
    for (number, key) in keys.enumerated() {
      times.append(clock.measure { cache.setValue(number, forKey: key) } / .seconds(1))
    }
    return times
  }
}
