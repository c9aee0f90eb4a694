import ArgumentParser
import Foundation

/// Prints the hit ratio of each policy of `MemoryCache`, and of some yardsticks, as a table in Markdown.
///
/// Each key of a trace is read from the cache, and inserted if it is missing.
@main
struct HitRatio: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hit-ratio",
    abstract:
      "Show the hit ratios of MemoryCache's policies and of others, in percent, on traces and synthetic workloads.",
    discussion: """
      S3-FIFO and the fixed windows, which are W-TinyLFU with a window that does not adapt, are for comparison only. The \
      last column shows how far .adaptive is behind the best other policy.
      """)

  @Option(help: "A file with one key number on each line, plain or compressed by gzip. You can repeat this option.")
  var trace: [String] = []

  @Option(
    help: ArgumentHelp(
      "A synthetic workload. You can repeat this option. Defaults to all without a trace.", valueName: "name"))
  var workload: [SyntheticWorkload] = []

  @Option(help: "The number of entries that the cache holds. You can repeat this option.")
  var entries: [Int] = [1000]

  @Option(help: "A policy to show. You can repeat this option. Defaults to all policies.")
  var policy: [ComparedPolicy] = []

  @Option(help: "The number of reads of a synthetic workload.")
  var requests = 1_000_000

  @Option(help: "The seed of the synthetic workloads.")
  var seed: UInt64 = 1

  @Option(help: "Fail if the hit ratio of .adaptive is lower, in percent.")
  var atLeast: Double?

  @Option(help: "Fail if .adaptive is further behind the best other policy, in points.")
  var within: Double?

  @Option(help: ArgumentHelp("Also write the hit ratios to a file, in JSON.", valueName: "file"))
  var json: String?

  func validate() throws {
    guard entries.allSatisfy({ $0 > 0 }) else { throw ValidationError("--entries must be at least 1") }
    guard requests > 0 else { throw ValidationError("--requests must be at least 1") }
    if atLeast != nil || within != nil {
      guard policies.contains(.adaptive) else {
        throw ValidationError("--at-least and --within need --policy adaptive")
      }
    }
  }

  private var policies: [ComparedPolicy] { policy.isEmpty ? ComparedPolicy.allCases : policy }

  func run() throws {
    let policies = policies
    let sources = try sources
    var table = HitRatioTable(policies: policies)
    var failures = 0
    for source in sources {
      for entries in entries {
        let keys = try source.keys(entries)
        let ratios = policies.map { $0.hitRatio(of: keys, entries: entries) * 100 }
        let row = HitRatioTable.Row(name: source.name, entries: entries, ratios: ratios)
        let isLow = atLeast.map { table.adaptive(of: row) ?? 0 < $0 } ?? false
        let isBehind = within.map { table.lag(of: row) ?? 0 > $0 } ?? false
        if isLow || isBehind { failures += 1 }
        table.append(row)
      }
    }
    if let json { try table.write(to: json) }
    if failures > 0 {
      FileHandle.standardError.write(Data("hit-ratio: \(failures) hit ratios of .adaptive are below the limit\n".utf8))
      throw ExitCode.failure
    }
  }

  /// The sources of keys: a name, and a closure that returns the keys for a cache with a number of entries.
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
