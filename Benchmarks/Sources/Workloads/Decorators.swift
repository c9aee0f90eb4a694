import ForwardingStore
import Larder

/// Layers that only forward.
enum Decorators {
  private static let getCount = 100_000

  static let comparisons = [
    Comparison(
      gets("get through four forwarding decorators") {
        ForwardingStore(ForwardingStore(ForwardingStore(ForwardingStore($0))))
      },
      beside: [
        Comparison.Yardstick(gets("get from a MemoryStore") { $0 }, limit: 1.2),
        Comparison.Yardstick(synchronousGets),
      ]),
    Comparison(
      gets("get through AnyDataStore") { AnyDataStore($0) },
      beside: [Comparison.Yardstick(gets("get from a MemoryStore") { $0 })]),
  ]

  private static func gets(
    _ name: String, _ decorate: @escaping @Sendable (MemoryStore<Int>) -> some DataStore<Int>
  ) -> Workload {
    Workload(name, operationCount: getCount) { _ in
      let store = decorate(try InMemory.filledStore(count: 1000))
      let keys = SampleRecords.shuffledNumbers(1000).map(SampleRecords.key)
      return {
        var sum = 0
        for index in 0..<getCount {
          sum &+= try await store.value(forKey: keys[index % 1000]) ?? 0
        }
        consume(sum)
      }
    }
  }

  private static let synchronousGets = Workload("get from a MemoryStore, without await", operationCount: getCount) {
    _ in
    let store = try InMemory.filledStore(count: 1000)
    let keys = SampleRecords.shuffledNumbers(1000).map(SampleRecords.key)
    return {
      var sum = 0
      for index in 0..<getCount {
        sum &+= try store.value(forKey: keys[index % 1000]) ?? 0
      }
      consume(sum)
    }
  }
}
