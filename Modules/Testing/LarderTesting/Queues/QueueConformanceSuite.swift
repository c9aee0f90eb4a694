public import Larder

/// A suite of cases that check whether a queue keeps every promise of `DurableQueue`.
///
/// The suite needs one closure that opens the queue with the rules and the clock of a location:
///
/// ```swift
/// struct QueueStoreDeliveries {
///   static let suite = QueueConformanceSuite(named: "QueueStore") { location in
///     try await QueueStore<SampleValue?>(
///       path: location.files.path("queue"), codec: .cbor(),
///       configuration: QueueConfiguration(policy: location.policy),
///       environment: .manual(location.clock))
///   }
///
///   @Test(arguments: suite.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
///     try await conformanceCase.run()
///   }
/// }
/// ```
///
/// A queue is a `DataStore` too, so run a ``ConformanceSuite`` as well. Cases about priorities and groups check that a
/// queue without them refuses such items with `unsupported`. The numbers of the cases begin with 400.
public struct QueueConformanceSuite: Sendable {
  /// The name of the queue.
  public var name: String { suite.name }

  /// The cases to run, ordered by number.
  public var cases: [ConformanceCase] { suite.cases }

  /// The cases that are skipped because the queue lacks a capability, ordered by number.
  public var skipped: [SkippedCase] { suite.skipped }

  private let suite: ConformanceSuite

  /// Creates the suite of a queue.
  ///
  /// - Parameters:
  ///   - name: The name of the queue in failures.
  ///   - lacking: The capabilities that the queue lacks. Defaults to an empty set. Those that concern no queue are ignored.
  ///   - isShared: A Boolean value that indicates whether the closure can open the queue several times at the same
  ///     location at the same time. Defaults to `false`, and the cases that need it are then skipped.
  ///   - seed: The seed of the random numbers, printed with each failure. Defaults to the environment variable
  ///     `LARDER_SEED`, or else a random seed.
  ///   - rounds: The number of random histories. Defaults to the environment variable `LARDER_ROUNDS`, or else 20.
  ///   - timeLimit: The maximum duration of a case. Defaults to ``ConformanceSuite/timeLimitOfProcess``.
  ///   - open: A closure that opens the queue at a location. The suite calls it at least once for each case, and again
  ///     with the same location to reopen a queue.
  public init<Queue: DurableQueue>(
    named name: String,
    lacking: StoreCapabilities = [],
    isShared: Bool = false,
    seed: UInt64 = SeededGenerator.seedOfProcess,
    rounds: Int = ConformanceSuite.roundsOfProcess,
    timeLimit: Duration = ConformanceSuite.timeLimitOfProcess,
    open: @escaping @Sendable (QueueLocation) async throws -> Queue
  ) where Queue.Value == SampleValue? {
    let settings = SuiteSettings(
      name: name, lacking: lacking, seed: seed, rounds: rounds, maximumKeyLength: StoreKey.maximumLength,
      timeLimit: timeLimit, child: nil, open: { try await open(QueueLocation($0)) })
    suite = ConformanceSuite(
      CaseList(ofQueue: settings), missing: isShared ? lacking : lacking.union(.otherProcesses))
  }

  /// Runs the cases one after another.
  ///
  /// - Returns: The passed, failed and skipped cases.
  /// - Throws: `CancellationError` if the task is cancelled.
  public func run() async throws -> ConformanceReport {
    try await suite.run()
  }
}

extension QueueConformanceSuite: CustomStringConvertible {
  /// The name, and the numbers of cases and of skipped cases.
  public var description: String { suite.description }
}

/// The place for the data of one queue in a case, with the rules and the clock that the queue must use.
public struct QueueLocation: Sendable {
  /// The folder, and objects in memory.
  public let files: ConformanceLocation

  /// The clock of the queue, whose `date` is the wall-clock time.
  public let clock: ManualClock

  init(_ files: ConformanceLocation) {
    self.files = files
    clock = files.object(named: "the clock of the queue") { ManualClock() }
  }

  /// The policy of the queue: three deliveries, a delay of 10 seconds after the first and of 20 seconds after each further
  /// one, and keys that are remembered for 60 seconds.
  public var policy: QueuePolicy {
    QueuePolicy(
      maximumDeliveries: 3, retryPolicy: RetryPolicy(base: .seconds(10), ceiling: .seconds(20), jitter: 0),
      duplicateWindow: .seconds(60))
  }
}
