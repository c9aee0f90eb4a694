import ArgumentParser
import Foundation
import Larder
import LarderBatching
import StoreAccess

/// `larder bench`.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure how fast a store is.",
    discussion: """
      Writes entries one at a time, first directly and then through group commit, reads each of them, scans them in \
      pages, and removes them. A missing store is created, and stays. Other entries are not changed: the keys of the \
      bench begin with larder-bench:.

      Prints a table, or with --json one object, in which times are in seconds.

        larder bench lmdb:/tmp/bench --writers 100
        larder bench json:/tmp/bench.json --entries 1000 --value-size 4096 --json
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var table: LayoutOption
  @Option(help: ArgumentHelp("The number of entries.", valueName: "n")) var entries = 10_000
  @Option(help: ArgumentHelp("The size of each value, in bytes of text.", valueName: "n")) var valueSize = 100
  @Option(help: ArgumentHelp("The number of concurrent tasks that read.", valueName: "n")) var readers = 4
  @Option(help: ArgumentHelp("The number of concurrent tasks that write.", valueName: "n")) var writers = 16
  @Flag(name: .customLong("json"), help: "Print one JSON object instead of the table.") var printsJSON = false

  func validate() throws {
    for (name, number, least) in [
      ("--entries", entries, 1), ("--value-size", valueSize, 0), ("--readers", readers, 1), ("--writers", writers, 1),
    ] where number < least {
      throw ValidationError("\(name) must be at least \(least)")
    }
    guard valueSize <= 1 << 26 else { throw ValidationError("--value-size must be at most \(1 << 26)") }
  }

  func run() async throws {
    let plan = BenchPlan(entryCount: entries, valueSize: valueSize, readerCount: readers, writerCount: writers)
    try await StoreSession.run(store.target(layout: table.layout), createsIfMissing: true) { store, output in
      let report = try await BenchRun(on: store.present, plan: plan).run()
      if printsJSON {
        try output.writeLine { report.appendJSON(to: &$0) }
      } else {
        for line in report.table { try output.writeLine(line) }
      }
    }
  }
}

/// A measurement of a store with entries of its own, which are removed afterward.
struct BenchRun<Store: DataStore> where Store.Value == JSONText {
  /// The prefix of the keys.
  static var prefix: StoreKey { "larder-bench:" }

  private let store: Store
  private let plan: BenchPlan

  /// Creates a run.
  init(on store: Store, plan: BenchPlan) {
    self.store = store
    self.plan = plan
  }

  /// Measures writing, reading and scanning.
  ///
  /// - Throws: The store's errors; ``CommandFailure`` if the store already has keys with the prefix.
  func run() async throws -> BenchReport {
    let range = KeyRange.prefix(Self.prefix)
    guard try await store.keys(in: range, limit: 1, order: .ascending).isEmpty else {
      throw CommandFailure(
        .usage, "the store already has keys that begin with \(Self.prefix.string ?? "")",
        advice: "If no other bench is running, remove them with larder clear --prefix.")
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
        // The prime step spreads the reads over the whole store.
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

  /// Runs an operation for each entry in several tasks, and measures it.
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

/// The parameters of a measurement.
struct BenchPlan {
  /// The number of entries.
  let entryCount: Int
  /// The size of each value, in bytes of text.
  let valueSize: Int
  /// The number of concurrent tasks that read.
  let readerCount: Int
  /// The number of concurrent tasks that write.
  let writerCount: Int
}

/// The measured times of one kind of operation.
struct BenchResult {
  /// The name of the operation.
  let what: String
  /// The number of operations.
  let operations: Int
  /// The duration of all operations together.
  let elapsed: Duration

  private let sorted: [Duration]

  /// Creates a result.
  ///
  /// - Parameters:
  ///   - what: The name of the operation.
  ///   - times: The duration of each operation, in any order.
  ///   - elapsed: The duration of all operations together.
  init(what: String, times: [Duration], elapsed: Duration) {
    self.what = what
    operations = times.count
    self.elapsed = elapsed
    sorted = times.sorted()
  }

  /// The number of operations per second.
  var perSecond: Double {
    elapsed > .zero ? Double(operations) / (elapsed / .seconds(1)) : 0
  }

  /// Returns a percentile of the durations.
  ///
  /// - Parameter percent: The percentile, from 1 to 100, which is the slowest operation.
  func time(ofPercent percent: Int) -> Duration {
    guard !sorted.isEmpty else { return .zero }
    return sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
  }
}

/// The report that `larder bench` prints.
struct BenchReport {
  /// The description of the store.
  let information: StoreInformation
  /// The parameters of the measurement.
  let plan: BenchPlan
  /// The results.
  let results: [BenchResult]

  /// The lines of a table.
  var table: [String] {
    let head = ["", "operations", "per second", "p50", "p99", "slowest"]
    let rows = results.map { result in
      [result.what, "\(result.operations)", "\(Int(result.perSecond.rounded()))"]
        + [50, 99, 100].map { BenchReport.text(of: result.time(ofPercent: $0)) }
    }
    let widths = head.indices.map { column in ([head] + rows).map { $0[column].count }.max() ?? 0 }
    let lines = ([head] + rows).map { row in
      zip(row, widths).enumerated().map { column, cell in
        let padding = String(repeating: " ", count: cell.1 - cell.0.count)
        return column == 0 ? cell.0 + padding : padding + cell.0
      }.joined(separator: "  ")
    }
    let (readers, writers) = (plan.readerCount, plan.writerCount)
    return [
      "\(information.name.inOneLine): \(information.durability), \(EntryCount.text(plan.entryCount)) "
        + "of \(plan.valueSize) bytes, \(writers) \(writers == 1 ? "writer" : "writers"), "
        + "\(readers) \(readers == 1 ? "reader" : "readers")"
    ] + lines
  }

  /// Appends one JSON object, in which times are in seconds.
  func appendJSON(to bytes: inout [UInt8]) {
    let items = results.map { result in
      let times = [("p50", 50), ("p99", 99), ("slowest", 100)].map { name, percent in
        "\"\(name)\":\(result.time(ofPercent: percent) / .seconds(1))"
      }
      return "{\"what\":\(JSONText(string: result.what)),\"operations\":\(result.operations),"
        + "\"seconds\":\(result.elapsed / .seconds(1)),\"perSecond\":\(result.perSecond),\(times.joined(separator: ","))}"
    }
    let members = [
      "\"name\":\(JSONText(string: information.name))", "\"durability\":\"\(information.durability)\"",
      "\"entries\":\(plan.entryCount)", "\"valueBytes\":\(plan.valueSize)", "\"readers\":\(plan.readerCount)",
      "\"writers\":\(plan.writerCount)", "\"results\":[\(items.joined(separator: ","))]",
    ]
    bytes.append(contentsOf: "{\(members.joined(separator: ","))}".utf8)
  }

  /// Returns a duration in a suitable unit, with at most three significant digits.
  static func text(of duration: Duration) -> String {
    let seconds = duration / .seconds(1)
    let steps: [(size: Double, unit: String)] = [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
    let step = steps.first { seconds >= $0.size } ?? (1e-9, "ns")
    let figure = (seconds / step.size).formatted(
      .number.precision(.significantDigits(1...3)).grouping(.never).locale(Locale(identifier: "en")))
    return "\(figure) \(step.unit)"
  }
}
