/// A workload of Larder's and those that it is measured beside, in the same run.
public struct Comparison: Sendable {
  /// What a workload is measured beside.
  public struct Yardstick: Sendable {
    /// What is done instead.
    public let workload: Workload

    /// How many times as long as the yardstick the subject may take, where Larder promises something.
    public let limit: Double?

    /// Makes a yardstick.
    ///
    /// - Parameters:
    ///   - workload: What is done instead.
    ///   - limit: How many times as long the subject may take; `nil`, the default, where nothing is promised.
    public init(_ workload: Workload, limit: Double? = nil) {
      self.workload = workload
      self.limit = limit
    }
  }

  /// The workload in question.
  public let subject: Workload

  /// What it is measured beside.
  public let yardsticks: [Yardstick]

  /// How many rounds of each are enough for a median.
  public let roundCount: Int

  /// Makes a comparison.
  ///
  /// - Parameters:
  ///   - subject: The workload in question.
  ///   - yardsticks: What it is measured beside.
  ///   - roundCount: How many rounds of each are enough for a median; 31 unless given.
  public init(_ subject: Workload, beside yardsticks: [Yardstick], roundCount: Int = 31) {
    self.subject = subject
    self.yardsticks = yardsticks
    self.roundCount = roundCount
  }

  /// Every comparison there is.
  public static let all: [Comparison] =
    StoredPuts.comparisons + Decorators.comparisons + Expiry.comparisons + InMemory.comparisons + Opening.comparisons
    + Keys.comparisons + LMDBStores.comparisons + BatchedPuts.comparisons + Queues.comparisons + Codecs.comparisons
    + TypedStores.comparisons + Caches.comparisons + CachedStores.comparisons + Compression.comparisons
    + CompressedFiles.comparisons

  /// The workloads of every comparison, each once.
  public static var workloads: [Workload] {
    var names: Set<String> = []
    return all.flatMap { [$0.subject] + $0.yardsticks.map(\.workload) }.filter { names.insert($0.name).inserted }
  }
}
