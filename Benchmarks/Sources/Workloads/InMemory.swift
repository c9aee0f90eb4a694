import Larder
import Synchronization

/// Operations of a `MemoryStore`, and pages, whose cost does not depend on the size of the store.
enum InMemory {
  private static let operationCount = 100_000
  private static let insertionCount = 1_000_000

  static let comparisons = [
    Comparison(gets, beside: [Comparison.Yardstick(dictionaryGets)]),
    Comparison(puts, beside: [Comparison.Yardstick(dictionaryPuts)]),
    Comparison(
      pages(entryCount: 100_000), beside: [Comparison.Yardstick(pages(entryCount: 1000), limit: 2)]),
    Comparison(
      insertions("ascending", Array(0..<insertionCount)),
      beside: [Comparison.Yardstick(dictionaryInsertions("ascending", Array(0..<insertionCount)))], roundCount: 5),
    Comparison(
      insertions("random", SampleRecords.shuffledNumbers(insertionCount)),
      beside: [
        Comparison.Yardstick(dictionaryInsertions("random", SampleRecords.shuffledNumbers(insertionCount))),
        Comparison.Yardstick(sorting),
      ], roundCount: 5),
  ]

  static func filledStore(count: Int) throws -> MemoryStore<Int> {
    let store = MemoryStore<Int>()
    try store.apply(ChangeBatch((0..<count).map { .set(SampleRecords.key($0), $0) }))
    return store
  }

  /// The alternative without Larder.
  private final class LockedDictionary: Sendable {
    let values: Mutex<[StoreKey: Int]>

    init(count: Int) {
      values = Mutex(Dictionary(uniqueKeysWithValues: (0..<count).map { (SampleRecords.key($0), $0) }))
    }
  }

  // MARK: One entry

  private static let gets = Workload("get from a MemoryStore of 100,000 entries", operationCount: operationCount) { _ in
    let store = try filledStore(count: operationCount)
    let keys = SampleRecords.shuffledNumbers(operationCount).map(SampleRecords.key)
    return {
      var sum = 0
      for key in keys { sum &+= try store.value(forKey: key) ?? 0 }
      consume(sum)
    }
  }

  private static let dictionaryGets = Workload("get from a Dictionary in a Mutex", operationCount: operationCount) {
    _ in
    let dictionary = LockedDictionary(count: operationCount)
    let keys = SampleRecords.shuffledNumbers(operationCount).map(SampleRecords.key)
    return {
      var sum = 0
      for key in keys { sum &+= dictionary.values.withLock { $0[key] } ?? 0 }
      consume(sum)
    }
  }

  private static let puts = Workload("put into a MemoryStore of 100,000 entries", operationCount: operationCount) { _ in
    let store = try filledStore(count: operationCount)
    let keys = SampleRecords.shuffledNumbers(operationCount).map(SampleRecords.key)
    return {
      for key in keys { try await store.setValue(7, forKey: key) }
    }
  }

  private static let dictionaryPuts = Workload("put into a Dictionary in a Mutex", operationCount: operationCount) {
    _ in
    let dictionary = LockedDictionary(count: operationCount)
    let keys = SampleRecords.shuffledNumbers(operationCount).map(SampleRecords.key)
    return {
      for key in keys { dictionary.values.withLock { $0[key] = 7 } }
    }
  }

  // MARK: Pages

  private static func pages(entryCount: Int) -> Workload {
    let pageCount = 1000
    return Workload(
      "page of 50 from the middle of \(entryCount / 1000),000 entries", operationCount: pageCount
    ) { _ in
      let store = try filledStore(count: entryCount)
      return {
        for index in 0..<pageCount {
          let range = KeyRange(from: SampleRecords.key(entryCount / 2 + index % 100), upTo: nil)
          consume(try await store.entries(in: range, limit: 50))
        }
      }
    }
  }

  // MARK: A million entries

  private static func insertions(_ order: String, _ numbers: [Int]) -> Workload {
    Workload("insertion of 1,000,000 \(order) keys into a MemoryStore, by 1,000", operationCount: numbers.count) { _ in
      let keys = numbers.map(SampleRecords.key)
      return {
        let store = MemoryStore<Int>()
        for start in stride(from: 0, to: keys.count, by: 1000) {
          try store.apply(ChangeBatch(keys[start..<start + 1000].map { .set($0, start) }))
        }
        consume(store)
      }
    }
  }

  private static func dictionaryInsertions(_ order: String, _ numbers: [Int]) -> Workload {
    Workload("insertion of 1,000,000 \(order) keys into a Dictionary", operationCount: numbers.count) { _ in
      let keys = numbers.map(SampleRecords.key)
      return {
        var dictionary: [StoreKey: Int] = [:]
        for (index, key) in keys.enumerated() { dictionary[key] = index }
        consume(dictionary)
      }
    }
  }

  private static let sorting = Workload("sorting an array of 1,000,000 random keys", operationCount: insertionCount) {
    _ in
    let keys = SampleRecords.shuffledNumbers(insertionCount).map(SampleRecords.key)
    return { consume(keys.sorted()) }
  }
}
