public import Larder

/// Checks that a store, a decorator or a stack of them keeps every promise of ``DataStore``.
///
/// One closure gives every case. With Swift Testing, which shows each case by its name:
///
/// ```swift
/// struct JSONFileStoreConformance {
///   static let suite = ConformanceSuite(named: "JSONFileStore") { location in
///     try await JSONFileStore<SampleValue?>(path: location.path("store.json"), access: location.access)
///   }
///
///   @Test(arguments: suite.cases) func conforms(_ conformanceCase: ConformanceCase) async throws {
///     try await conformanceCase.run()
///   }
/// }
/// ```
///
/// Without a test framework, ``run()`` gives a report.
///
/// The store is one of `SampleValue?`, so that every case meets an optional value. Called again with the same location,
/// the closure opens the same data again, with the access that the location states. A store that cannot do something says so, and the cases that need it are
/// listed in ``skipped``; nothing else is ever left out.
///
/// Numbers below 200 are those of a list of the cases that the test suites of well-known stores have in common; those
/// missing concern abilities that ``DataStore`` does not have. From 200 on they are Larder's own.
public struct ConformanceSuite: Sendable {
  /// The name of the store.
  public let name: String

  /// What the store was stated to lack.
  public let lacking: StoreAbilities

  /// The seed of the random numbers of the suite.
  public let seed: UInt64

  /// How many random histories each of the cases runs that run such histories.
  public let rounds: Int

  /// The cases to run, by number.
  public let cases: [ConformanceCase]

  /// The cases that are left out since the store lacks what they need, by number.
  public let skipped: [SkippedCase]

  /// Makes the suite of a store.
  ///
  /// - Parameters:
  ///   - name: The name of the store, for failures.
  ///   - lacking: What the store cannot do; nothing unless given. A case checks that this is true.
  ///   - seed: Decides on the random numbers; that of the environment variable `LARDER_SEED`, or else a random one,
  ///     unless given. A failure shows it.
  ///   - rounds: How many random histories each of the cases runs that run such histories; as many as the environment
  ///     variable `LARDER_ROUNDS` says, or else 20, unless given.
  ///   - maximumKeyLength: How many bytes the longest key of the store has; ``StoreKey/maximumLength`` unless it is a
  ///     view that puts something before its keys.
  ///   - timeLimit: How long a case may take; defaults to ``timeLimitOfProcess``. A case that takes longer fails, and the
  ///     failure names it. Its task is cancelled, but not waited for, and what it opened stays open.
  ///   - child: Starts another process that opens the store, as ``ConformanceChild`` shows; defaults to `nil`: the cases that
  ///     need one are then skipped.
  ///   - open: Opens the store at a location. It is called at least once for each case, and again with the same
  ///     location to reopen what was closed.
  public init<Store: DataStore>(
    named name: String,
    lacking: StoreAbilities = [],
    seed: UInt64 = SeededGenerator.seedOfProcess,
    rounds: Int = ConformanceSuite.roundsOfProcess,
    maximumKeyLength: Int = StoreKey.maximumLength,
    timeLimit: Duration = ConformanceSuite.timeLimitOfProcess,
    child: ConformanceChild.Start? = nil,
    open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) where Store.Value == SampleValue? {
    var list = CaseList(
      suite: name, lacking: lacking, seed: seed, rounds: rounds,
      maximumKeyLength: maximumKeyLength, timeLimit: timeLimit, child: child, open: open)
    list.addAll()
    var missing = lacking
    if lacking.contains(.persistence) { missing.formUnion([.acknowledgedPersistence, .readOnlyAccess]) }
    if child == nil { missing.formUnion(.otherProcesses) }
    let all = list.cases.sorted { ($0.number, $0.variant) < ($1.number, $1.variant) }
    self.name = name
    self.lacking = lacking
    self.seed = seed
    self.rounds = rounds
    cases = all.filter { $0.needs.isDisjoint(with: missing) }
    skipped = all.filter { !$0.needs.isDisjoint(with: missing) }
      .map { [missing] in SkippedCase(conformanceCase: $0, lacking: $0.needs.intersection(missing)) }
  }

  /// Runs the cases one after another.
  ///
  /// - Throws: `CancellationError` where the task is cancelled.
  public func run() async throws -> ConformanceReport {
    var report = ConformanceReport(skipped: skipped)
    for conformanceCase in cases {
      try Task.checkCancellation()
      do {
        try await conformanceCase.run()
        report.passed.append(conformanceCase)
      } catch let failure as ConformanceFailure {
        report.failures.append(failure)
      }
    }
    return report
  }
}

extension ConformanceSuite: CustomStringConvertible {
  /// The name, and how many cases there are.
  public var description: String { "\(name): \(cases.count) cases, \(skipped.count) skipped" }
}
