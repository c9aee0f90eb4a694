import Larder
import LarderTesting
import Testing

@Suite struct MutantTests {
  private static func suite(of fault: Fault?) -> ConformanceSuite {
    ConformanceSuite(named: fault?.rawValue ?? "no fault") { location in
      let disk: RecordDisk
      if fault == .forgetsWithoutClose {
        // Each opening finds the content that the last one left at closing, and no content that was not closed.
        disk = RecordDisk()
      } else {
        disk = location.object { RecordDisk() }
      }
      let base = try RecordStore<SampleValue?>(
        disk: disk, access: fault == .writesWhenReadOnly ? .readWrite : location.access,
        isExclusive: fault != .opensTwice)
      return MutantStore(base, fault: fault, isReopened: disk.state.withLock { $0.openings > 1 })
    }
  }

  @Test func `a store without a fault passes`() async throws {
    let report = try await MutantTests.suite(of: nil).run()
    #expect(report.failures.isEmpty, "\(report)")
    // In-memory content is not visible to other processes, and the store has a codec of its own.
    #expect(report.skipped.allSatisfy { [.otherProcesses, .codecs].contains($0.lacking) })
    #expect(report.passed.count > 100)
  }

  @Test(arguments: Fault.allCases) func `every fault is found`(_ fault: Fault) async throws {
    let cases = MutantTests.suite(of: fault).cases
    let detector = try #require(cases.first { $0.id == fault.detector })
    let failure = try await #require(throws: ConformanceFailure.self) { try await detector.run() }
    #expect(failure.suite == fault.rawValue)
    #expect(failure.conformanceCase.id == fault.detector)
  }

  @Test(arguments: ["117", "117a", "117b"]) func `closing too early is found during any operation`(_ id: String)
    async throws
  {
    let detector = try #require(MutantTests.suite(of: .closesWithoutWaiting).cases.first { $0.id == id })
    await #expect(throws: ConformanceFailure.self) { try await detector.run() }
  }

  // `QueueMutantTests` has the faults of queues.
  @Test(arguments: ConformanceGroup.allCases.filter { $0 != .queues }) func `every group finds a fault`(
    _ group: ConformanceGroup
  ) async throws {
    var found: [Fault] = []
    for fault in Fault.allCases where found.isEmpty {
      for conformanceCase in MutantTests.suite(of: fault).cases where conformanceCase.group == group {
        do {
          if found.isEmpty { try await conformanceCase.run() }
        } catch is ConformanceFailure {
          found.append(fault)
        }
      }
    }
    #expect(!found.isEmpty, "no fault was found by the group \(group)")
  }
}
