import Foundation
import Larder
import LarderFiles
import LarderJSON
import LarderTesting
import Testing

/// Whatever is wrong below a store, a trial or a case finds it: otherwise they would prove nothing where all is right.
@Suite struct FileMutantTests {
  /// Looks for a broken promise as the tests of stores do, only that faults and cuts take turns.
  private static func failure<Store: DataStore<Int>>(
    over fault: FileFault, open: @escaping @Sendable (any FileSystem) async throws -> Store
  ) async throws -> DiskTrialFailure? {
    let trial = DiskTrial(fault.rawValue) { disk in try await open(MutantFileSystem(base: disk, fault: fault)) }
    do {
      for seed in 1...20 as ClosedRange<UInt64> {
        try await trial.losePower(cuts: 100, seed: seed)
        try await trial.fail(faults: 100, seed: seed, errorNumbers: [EIO])
      }
      return nil
    } catch let failure as DiskTrialFailure {
      return failure
    }
  }

  @Test(arguments: FileFault.allCases.filter { $0 != .locksNothing }, Durability.allCases)
  func everyFaultBelowJSONFileStoreIsFound(_ fault: FileFault, _ durability: Durability) async throws {
    // Each write is followed by a synchronization there, so none is late.
    if fault == .writesLate, durability == .synced { return }
    let failure = try await FileMutantTests.failure(over: fault) { fileSystem in
      try await JSONFileStore<Int>(path: "/store.json", codec: .json(), durability: durability, fileSystem: fileSystem)
    }
    let history = try #require(failure).history
    #expect(history.count < 8, "the history was not made shorter: \(history)")
  }

  /// The faults of what a store needs that replaces its file for each change: all, but for writing to a file that is there.
  private static let faultsOfReplacing = FileFault.allCases.filter {
    ![.emptiesOnOpening, .ignoresTruncate, .writesLate, .locksNothing].contains($0)
  }

  @Test(arguments: faultsOfReplacing)
  func everyFaultBelowAStoreThatReplacesItsFileIsFound(_ fault: FileFault) async throws {
    let failure = try await FileMutantTests.failure(over: fault) { fileSystem in
      try await WholeFileStore<Int>(path: "/store.json", codec: .json(), fileSystem: fileSystem)
    }
    let history = try #require(failure).history
    #expect(history.count < 8, "the history was not made shorter: \(history)")
  }

  @Test func aLockThatIsNotTakenIsFound() async throws {
    let suite = ConformanceSuite(named: "JSONFileStore without a lock") { location in
      let disk = location.object { SimulatedFileSystem(seed: 1) }
      return try await JSONFileStore<SampleValue?>(
        path: "/store.json", codec: .json(), fileSystem: MutantFileSystem(base: disk, fault: .locksNothing))
    }
    let conformanceCase = try #require(suite.cases.first { $0.id == "126" })
    await #expect(throws: ConformanceFailure.self) { try await conformanceCase.run() }
  }
}
