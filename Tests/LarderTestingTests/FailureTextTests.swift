import Larder
import LarderTesting
import Testing

/// A failure shows the first difference, however large the values are.
@Suite struct FailureTextTests {
  private func failure(of id: String, _ fault: Fault) async throws -> ConformanceFailure {
    let suite = ConformanceSuite(named: fault.rawValue) { location in
      MutantStore(try RecordStore<SampleValue?>(disk: location.object { RecordDisk() }), fault: fault)
    }
    let conformanceCase = try #require(suite.cases.first { $0.id == id })
    return try await #require(throws: ConformanceFailure.self) { try await conformanceCase.run() }
  }

  @Test func `a long list shows its first difference`() async throws {
    let failure = try await failure(of: "249", .cutsScansAt10000)
    let first = StoreKey(integer: 10_000).description
    #expect(failure.difference.contains("10001 elements expected, 10000 got; the first difference is at index 10000"))
    #expect(failure.difference.contains("- \(first)"), "\(failure)")
    #expect(failure.description.count < 3_000, "\(failure)")
    #expect(failure.description.contains("Difference: 10001"))
  }

  @Test func `an element in the middle is shown with its predecessors`() async throws {
    let failure = try await failure(of: "66", .dropsMissingSlots)
    #expect(failure.difference.contains("\n    - missing\n"), "\(failure)")
    #expect(failure.difference.contains("\n    + SampleValue("), "\(failure)")
  }

  @Test func `a long value shows its first difference`() async throws {
    let failure = try await failure(of: "48", .truncatesText)
    #expect(failure.difference.contains("the first difference is at byte 2500"), "\(failure)")
  }

  @Test func `composed and decomposed keys differ`() async throws {
    let failure = try await failure(of: "41", .foldsComposition)
    #expect(failure.description.contains(#"\u{E9}"#) || failure.description.contains(#"e\u{301}"#), "\(failure)")
    #expect(
      !failure.description.unicodeScalars.contains("\u{E9}") && !failure.description.unicodeScalars.contains("\u{301}"))
  }
}
