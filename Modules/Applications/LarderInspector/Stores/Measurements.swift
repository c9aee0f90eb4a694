#if Inspector
import Foundation
import HTTPTypes
import Larder

extension InspectedStore {
  /// Returns a copy with a page that charts measurements of this program.
  ///
  /// The charts begin when the page is opened. A chart shows rates and hit ratios of the last two seconds; percentiles and counts are
  /// those since the program began to measure.
  ///
  /// ```swift
  /// let inspected = InspectedStore("users", users, codec: .json()).reporting(
  ///   operations: { try users.report().json() },
  ///   hits: { (cache.statistics().hits, cache.statistics().misses) })
  /// ```
  ///
  /// - Parameters:
  ///   - operations: A closure that returns the operations and their times, in the form of `MeterReport.json()` of
  ///     `LarderMetrics`. Defaults to `nil`, for none.
  ///   - hits: A closure that returns the numbers of reads that a cache did and did not answer, such as those of
  ///     `CachedStoreStatistics`. Defaults to `nil`, for none.
  public func reporting(
    operations: (@Sendable () throws -> String)? = nil, hits: (@Sendable () -> (hits: Int, misses: Int))? = nil
  ) -> InspectedStore {
    var copy = self
    copy.measurements = Measurements(report: operations, hits: hits)
    return copy
  }
}

/// The sources of the measurements of a store.
struct Measurements: Sendable {
  var report: (@Sendable () throws -> String)?
  var hits: (@Sendable () -> (hits: Int, misses: Int))?

  /// The measurements of one operation, as `MeterReport.json()` writes them.
  struct Operation: Sendable, Hashable, Decodable {
    var name: String
    var count: Int
    var errors: [String: Int]
    var inFlight: Int
    var p50Nanoseconds: Int64
    var p90Nanoseconds: Int64
    var p99Nanoseconds: Int64
    var maxNanoseconds: Int64
  }

  private struct Report: Decodable {
    var operations: [Operation]
  }

  /// Reads the operations.
  ///
  /// - Throws: ``PageFailure`` if the report has another form; the error of the closure.
  func operations() throws -> [Operation] {
    guard let text = try report?() else { return [] }
    do {
      return try JSONDecoder().decode(Report.self, from: Data(text.utf8)).operations
    } catch {
      throw PageFailure(
        .internalServerError,
        "the measurements do not have the form of MeterReport.json(); return the result of that method")
    }
  }

  /// The figures that the script follows, as members of a JSON object.
  func members() throws -> [String] {
    var members = try operations().flatMap { operation in
      [
        "\(JSONText(string: "total:\(operation.name)")):\(operation.count)",
        "\(JSONText(string: "p99:\(operation.name)")):\(operation.p99Nanoseconds)",
      ]
    }
    if let hits = hits?() { members += Self.members(hits: hits.hits, misses: hits.misses) }
    return members
  }

  /// The members from which the script computes a hit ratio.
  static func members(hits: Int, misses: Int) -> [String] {
    ["\"hits\":\(hits)", "\"misses\":\(misses)"]
  }
}

/// The page of measurements.
extension InspectorPages {
  func measurements(_ fields: FormFields) async throws -> Page {
    let (number, store) = try store(fields)
    guard let measurements = store.measurements else {
      throw PageFailure(.notFound, "this store has no measurements; add them with `reporting(operations:hits:)`")
    }
    let operations = try measurements.operations()
    let rows = operations.map { operation -> HTML in
      let errors = operation.errors.sorted { $0.key < $1.key }.map { "\(Readable.count($0.value)) \($0.key)" }
      return """
        <tr><th scope="row">\(operation.name)</th>
        <td class="number"><span data-count="rate:\(operation.name)">–</span>\(Self.chart("rate:\(operation.name)"))</td>
        <td class="number">\(Readable.nanoseconds(operation.p50Nanoseconds))</td>
        <td class="number">\(Readable.nanoseconds(operation.p90Nanoseconds))</td>
        <td class="number">\(Readable.nanoseconds(operation.p99Nanoseconds))\(Self.chart("p99:\(operation.name)"))</td>
        <td class="number">\(Readable.nanoseconds(operation.maxNanoseconds))</td>
        <td class="number">\(Readable.count(operation.count))</td><td class="number">\(Readable.count(operation.inFlight))</td>
        <td>\(errors.isEmpty ? "0" : errors.joined(separator: ", "))</td></tr>
        """
    }
    let table: HTML =
      rows.isEmpty
      ? "<p class=\"empty\">No operation was measured yet.</p>"
      : """
      <div class="table"><table><thead><tr><th scope="col">Operation</th><th scope="col" class="number">Per second</th>\
      <th scope="col" class="number">Median</th><th scope="col" class="number">90th percentile</th>\
      <th scope="col" class="number">99th percentile</th><th scope="col" class="number">Longest</th>\
      <th scope="col" class="number">Count</th><th scope="col" class="number">In flight</th><th scope="col">Errors</th></tr></thead>
      <tbody>\(rows)</tbody></table></div>
      """
    let hits = measurements.hits.map { $0() }
    let ratio: HTML? = hits.map {
      "<ul class=\"facts states\">\(Self.hitRatio(hits: $0.hits, misses: $0.misses))</ul>"
    }
    return Page(
      title: "Measurements", crumbs: crumbs(number, store),
      content: """
        <h1>Measurements of \(store.name)</h1>
        \(ratio)\(measurements.report == nil ? nil : table)
        <p class="quiet">Rates are those of the last seconds. Times and counts are those since the program began to measure.</p>
        """,
      liveAddress: Page.address("state", ["store": "\(number)"]))
  }

  /// A hit ratio since the beginning and, by the script, of the last seconds.
  static func hitRatio(hits: Int, misses: Int) -> HTML {
    let reads = hits + misses
    let ratio = reads == 0 ? "–" : "\(Int((100 * Double(hits) / Double(reads)).rounded())) %"
    return """
      <li class="state"><span class="term">Hit ratio now</span> <span><span data-count="ratio">–</span>\(chart("ratio"))</span></li>
      <li class="state"><span class="term">Hit ratio since the start</span> <span><b>\(ratio)</b> of \(Readable.count(reads))</span></li>
      """
  }

  /// A chart that the script draws.
  static func chart(_ name: String) -> HTML {
    """
    <svg class="chart" data-chart="\(name)" viewBox="0 0 120 32" preserveAspectRatio="none" aria-hidden="true"><polyline points=""/></svg>
    """
  }
}

extension Readable {
  /// Returns a time with three digits, such as `1.25 ms`.
  static func nanoseconds(_ nanoseconds: Int64) -> String {
    for (unit, size) in [("s", 1e9), ("ms", 1e6), ("µs", 1e3)] where Double(nanoseconds) >= size {
      let value = Double(nanoseconds) / size
      return String(format: "%.\(value >= 100 ? 0 : value >= 10 ? 1 : 2)f \(unit)", value)
    }
    return "\(nanoseconds) ns"
  }
}
#endif
