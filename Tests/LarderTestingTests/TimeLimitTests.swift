import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct TimeLimitTests {
  private func expectHang(_ id: String, of suite: ConformanceSuite) async throws {
    let conformanceCase = try #require(suite.cases.first { $0.id == id })
    let failure = try await #require(throws: ConformanceFailure.self) { try await conformanceCase.run() }
    #expect(failure.conformanceCase.id == id)
    #expect(failure.expected.contains("an end within"), "\(failure)")
  }

  @Test func `an uncancellable case is named and the next ones run`() async throws {
    let suite = ConformanceSuite(
      named: "hanging", lacking: [.persistence, .encoding], timeLimit: .milliseconds(20)
    ) { _ -> MemoryStore<SampleValue?> in
      // It is never resumed, cancelled or not.
      await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
      return MemoryStore()
    }
    for id in ["1", "2", "58"] { try await expectHang(id, of: suite) }
  }

  @Test func `a blocking case is named`() async throws {
    let suite = ConformanceSuite(
      named: "blocking", lacking: [.persistence, .encoding], timeLimit: .milliseconds(20)
    ) { _ in
      blockThread()
      return MemoryStore<SampleValue?>()
    }
    try await expectHang("1", of: suite)
  }

  @Test func `cancelling a run ends it immediately`() async throws {
    let suite = ConformanceSuite(named: "waiting", lacking: [.persistence, .encoding]) { _ in
      try await Task.sleep(for: .seconds(3_600))
      return MemoryStore<SampleValue?>()
    }
    let task = Task { try await suite.run() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}

/// Blocks a thread of the cooperative pool for longer than the time limit, but not until the pool has run all other tests.
private func blockThread() {
  Thread.sleep(forTimeInterval: 0.5)
}
