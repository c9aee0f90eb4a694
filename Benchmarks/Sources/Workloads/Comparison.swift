/// A workload of Larder and its yardsticks, which are measured in the same run.
public struct Comparison: Sendable {
  /// A yardstick for a workload.
  public struct Yardstick: Sendable {
    /// The workload to compare with.
    public let workload: Workload

    /// The maximum ratio of the subject's time to that of the yardstick, if Larder promises one.
    public let limit: Double?

    /// Creates a yardstick.
    ///
    /// - Parameters:
    ///   - workload: The workload to compare with.
    ///   - limit: The maximum ratio. Defaults to `nil`, which promises nothing.
    public init(_ workload: Workload, limit: Double? = nil) {
      self.workload = workload
      self.limit = limit
    }
  }

  /// The workload to measure.
  public let subject: Workload

  /// The yardsticks.
  public let yardsticks: [Yardstick]

  /// The number of rounds of each workload that are enough for a median.
  public let roundCount: Int

  /// Creates a comparison.
  ///
  /// - Parameters:
  ///   - subject: The workload to measure.
  ///   - yardsticks: The yardsticks.
  ///   - roundCount: The number of rounds of each workload that are enough for a median. Defaults to 31.
  public init(_ subject: Workload, beside yardsticks: [Yardstick], roundCount: Int = 31) {
    self.subject = subject
    self.yardsticks = yardsticks
    self.roundCount = roundCount
  }

  /// All comparisons.
  public static let all: [Comparison] =
    StoredPuts.comparisons + Decorators.comparisons + Expiry.comparisons + InMemory.comparisons + Opening.comparisons
    + Keys.comparisons + LMDBStores.comparisons + SQLiteStores.comparisons + GRDBStores.comparisons
    + BatchedPuts.comparisons + Queues.comparisons + Codecs.comparisons
    + TypedStores.comparisons + Caches.comparisons + CachedStores.comparisons + Compression.comparisons
    + CompressedFiles.comparisons + Observation.comparisons + BoundedStores.comparisons + HTTPCaches.comparisons
    + LoopbackCaches.comparisons + Peers.comparisons

  /// The workloads of all comparisons, without duplicates.
  public static var workloads: [Workload] {
    var names: Set<String> = []
    return all.flatMap { [$0.subject] + $0.yardsticks.map(\.workload) }.filter { names.insert($0.name).inserted }
  }
}
