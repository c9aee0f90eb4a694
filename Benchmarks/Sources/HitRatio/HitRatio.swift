import ArgumentParser
import Foundation

/// Shows how many reads of a trace each policy of `MemoryCache`, and of some yardsticks, would make hits, in one table in Markdown.
///
/// A cache is asked for each key in turn, and given it where it is missing.
@main
struct HitRatio: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hit-ratio",
    abstract:
      "Show the hit ratios of MemoryCache's policies and of others, in percent, on traces and on workloads made up.",
    discussion: """
      S3-FIFO and the fixed windows, which are W-TinyLFU with a window that does not adapt, are for comparison only. The \
      last column tells how far .adaptive is behind the best of the others.
      """)

  @Option(help: "A file with the number of a key on each line, plain or compressed by gzip; may be given again.")
  var trace: [String] = []

  @Option(
    help: ArgumentHelp(
      "A workload made up; may be given again. All of them, where no trace is given.", valueName: "name"))
  var workload: [SyntheticWorkload] = []

  @Option(help: "How many entries the cache holds; may be given again.")
  var entries: [Int] = [1000]

  @Option(help: "Which policy to show; may be given again. All of them unless given.")
  var policy: [ComparedPolicy] = []

  @Option(help: "How many keys a workload made up asks for.")
  var requests = 1_000_000

  @Option(help: "The seed of the workloads made up.")
  var seed: UInt64 = 1

  @Option(help: "End with an error where the hit ratio of .adaptive is lower, in percent.")
  var atLeast: Double?

  @Option(help: "End with an error where .adaptive is further behind the best of the others, in points.")
  var within: Double?

  func validate() throws {
    guard entries.allSatisfy({ $0 > 0 }) else { throw ValidationError("A cache holds at least one entry.") }
    guard requests > 0 else { throw ValidationError("There has to be a request.") }
    if atLeast != nil || within != nil {
      guard policies.contains(.adaptive) else { throw ValidationError("That needs the policy adaptive.") }
    }
  }

  private var policies: [ComparedPolicy] { policy.isEmpty ? ComparedPolicy.allCases : policy }

  func run() throws {
    let policies = policies
    let sources = try sources
    let table = HitRatioTable(policies: policies)
    var failures = 0
    for source in sources {
      for entries in entries {
        let keys = try source.keys(entries)
        let ratios = policies.map { $0.hitRatio(of: keys, entries: entries) * 100 }
        let row = HitRatioTable.Row(name: source.name, entries: entries, ratios: ratios)
        let isLow = atLeast.map { table.adaptive(of: row) ?? 0 < $0 } ?? false
        let isBehind = within.map { table.lag(of: row) ?? 0 > $0 } ?? false
        if isLow || isBehind { failures += 1 }
        table.show(row)
      }
    }
    if failures > 0 {
      FileHandle.standardError.write(Data("hit-ratio: \(failures) not as good as asked for\n".utf8))
      throw ExitCode.failure
    }
  }

  /// Where keys come from: a name, and the keys for a cache of so many entries.
  private var sources: [(name: String, keys: (Int) throws -> [UInt64])] {
    get throws {
      let traces = try trace.map { path in
        let keys = try TraceFile.keys(at: path)
        return (name: URL(filePath: path).lastPathComponent, keys: { (_: Int) throws in keys })
      }
      let workloads = workload.isEmpty && trace.isEmpty ? SyntheticWorkload.allCases : workload
      return traces
        + workloads.map { workload in
          (name: workload.rawValue, keys: { entries in workload.keys(count: requests, entries: entries, seed: seed) })
        }
    }
  }
}
