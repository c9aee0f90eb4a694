#if Metrics
import Foundation
import Larder

/// The measurements of a ``StoreMeter`` up to one moment.
///
/// ```swift
/// print(store.report())             // a table for people
/// print(try store.report().json())  // the same for programs
/// ```
public struct MeterReport: Sendable, Hashable, Encodable {
  /// The name of the meter, by default that of the store.
  public let store: String

  /// The reports of all operations that were called, in the order of the requirements of `DataStore`.
  ///
  /// Your own blocks follow, sorted by name.
  public let operations: [OperationReport]

  /// The report of one operation or block, or `nil` if it was never called.
  ///
  /// - Parameter name: The name of the operation or block, such as `value`.
  public subscript(name: String) -> OperationReport? {
    operations.first { $0.name == name }
  }

  /// Returns the report as a JSON object with times in nanoseconds.
  ///
  /// - Throws: `EncodingError`, which no report causes.
  public func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}

extension MeterReport: CustomStringConvertible {
  /// A table with a row for each operation.
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

  /// Returns rows as a table whose first column is aligned left and whose other columns are aligned right.
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

  /// Returns a duration with three digits and a suitable unit.
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

/// The measurements of one kind of operation.
///
/// Times run from the call to its return and include failed calls. Percentiles are exact to three digits.
///
/// ```swift
/// if let reads = store.report()["value"] { print(reads.count, reads.median, reads.percentile99, reads.errorCount) }
/// ```
public struct OperationReport: Sendable, Hashable {
  /// The name of the operation or block.
  public let name: String

  /// The number of finished operations, including failed ones.
  public let count: Int

  /// The number of failed operations by the code of their `StoreError`, or `other` for any other error.
  ///
  /// A `CancellationError`, or an error thrown by the body of an update, is not a failure.
  public let errors: [String: Int]

  /// The number of operations that have begun and not ended.
  public let inFlight: Int

  /// The sum of the times.
  ///
  /// It never decreases.
  public let total: Duration

  /// The mean time.
  public let mean: Duration

  /// The median time.
  public let median: Duration

  /// The 90th percentile of the times.
  public let percentile90: Duration

  /// The 95th percentile of the times.
  public let percentile95: Duration

  /// The 99th percentile of the times.
  public let percentile99: Duration

  /// The longest time.
  public let longest: Duration

  /// The total size of the values that were read or written, in bytes, or `nil` if bytes are not counted.
  public let bytes: Int?

  /// The number of failed operations.
  public var errorCount: Int { errors.values.reduce(0, +) }
}

extension OperationReport: Encodable {
  private enum CodingKeys: String, CodingKey {
    case name, count, errors, inFlight
    case meanNanoseconds, p50Nanoseconds, p90Nanoseconds, p95Nanoseconds, p99Nanoseconds, maxNanoseconds, bytes
  }

  /// Encodes the report with times in whole nanoseconds.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(name, forKey: .name)
    try container.encode(count, forKey: .count)
    try container.encode(errors, forKey: .errors)
    try container.encode(inFlight, forKey: .inFlight)
    try container.encode(mean.wholeNanoseconds, forKey: .meanNanoseconds)
    try container.encode(median.wholeNanoseconds, forKey: .p50Nanoseconds)
    try container.encode(percentile90.wholeNanoseconds, forKey: .p90Nanoseconds)
    try container.encode(percentile95.wholeNanoseconds, forKey: .p95Nanoseconds)
    try container.encode(percentile99.wholeNanoseconds, forKey: .p99Nanoseconds)
    try container.encode(longest.wholeNanoseconds, forKey: .maxNanoseconds)
    try container.encodeIfPresent(bytes, forKey: .bytes)
  }
}
#endif
