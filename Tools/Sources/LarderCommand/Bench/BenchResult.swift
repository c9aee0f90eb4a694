/// How long the operations of one kind took.
struct BenchResult {
  /// What was done.
  let what: String
  /// How many operations there were.
  let operations: Int
  /// How long all of them took together.
  let elapsed: Duration

  private let sorted: [Duration]

  /// Makes a result.
  ///
  /// - Parameters:
  ///   - what: What was done.
  ///   - times: How long each operation took, in any order.
  ///   - elapsed: How long all of them took together.
  init(what: String, times: [Duration], elapsed: Duration) {
    self.what = what
    operations = times.count
    self.elapsed = elapsed
    sorted = times.sorted()
  }

  /// How many operations there were in a second.
  var perSecond: Double {
    elapsed > .zero ? Double(operations) / (elapsed / .seconds(1)) : 0
  }

  /// The time within which a part of the operations were done.
  ///
  /// - Parameter percent: How many of a hundred; 100 for the slowest.
  func time(ofPercent percent: Int) -> Duration {
    guard !sorted.isEmpty else { return .zero }
    return sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
  }
}
