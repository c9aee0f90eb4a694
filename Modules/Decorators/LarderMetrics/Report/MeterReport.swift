#if Metrics
internal import Foundation

/// What a ``StoreMeter`` has measured so far.
///
/// ```swift
/// print(store.report())            // a table for people
/// print(try store.report().json())  // the same for programs
/// ```
public struct MeterReport: Sendable, Hashable, Encodable {
  /// The name of the store, or what the meter was called.
  public let store: String

  /// What was measured of each kind of operation that was asked for, in the order of `DataStore`'s requirements, blocks of
  /// the user's own behind them by name.
  public let operations: [OperationReport]

  /// What was measured of one kind of operation; `nil` where it was not asked for.
  ///
  /// - Parameter name: The name of the operation or block, like `value`.
  public subscript(name: String) -> OperationReport? {
    operations.first { $0.name == name }
  }

  /// The report as JSON, one object; times are in nanoseconds.
  ///
  /// - Throws: `EncodingError`, which no report leads to.
  public func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}

extension MeterReport: CustomStringConvertible {
  /// A table for people: a row for each kind of operation.
  public var description: String {
    let countsBytes = operations.contains { $0.bytes != nil }
    let times = ["mean", "p50", "p90", "p95", "p99", "max"]
    let header = [store, "count", "errors", "in flight"] + times + (countsBytes ? ["bytes"] : [])
    let rows = operations.map { operation in
      let errors = operation.errors.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
      let times = [
        operation.mean, operation.median, operation.percentile90, operation.percentile95, operation.percentile99,
        operation.longest,
      ].map(MeterReport.text)
      return [operation.name, "\(operation.count)", errors.isEmpty ? "0" : errors, "\(operation.inFlight)"] + times
        + (countsBytes ? [operation.bytes.map { "\($0)" } ?? ""] : [])
    }
    return MeterReport.table([header] + rows)
  }

  /// Lays out rows in columns, the first one to the left, the others to the right.
  private static func table(_ rows: [[String]]) -> String {
    let columnCount = rows.map(\.count).max() ?? 0
    let widths = (0..<columnCount).map { column in rows.map { $0[column].count }.max() ?? 0 }
    return rows.map { row in
      row.enumerated().map { column, text in
        let padding = String(repeating: " ", count: widths[column] - text.count)
        return column == 0 ? text + padding : padding + text
      }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  /// A time with three digits and the unit that suits it.
  private static func text(_ duration: Duration) -> String {
    let nanoseconds = Double(duration.wholeNanoseconds)
    for (unit, size) in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] where nanoseconds >= size {
      let value = nanoseconds / size
      let digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
      return String(format: "%.\(digits)f", value) + " \(unit)"
    }
    return "\(Int(nanoseconds)) ns"
  }
}
#endif
