import Larder
import LarderTesting
import Testing

@Suite struct MutantTests {
  private static func suite(of fault: Fault?) -> ConformanceSuite {
    ConformanceSuite(named: fault?.rawValue ?? "no fault") { location in
      let disk: RecordDisk
      if fault == .forgetsWithoutClose {
        // Each opening finds what the last one closed has left, and nothing of what was not closed.
        disk = RecordDisk()
      } else {
        disk = location.object { RecordDisk() }
      }
      return try MutantStore(RecordStore<SampleValue?>(disk: disk), fault: fault)
    }
  }

  @Test func aStoreWithoutAFaultPasses() async throws {
    let report = try await MutantTests.suite(of: nil).run()
    #expect(report.failures.isEmpty, "\(report)")
    #expect(report.skipped.isEmpty)
    #expect(report.passed.count > 100)
  }

  @Test(arguments: Fault.allCases) func everyFaultIsFound(_ fault: Fault) async throws {
    let cases = MutantTests.suite(of: fault).cases
    let detector = try #require(cases.first { $0.id == fault.detector })
    let failure = try await #require(throws: ConformanceFailure.self) { try await detector.run() }
    #expect(failure.suite == fault.rawValue)
    #expect(failure.conformanceCase.id == fault.detector)
  }

  @Test(arguments: ConformanceGroup.allCases) func everyGroupFindsAFault(_ group: ConformanceGroup) async throws {
    let found = try await withThrowingTaskGroup(of: Bool.self) { tasks in
      for fault in Fault.allCases {
        for conformanceCase in MutantTests.suite(of: fault).cases where conformanceCase.group == group {
          guard conformanceCase.id == fault.detector else { continue }
          tasks.addTask { await #expect(throws: ConformanceFailure.self) { try await conformanceCase.run() } != nil }
        }
      }
      return try await tasks.reduce(false) { $0 || $1 }
    }
    #expect(found, "no fault is there for the group \(group)")
  }
}
