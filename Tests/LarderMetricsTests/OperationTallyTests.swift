#if Metrics
import Larder
import LarderTesting
import Testing

@testable import LarderMetrics

@Suite struct OperationTallyTests {
  private func report(of times: [UInt64]) -> OperationReport {
    var tally = OperationTally()
    for time in times { tally.record(nanoseconds: time, error: nil, bytes: 0) }
    return tally.report(named: "value", inFlight: 0, countsBytes: false)
  }

  /// Returns the exact percentile of some times.
  private func exact(_ percent: Int, of times: [UInt64]) -> UInt64 {
    let sorted = times.sorted()
    return sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
  }

  private func isWithinTwoDigits(_ duration: Duration, of exact: UInt64) -> Bool {
    let got = Double(duration.wholeNanoseconds)
    return abs(got - Double(exact)) <= Double(exact) * 0.005
  }

  /// Uniform, long-tailed and bimodal times, from nanoseconds to hours.
  @Test(arguments: [1, 1000, 3_600_000_000] as [UInt64]) func `percentiles are accurate to two digits`(unit: UInt64) {
    var random = SeededGenerator(seed: 9)
    let even = (1...10_000).map { UInt64($0) * unit }.shuffled(using: &random)
    let longTailed = (1...10_000).map { 10_000 * unit / UInt64($0) + 100 }
    let twoHeights = (1...10_000).map { ($0 % 10 == 0 ? 5000 : 7) * unit }
    for times in [even, longTailed, twoHeights] {
      let report = report(of: times)
      #expect(report.count == 10_000)
      #expect(isWithinTwoDigits(report.median, of: exact(50, of: times)))
      #expect(isWithinTwoDigits(report.percentile90, of: exact(90, of: times)))
      #expect(isWithinTwoDigits(report.percentile95, of: exact(95, of: times)))
      #expect(isWithinTwoDigits(report.percentile99, of: exact(99, of: times)))
      #expect(report.longest == .nanoseconds(times.max() ?? 0))
      #expect(report.mean == .nanoseconds(times.reduce(0, +) / 10_000))
    }
  }

  @Test func `empty and single tallies are reported`() {
    #expect(report(of: []).count == 0)
    #expect(report(of: []).longest == .zero)
    let one = report(of: [1_234_567])
    #expect(one.percentile99 <= one.longest)
    #expect(one.mean == .nanoseconds(1_234_567))
    #expect(report(of: [0]).median == .zero)
  }

  @Test func `extreme times are counted`() {
    let report = report(of: [.max, 1])
    #expect(report.count == 2)
    #expect(report.percentile99 > .seconds(200_000))
  }
}
#endif
