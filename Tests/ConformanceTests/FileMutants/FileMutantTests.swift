#if Compression && Crypto && LMDB && Metrics && SQLite
import Foundation
import Larder
import LarderFiles
import LarderJSON
import LarderTesting
import TestSupport
import Testing
import WholeFile

/// Every fault below a store makes a trial or a case fail.
///
/// Otherwise, their success would prove nothing.
@Suite(.limitedParallelism) struct FileMutantTests {
  /// A fault below a store with a durability.
  struct Combination: Sendable, CustomTestStringConvertible {
    let fault: FileFault
    let durability: Durability.File

    var testDescription: String { "\(fault), \(durability)" }
  }

  /// The combinations of faults and durabilities that run: in a short run a sixth, which depends on the seed.
  private static func combinations(without excluded: FileFault...) -> [Combination] {
    let all = FileFault.allCases.filter { !excluded.contains($0) }.flatMap { fault in
      Durability.File.allCases.map { Combination(fault: fault, durability: $0) }
    }
    // A store that synchronizes after each write has no late write.
    .filter { $0.fault != .writesLate || $0.durability != .synced }
    return TestDepth.part(of: all, oneIn: 6, for: "faults without \(excluded)")
  }

  /// Looks for a broken promise as the stores' tests do, but alternates failures and power loss.
  private static func failure<Store: DataStore<Int>>(
    over fault: FileFault, open: @escaping @Sendable (any StoreFileSystem) async throws -> Store
  ) async throws -> TrialFailure? {
    let trial = DiskTrial(fault.rawValue) { disk in try await open(MutantFileSystem(base: disk, fault: fault)) }
    do {
      for seed in 1...20 as ClosedRange<UInt64> {
        try await trial.losePower(cuts: 100, seed: seed)
        try await trial.fail(faults: 100, seed: seed, errorNumbers: [EIO])
      }
      return nil
    } catch let failure as TrialFailure {
      return failure
    }
  }

  @Test(arguments: combinations(without: .locksNothing))
  func `every fault below JSON file store is found`(_ combination: Combination) async throws {
    let failure = try await FileMutantTests.failure(over: combination.fault) { fileSystem in
      try await JSONFileStore<Int>(
        path: "/store.json", codec: .json(), durability: combination.durability, fileSystem: fileSystem)
    }
    let history = try #require(failure).history
    #expect(history.count < 8, "the history was not shortened: \(history)")
  }

  /// The faults that affect a store that replaces its file for each change.
  ///
  /// Only faults of writing to existing files do not.
  private static let faultsOfReplacing = FileFault.allCases.filter {
    ![.emptiesOnOpening, .ignoresTruncate, .writesLate, .locksNothing].contains($0)
  }

  @Test(arguments: TestDepth.part(of: faultsOfReplacing, oneIn: 3, for: "faults of replacing"))
  func `every fault below a store that replaces its file is found`(_ fault: FileFault) async throws {
    let failure = try await FileMutantTests.failure(over: fault) { fileSystem in
      try await WholeFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: fileSystem)
    }
    let history = try #require(failure).history
    #expect(history.count < 8, "the history was not shortened: \(history)")
  }

  /// The faults that two steps and a few seeds show.
  ///
  /// Only `ignoresTruncate` takes a longer journal.
  @Test(arguments: combinations(without: .locksNothing, .ignoresTruncate))
  func `every fault is found by short histories`(_ combination: Combination) async throws {
    let fault = combination.fault
    let trial = DiskTrial(fault.rawValue) { disk in
      try await JSONFileStore<Int>(
        path: "/store.json", codec: .json(), durability: combination.durability,
        fileSystem: MutantFileSystem(base: disk, fault: fault))
    }
    let failure = try await #require(throws: TrialFailure.self) {
      for seed in 1...10 as ClosedRange<UInt64> {
        try await trial.runEveryHistory(
          upToLength: 2, faults: [.powerLoss, .error(EIO), .shortTransfer], seed: seed)
      }
    }
    #expect(failure.store == fault.rawValue)
    let repeated = try await #require(throws: TrialFailure.self) {
      try await trial.repeatTrial(failure.history, seed: #require(failure.seed), fault: failure.fault)
    }
    #expect(repeated.history == failure.history && failure.history.count <= 2)
  }

  private static func trial(of fault: ReportFault?) -> DiskTrial<MisreportingStore> {
    DiskTrial(fault?.rawValue ?? "no fault") { disk in
      try await MisreportingStore(fileSystem: disk, fault: fault)
    }
  }

  @Test(arguments: ReportFault.allCases) func `every misreported failure is found`(_ fault: ReportFault) async throws {
    let failure = try await #require(throws: TrialFailure.self) {
      try await FileMutantTests.trial(of: fault).runEveryHistory(
        upToLength: 2, faults: [.error(EIO), .error(ENOSPC)], seed: 1)
    }
    // Two of the stores misreport without any fault of the disk.
    if failure.fault != nil {
      let operation = try #require(failure.faultyOperation)
      #expect(operation.contains(" /") && "\(failure)".contains("the last fault at \(operation)"))
    }
    try await FileMutantTests.trial(of: nil as ReportFault?).repeatTrial(
      failure.history, seed: #require(failure.seed), fault: failure.fault)
  }

  private static func trial(of fault: RecoveryFault?) -> DiskTrial<SnapshotLogStore> {
    DiskTrial(fault?.rawValue ?? "no fault") { disk in
      try SnapshotLogStore(path: "/log", fileSystem: disk, fault: fault)
    }
  }

  @Test func `a recovery without a fault passes`() async throws {
    try await FileMutantTests.trial(of: nil as RecoveryFault?).losePower(
      cuts: TestDepth.isShort ? 300 : 1_000, seed: SeededGenerator.seedOfProcess)
  }

  @Test(arguments: RecoveryFault.allCases) func `every fault of a recovery is found`(_ fault: RecoveryFault)
    async throws
  {
    let failure = try await #require(throws: TrialFailure.self) {
      // Some seeds do not show the fault within so few power cuts.
      for seed in 1...20 as ClosedRange<UInt64> {
        try await FileMutantTests.trial(of: fault).losePower(cuts: 1_000, seed: seed)
      }
    }
    try await FileMutantTests.trial(of: nil as RecoveryFault?).repeatTrial(
      failure.history, seed: #require(failure.seed), fault: failure.fault)
  }

  @Test func `a lock that is not taken is found`() async throws {
    let suite = ConformanceSuite(named: "JSONFileStore without a lock") { location in
      let disk = location.object { SimulatedFileSystem(seed: 1) }
      return try await JSONFileStore<SampleValue?>(
        path: "/store.json", codec: .json(), fileSystem: MutantFileSystem(base: disk, fault: .locksNothing))
    }
    for id in ["126", "248"] {
      let conformanceCase = try #require(suite.cases.first { $0.id == id })
      await #expect(throws: ConformanceFailure.self) { try await conformanceCase.run() }
    }
  }
}
#endif
