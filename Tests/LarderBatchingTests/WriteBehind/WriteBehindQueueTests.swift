import Testing

@testable import LarderBatching

@Suite struct WriteBehindQueueTests {
  @Test func everyShortHistoryMatchesTheModel() throws {
    #expect(try WriteBehindQueueRun().runEveryHistory(steps: 5) > 10_000)
  }

  @Test func longRandomHistoriesMatchTheModel() throws {
    try WriteBehindQueueRun.runRandomHistories(500) { WriteBehindQueueRun() }
  }
}
