import Testing

@testable import LarderBatching

@Suite struct WriteBehindQueueTests {
  @Test func everyShortHistoryMatchesTheModel() throws {
    #expect(try WriteBehindQueueRun().runEveryHistory(steps: 4) > 1000)
  }

  @Test func longRandomHistoriesMatchTheModel() throws {
    try WriteBehindQueueRun.runRandomHistories(1000) { WriteBehindQueueRun() }
  }
}
