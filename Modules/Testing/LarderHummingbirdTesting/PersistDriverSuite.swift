#if Hummingbird
public import Hummingbird
public import LarderTesting

/// A suite of cases that check whether a persist driver of Hummingbird keeps the promises of its protocol.
///
/// The suite needs one closure, which passes an open driver to a check, and closes what it has opened:
///
/// ```swift
/// struct MemoryDriverTests {
///   static let suite = PersistDriverSuite(named: "MemoryPersistDriver") { location, check in
///     try await check(MemoryPersistDriver(location.clock))
///   }
///
///   @Test(arguments: suite.cases) func conforms(_ driverCase: PersistDriverCase) async throws {
///     try await driverCase.run()
///   }
/// }
/// ```
///
/// Cases are independent, and each has its own location, so they can run in any order and in parallel. Time is that of the
/// location's clock. The suite works with any test library.
public struct PersistDriverSuite: Sendable {
  /// Opens the driver of a location, passes it to `check`, and closes it.
  public typealias Opening =
    @Sendable (_ location: PersistDriverLocation, _ check: (any PersistDriver) async throws -> Void) async throws ->
    Void

  /// The name of the driver in failures.
  public let name: String

  /// The cases to run, ordered by number.
  public let cases: [PersistDriverCase]

  /// Creates the suite of a driver.
  ///
  /// - Parameters:
  ///   - name: The name of the driver in failures.
  ///   - isPersistent: A Boolean value that indicates whether a driver that is opened again at the same location has the entries
  ///     of the earlier one. Defaults to `false`, and the cases that need it are then left out.
  ///   - seed: The seed of the random histories, printed with each failure. Defaults to the environment variable
  ///     `LARDER_SEED`, or else a random seed.
  ///   - open: A closure that opens the driver of a location, passes it to its second argument, and closes it. It is called
  ///     at least once for each case.
  public init(
    named name: String, isPersistent: Bool = false, seed: UInt64 = SeededGenerator.seedOfProcess,
    open: @escaping Opening
  ) {
    self.name = name
    var list = PersistDriverCaseList(driver: name, seed: seed, open: open)
    list.addEntryCases()
    list.addDeadlineCases()
    list.addHistoryCases()
    if isPersistent { list.addReopeningCases() }
    cases = list.cases
  }

  /// Runs the cases one after another.
  ///
  /// ```swift
  /// let failures = try await suite.run()
  /// #expect(failures.isEmpty)
  /// ```
  ///
  /// - Returns: The failures, in the order of the cases.
  /// - Throws: `CancellationError` if the task is cancelled.
  public func run() async throws -> [PersistDriverFailure] {
    var failures: [PersistDriverFailure] = []
    for driverCase in cases {
      do {
        try await driverCase.run()
      } catch let failure as PersistDriverFailure {
        failures.append(failure)
      }
    }
    return failures
  }
}

extension PersistDriverSuite: CustomStringConvertible {
  /// The name and the number of cases.
  public var description: String { "\(name): \(cases.count) cases" }
}

/// The place of the data of one driver in a case, with the clock that it must use.
public struct PersistDriverLocation: Sendable {
  /// A name of letters, digits and hyphens that no other case has, such as for a file.
  public let name: String

  /// The clock of the driver, whose `date` is the wall-clock time.
  public let clock: ManualClock
}

/// A check of one promise of a persist driver, created by a ``PersistDriverSuite``.
public struct PersistDriverCase: Sendable, Identifiable {
  /// The number of the case.
  ///
  /// It never changes meaning.
  public let id: Int

  /// The rule that must hold, in a few words.
  public let name: String

  let body: @Sendable (PersistDriverCase) async throws -> Void

  /// Opens a driver without entries, and checks the rule.
  ///
  /// - Throws: ``PersistDriverFailure`` if the driver breaks the rule; `CancellationError` if the task is cancelled.
  public func run() async throws {
    try await body(self)
  }
}

extension PersistDriverCase: CustomStringConvertible {
  /// The number and the name.
  public var description: String { "\(id): \(name)" }
}

/// The error of a case.
///
/// It says which rule a driver broke, and how.
public struct PersistDriverFailure: Error {
  /// The name of the driver.
  public let driver: String

  /// The case that failed.
  public let driverCase: PersistDriverCase

  /// The expected and the actual result.
  public let message: String

  /// The seed of the suite.
  public let seed: UInt64
}

extension PersistDriverFailure: CustomStringConvertible {
  /// The driver, the case, the message, and the environment variable that repeats the random numbers.
  public var description: String {
    "\(driver) fails case \(driverCase).\n  \(message)\n  \(SeededGenerator.seedVariable)=\(seed)"
  }
}
#endif
