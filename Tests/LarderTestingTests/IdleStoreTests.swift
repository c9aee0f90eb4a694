import Larder
import LarderTesting
import Testing

@Suite struct IdleStoreTests {
  @Test func noCaseIsContentWithAStoreThatDoesNothing() async throws {
    let suite = ConformanceSuite(named: "idle") { _ in IdleStore(acknowledgement: .durable) }
    let report = try await suite.run()
    #expect(report.passed.map(\.description) == [])
    #expect(report.failures.count == suite.cases.count)
  }

  @Test func norWithAVolatileOne() async throws {
    let suite = ConformanceSuite(named: "idle", lacking: [.persistence, .encoding]) { _ in
      IdleStore(acknowledgement: .volatile)
    }
    let report = try await suite.run()
    #expect(report.passed.map(\.description) == [])
  }
}
