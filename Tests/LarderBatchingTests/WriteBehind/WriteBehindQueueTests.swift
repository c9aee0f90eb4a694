import Testing

@testable import LarderBatching

@Suite struct WriteBehindQueueTests {
  @Test func `every short history matches the model`() throws {
    #expect(try WriteBehindQueueRun().runEveryHistory(steps: 4) > 1000)
  }

  @Test func `long random histories match the model`() throws {
    try WriteBehindQueueRun.runRandomHistories(1000) { WriteBehindQueueRun() }
  }
}
