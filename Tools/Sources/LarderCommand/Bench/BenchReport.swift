import Foundation
import Larder

/// What `larder bench` prints.
struct BenchReport {
  /// What the store says of itself.
  let information: StoreInformation
  /// What was done.
  let plan: BenchPlan
  /// How it went.
  let results: [BenchResult]

  /// The lines of a table for people to read.
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
      "\(information.name.inOneLine): \(information.acknowledgement), \(EntryCount.text(plan.entryCount)) "
        + "of \(plan.valueSize) bytes, \(writers) \(writers == 1 ? "writer" : "writers"), "
        + "\(readers) \(readers == 1 ? "reader" : "readers")"
    ] + lines
  }

  /// Appends one JSON object, in which times are seconds.
  func appendJSON(to bytes: inout [UInt8]) {
    let items = results.map { result in
      let times = [("p50", 50), ("p99", 99), ("slowest", 100)].map { name, percent in
        "\"\(name)\":\(result.time(ofPercent: percent) / .seconds(1))"
      }
      return "{\"what\":\(JSONText(string: result.what)),\"operations\":\(result.operations),"
        + "\"seconds\":\(result.elapsed / .seconds(1)),\"perSecond\":\(result.perSecond),\(times.joined(separator: ","))}"
    }
    let members = [
      "\"name\":\(JSONText(string: information.name))", "\"acknowledgement\":\"\(information.acknowledgement)\"",
      "\"entries\":\(plan.entryCount)", "\"valueBytes\":\(plan.valueSize)", "\"readers\":\(plan.readerCount)",
      "\"writers\":\(plan.writerCount)", "\"results\":[\(items.joined(separator: ","))]",
    ]
    bytes.append(contentsOf: "{\(members.joined(separator: ","))}".utf8)
  }

  /// A time in the unit that suits it.
  static func text(of duration: Duration) -> String {
    let seconds = duration / .seconds(1)
    let steps: [(size: Double, unit: String)] = [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
    let step = steps.first { seconds >= $0.size } ?? (1e-9, "ns")
    let figure = (seconds / step.size).formatted(
      .number.precision(.significantDigits(1...3)).grouping(.never).locale(Locale(identifier: "en")))
    return "\(figure) \(step.unit)"
  }
}
