#if Metrics
internal import Histogram
internal import Larder

/// What was counted of one kind of operation: plain state, which an ``OperationMeter`` keeps under a lock.
struct OperationTally {
  // Made with the first operation, so that one that nobody asks for costs nothing, and with room for usual times, because
  // to grow takes long.
  private var durations: Histogram<UInt64>?
  // What the histogram keeps is rounded to its digits; sums and the longest need not be.
  private var sum: UInt64 = 0
  private var longest: UInt64 = 0
  private var errors: [String: Int] = [:]
  private var byteCount = 0

  /// The longest time that there is room for from the beginning, in nanoseconds: about eight milliseconds.
  private static let longestUsual: UInt64 = 1 << 23

  /// The longest time that is told apart from a longer one, in nanoseconds: about three days.
  private static let longestTracked: UInt64 = 1 << 48

  /// Counts an operation that is over.
  ///
  /// - Parameters:
  ///   - nanoseconds: How long it took.
  ///   - error: The code of its error, or `nil` where it went well.
  ///   - bytes: The bytes of the values that it read or wrote.
  /// - Returns: The bytes that were counted: all of them, until the sum would be more than an `Int` holds.
  @discardableResult
  mutating func record(nanoseconds: UInt64, error: String?, bytes: Int) -> Int {
    if durations == nil {
      durations = Histogram(
        highestTrackableValue: OperationTally.longestUsual, numberOfSignificantValueDigits: .three)
      durations?.autoResize = true
    }
    durations?.record(min(nanoseconds, OperationTally.longestTracked))
    (sum, longest) = (sum &+ nanoseconds, max(longest, nanoseconds))
    if let error { errors[error, default: 0] += 1 }
    let counted = min(bytes, .max - byteCount)
    byteCount += counted
    return counted
  }

  /// What was counted so far.
  func report(named name: String, inFlight: Int, countsBytes: Bool) -> OperationReport {
    let count = Int(clamping: durations?.totalCount ?? 0)
    func percentile(_ percent: Double) -> Duration {
      // A rounded value must not be more than the exact one that is reported beside it.
      .nanoseconds(min(durations?.valueAtPercentile(percent) ?? 0, longest))
    }
    return OperationReport(
      name: name, count: count, errors: errors, inFlight: inFlight,
      mean: count == 0 ? .zero : .nanoseconds(sum / UInt64(count)), median: percentile(50),
      percentile90: percentile(90), percentile95: percentile(95), percentile99: percentile(99),
      longest: .nanoseconds(longest), bytes: countsBytes ? byteCount : nil)
  }
}
#endif
