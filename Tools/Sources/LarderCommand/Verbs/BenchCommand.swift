import ArgumentParser
import Larder

/// `larder bench`.
struct BenchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure how fast a store is.",
    discussion: """
      Writes entries one by one, once as they are and once through group commit, reads each of them, scans them by pages, \
      and removes them. Makes the store where it is missing, and leaves it. Other entries are not touched: the keys begin \
      with larder-bench:.

      Prints a table for people, or with --json one object, in which times are seconds.

        larder bench lmdb:/tmp/bench --writers 100
        larder bench json:/tmp/bench.json --entries 1000 --value-size 4096 --json
      """)

  @OptionGroup var store: StoreArgument
  @Option(help: ArgumentHelp("How many entries.", valueName: "n")) var entries = 10_000
  @Option(help: ArgumentHelp("How many bytes of text each value has.", valueName: "n")) var valueSize = 100
  @Option(help: ArgumentHelp("How many tasks read at once.", valueName: "n")) var readers = 4
  @Option(help: ArgumentHelp("How many tasks write at once.", valueName: "n")) var writers = 16
  @Flag(name: .customLong("json"), help: "Print one JSON object in place of the table.") var printsJSON = false

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
    try await StoreSession.run(store.target, createsIfMissing: true) { store, output in
      let report = try await BenchRun(on: store, plan: plan).run()
      if printsJSON {
        try output.writeLine { report.appendJSON(to: &$0) }
      } else {
        for line in report.table { try output.writeLine(line) }
      }
    }
  }
}
