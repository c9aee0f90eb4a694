import Foundation
public import Larder

/// A suite of cases that check whether a store, a decorator or a stack of them keeps every promise of `DataStore`.
///
/// The suite needs one closure that opens the store. Swift Testing shows each case by its name:
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
/// Without a test framework, call ``run()`` to get a report.
///
/// The value type is `SampleValue?`, so every case covers optional values. When the closure is called again with the
/// same location, it must open the same data, with the access of the location. If a store lacks a capability, pass it
/// as `lacking`. The cases that need the capability are then listed in ``skipped``; no other case is skipped.
///
/// Numbers below 200 come from a list of cases that the test suites of well-known stores have in common. Missing
/// numbers concern capabilities that `DataStore` does not have. Numbers from 200 are Larder's own.
public struct ConformanceSuite: Sendable {
  /// The name of the store.
  public let name: String

  /// The cases to run, ordered by number.
  public let cases: [ConformanceCase]

  /// The cases that are skipped because the store lacks a capability, ordered by number.
  public let skipped: [SkippedCase]

  /// Creates the suite of a store that the suite opens with codecs of its own, too.
  ///
  /// Use it for each store with a codec. Some cases check what the store tells its codec, and what becomes of the errors of
  /// the codec and of its name:
  ///
  /// ```swift
  /// static let suite = ConformanceSuite(named: "JSONFileStore", codec: .json()) { location, codec in
  ///   try await JSONFileStore(path: location.path("store.json"), codec: codec, access: location.access)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the store in failures.
  ///   - codec: The usual codec of the store, with which most cases open it.
  ///   - lacking: The capabilities that the store lacks. Defaults to an empty set.
  ///   - seed: The seed of the random numbers. Defaults to ``SeededGenerator/seedOfProcess``.
  ///   - rounds: The number of random histories. Defaults to ``roundsOfProcess``.
  ///   - maximumKeyLength: The length in bytes of the longest key that the store accepts. Defaults to
  ///     `StoreKey.maximumLength`.
  ///   - timeLimit: The maximum duration of a case. Defaults to ``timeLimitOfProcess``.
  ///   - child: A closure that starts another process that opens the store with the usual codec. Defaults to `nil`.
  ///   - open: A closure that opens the store at a location with a codec.
  public init<Store: DataStore>(
    named name: String,
    codec: some Codec<SampleValue?>,
    lacking: StoreCapabilities = [],
    seed: UInt64 = SeededGenerator.seedOfProcess,
    rounds: Int = ConformanceSuite.roundsOfProcess,
    maximumKeyLength: Int = StoreKey.maximumLength,
    timeLimit: Duration = ConformanceSuite.timeLimitOfProcess,
    child: ConformanceChild.Start? = nil,
    open: @escaping @Sendable (ConformanceLocation, any Codec<SampleValue?>) async throws -> Store
  ) where Store.Value == SampleValue? {
    self.init(
      SuiteSettings(
        name: name, lacking: lacking, seed: seed, rounds: rounds, maximumKeyLength: maximumKeyLength,
        timeLimit: timeLimit, child: child, open: { try await open($0, $0.codec ?? codec) }),
      takesCodecs: true)
  }

  /// Creates the suite of a store.
  ///
  /// - Parameters:
  ///   - name: The name of the store in failures.
  ///   - lacking: The capabilities that the store lacks. Defaults to an empty set. A case checks that this is correct.
  ///   - seed: The seed of the random numbers, printed with each failure. Defaults to the environment variable
  ///     `LARDER_SEED`, or else a random seed.
  ///   - rounds: The number of random histories that each case about histories runs. Defaults to the environment
  ///     variable `LARDER_ROUNDS`, or else 20.
  ///   - maximumKeyLength: The length in bytes of the longest key that the store accepts. Defaults to
  ///     `StoreKey.maximumLength`. Pass a smaller number for a view that adds a prefix to its keys.
  ///   - timeLimit: The maximum duration of a case. Defaults to ``timeLimitOfProcess``. A case that takes longer fails,
  ///     and the failure names it. The suite cancels the task of the case without waiting for it, and the stores of the
  ///     case stay open.
  ///   - child: A closure that starts another process that opens the store, as ``ConformanceChild`` shows. It defaults
  ///     to `nil`, and the cases that need another process are then skipped.
  ///   - open: A closure that opens the store at a location. The suite calls it at least once for each case, and again
  ///     with the same location to reopen a store.
  public init<Store: DataStore>(
    named name: String,
    lacking: StoreCapabilities = [],
    seed: UInt64 = SeededGenerator.seedOfProcess,
    rounds: Int = ConformanceSuite.roundsOfProcess,
    maximumKeyLength: Int = StoreKey.maximumLength,
    timeLimit: Duration = ConformanceSuite.timeLimitOfProcess,
    child: ConformanceChild.Start? = nil,
    open: @escaping @Sendable (ConformanceLocation) async throws -> Store
  ) where Store.Value == SampleValue? {
    self.init(
      SuiteSettings(
        name: name, lacking: lacking, seed: seed, rounds: rounds, maximumKeyLength: maximumKeyLength,
        timeLimit: timeLimit, child: child, open: open),
      takesCodecs: false)
  }

  private init<Store: DataStore>(_ settings: SuiteSettings<Store>, takesCodecs: Bool)
  where Store.Value == SampleValue? {
    var missing = settings.lacking
    if settings.lacking.contains(.persistence) { missing.formUnion([.acknowledgedPersistence, .readOnlyAccess]) }
    if settings.child == nil { missing.formUnion(.otherProcesses) }
    if !takesCodecs { missing.formUnion(.codecs) }
    self.init(CaseList(settings), missing: missing)
  }

  /// Creates a suite from a list of cases, which skips those that need a missing capability.
  init<Store: DataStore>(_ list: CaseList<Store>, missing: StoreCapabilities) {
    let all = list.cases.sorted { ($0.number, $0.id) < ($1.number, $1.id) }
    name = list.settings.name
    cases = all.filter { $0.needs.isDisjoint(with: missing) }
    skipped = all.filter { !$0.needs.isDisjoint(with: missing) }
      .map { SkippedCase(conformanceCase: $0, lacking: $0.needs.intersection(missing)) }
  }

  /// Runs the cases one after another.
  ///
  /// ```swift
  /// let report = try await suite.run()
  /// print(report)  // the failures, and the cases that were skipped
  /// #expect(report.failures.isEmpty)
  /// ```
  ///
  /// - Returns: The passed, failed and skipped cases.
  /// - Throws: `CancellationError` if the task is cancelled.
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
  /// The name, and the numbers of cases and of skipped cases.
  public var description: String { "\(name): \(cases.count) cases, \(skipped.count) skipped" }
}

extension ConformanceSuite {
  /// The number of random histories that a case of this process runs, from the environment variable `LARDER_ROUNDS`.
  ///
  /// It defaults to 20. A negative number counts as zero.
  public static let roundsOfProcess: Int =
    max(0, ProcessInfo.processInfo.environment["LARDER_ROUNDS"].flatMap { Int($0) } ?? 20)

  /// The maximum duration of a case of this process: ten minutes, or proportionally more if ``roundsOfProcess`` is
  /// above 20.
  public static let timeLimitOfProcess: Duration = .seconds(600) * max(1, roundsOfProcess / 20)

  /// The number of processes that each case about killed processes kills, from the environment variable
  /// `LARDER_KILL_ROUNDS`.
  ///
  /// It is at least 1 and defaults to 2.
  public static let killsOfProcess: Int =
    max(1, ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap { Int($0) } ?? 2)
}
