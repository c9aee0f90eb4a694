import Larder
import LarderBatching

/// Measures a store with entries of its own, and removes them again.
struct BenchRun<Store: DataStore> where Store.Value == JSONText {
  /// What the keys begin with.
  static var prefix: StoreKey { "larder-bench:" }

  private let store: Store
  private let plan: BenchPlan

  /// Makes a run that has not begun.
  init(on store: Store, plan: BenchPlan) {
    self.store = store
    self.plan = plan
  }

  /// Writes, reads and scans, and takes the time of each.
  ///
  /// - Throws: What the store throws; ``CommandFailure`` where keys of a bench are there already.
  func run() async throws -> BenchReport {
    let range = KeyRange.prefix(Self.prefix)
    guard try await store.keys(in: range, limit: 1, order: .ascending).isEmpty else {
      throw CommandFailure(
        .usage, "there are keys that begin with \(Self.prefix.string ?? "")",
        advice: "Another bench runs, or one was killed: remove them with clear --prefix.")
    }
    do {
      let results = try await measure()
      try await store.removeAll(in: range)
      return BenchReport(information: store.information, plan: plan, results: results)
    } catch {
      try await store.removeAll(in: range)
      throw error
    }
  }

  private func measure() async throws -> [BenchResult] {
    let value = JSONText(string: String(repeating: "x", count: plan.valueSize))
    let batched = store.batched()
    let (entryCount, store) = (plan.entryCount, store)
    var results = [
      try await result("write", tasks: plan.writerCount) { try await store.setValue(value, forKey: Self.key($0)) },
      try await result("write, batched", tasks: plan.writerCount) {
        try await batched.setValue(value, forKey: Self.key($0))
      },
      try await result("read", tasks: plan.readerCount) { number in
        // From all over the store, by a prime as the step.
        _ = try await store.value(forKey: Self.key(Int(UInt(number) &* 7_368_787 % UInt(entryCount))))
      },
    ]
    let clock = ContinuousClock()
    var pages: [Duration] = []
    let elapsed = try await clock.measure {
      let range = KeyRange.prefix(Self.prefix)
      var rest = range
      while true {
        let start = clock.now
        let page = try await store.entries(in: rest, limit: 100, order: .ascending)
        pages.append(start.duration(to: clock.now))
        guard page.count == 100, let last = page.last else { break }
        rest = range.after(last.key)
      }
    }
    results.append(BenchResult(what: "page of 100", times: pages, elapsed: elapsed))
    return results
  }

  /// Does something for each entry, in several tasks.
  private func result(
    _ what: String, tasks: Int, _ operation: @escaping @Sendable (_ number: Int) async throws -> Void
  ) async throws -> BenchResult {
    let clock = ContinuousClock()
    let count = plan.entryCount
    let start = clock.now
    let times = try await withThrowingTaskGroup(of: [Duration].self) { group in
      for task in 0..<min(tasks, count) {
        group.addTask {
          var times: [Duration] = []
          for number in stride(from: task, to: count, by: tasks) {
            times.append(try await clock.measure { try await operation(number) })
          }
          return times
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    return BenchResult(what: what, times: times, elapsed: start.duration(to: clock.now))
  }

  private static func key(_ number: Int) -> StoreKey {
    StoreKey("\(prefix.string ?? "")\(1_000_000_000 + number)")
  }
}
