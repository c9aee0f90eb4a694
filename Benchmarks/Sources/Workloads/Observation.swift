import ForwardingStore
import Larder
import LarderLMDB
import LarderObservation

/// Writes to an observable store, with and without observers.
public enum Observation {
  private static let putCount = 10_000

  static let comparisons = [
    Comparison(
      puts("put into a MemoryStore through .observable(), without an observer") { $0.observable() },
      beside: [
        Comparison.Yardstick(
          puts("put into a MemoryStore through a forwarding decorator") { ForwardingStore($0) }, limit: 1.1)
      ]),
    Comparison(
      environmentPuts(observerCount: 10),
      // Four fifths of the rate.
      beside: [Comparison.Yardstick(environmentPuts(observerCount: 0), limit: 1.25)], roundCount: 11),
  ]

  private static func puts(
    _ name: String, _ decorate: @escaping @Sendable (MemoryStore<Int>) -> some DataStore<Int>
  ) -> Workload {
    Workload(name, operationCount: putCount) { _ in
      let store = decorate(try InMemory.filledStore(count: 1000))
      let keys = SampleRecords.shuffledNumbers(1000).map(SampleRecords.key)
      return {
        for index in 0..<putCount { try await store.setValue(index, forKey: keys[index % 1000]) }
      }
    }
  }

  private static func environmentPuts(observerCount: Int) -> Workload {
    let observers = observerCount == 0 ? "without an observer" : "with \(observerCount) observers of the key"
    return Workload("put into a buffered LMDBStore, \(observers)", operationCount: 1000) { folder in
      let store = try await LMDBStore<Int>(path: folder.newPath(), durability: .buffered)
      for _ in 0..<observerCount {
        // The observers end with the store.
        Task { for try await value in store.updates(forKey: "k") { consume(value) } }
      }
      return {
        for number in 0..<1000 { try await store.setValue(number, forKey: "k") }
      }
    }
  }

  /// Returns the median time from a commit to the moment when an awake observer has the value, in seconds.
  public static func medianSecondsUntilObserved(in folder: ScratchFolder) async throws -> Double {
    let store = try await LMDBStore<Int>(path: folder.newPath(), durability: .buffered)
    // The store calls this right after the commit, and the observation that is added later after it.
    let commit = Locked(ContinuousClock.now)
    let observation = store.observe(.all) { _ in commit.withLock { $0 = .now } }
    var values = store.updates(forKey: "k").makeAsyncIterator()
    _ = try await values.next()
    var times: [Double] = []
    for number in 0..<2000 {
      async let put: Void = store.setValue(number, forKey: "k")
      while let value = try await values.next(), value != number {}
      times.append((ContinuousClock.now - commit.withLock { $0 }) / .seconds(1))
      try await put
    }
    withExtendedLifetime(observation) {}
    try await store.close()
    return times.sorted()[times.count / 2]
  }
}
