import LarderTesting
import Testing

/// The cases that take another process, or altered files, find what is wrong with a store, and nothing where all is right.
@Suite struct ProcessMutantTests {
  private static func suite(of fault: ProcessFault?) -> ConformanceSuite {
    ConformanceSuite(
      named: fault?.rawValue ?? "no fault", lacking: .readOnlyAccess,
      child: { await start($0, fault?.rawValue ?? "") }, open: { try open($0, fault: fault) })
  }

  private static func start(_ order: String, _ fault: String) async {
    await #expect(processExitsWith: .failure) { [order, fault] in
      await ConformanceChild.run(order) { try ProcessMutantTests.open($0, fault: ProcessFault(rawValue: fault)) }
    }
  }

  private static func open(_ location: ConformanceLocation, fault: ProcessFault?) throws -> WholeFileMutant {
    try WholeFileMutant(path: location.path("store.json"), fault: fault)
  }

  @Test(arguments: Set(ProcessFault.allCases.flatMap(\.detectors)).sorted())
  func aStoreWithoutAFaultPasses(_ id: String) async throws {
    try await #require(ProcessMutantTests.suite(of: nil).cases.first { $0.id == id }).run()
  }

  @Test(arguments: ProcessFault.allCases) func everyFaultIsFound(_ fault: ProcessFault) async throws {
    for id in fault.detectors {
      let detector = try #require(ProcessMutantTests.suite(of: fault).cases.first { $0.id == id })
      let failure = await #expect(throws: ConformanceFailure.self) { try await detector.run() }
      if let failure { print(failure) }
    }
  }

  @Test func whatGoesWrongInTheOtherProcessIsReported() async throws {
    let suite = ConformanceSuite(
      named: "no store", lacking: .readOnlyAccess,
      child: { order in
        await #expect(processExitsWith: .failure) { [order = order as String] in
          await ConformanceChild.run(order) { _ -> WholeFileMutant in throw SampleValue.Refusal.decoding }
        }
      }, open: { try ProcessMutantTests.open($0, fault: nil) })
    for id in ["251", "252"] {
      let conformanceCase = try #require(suite.cases.first { $0.id == id })
      let failure = try await #require(throws: ConformanceFailure.self) { try await conformanceCase.run() }
      #expect(failure.got.contains("Refusal"), "\(failure)")
    }
  }
}
