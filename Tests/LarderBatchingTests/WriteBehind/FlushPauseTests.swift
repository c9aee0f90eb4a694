import LarderTesting
import Testing

@testable import LarderBatching

@Suite(.timeLimit(.minutes(60))) struct FlushPauseTests {
  private let clock = ManualClock()

  @Test func `it lasts for the requested duration`() async throws {
    let pause = FlushPause(clock: clock)
    let waiting = Task { await pause.wait(.seconds(2)) }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(1))
    await waiting.value
  }

  @Test func `a pause can be cut short`() async throws {
    let pause = FlushPause(clock: clock)
    let waiting = Task { await pause.wait(.seconds(2)) }
    try await clock.waitForSleepers(1)
    pause.end()
    await waiting.value
  }

  /// A waiter that is interrupted between its decision to wait and the wait itself.
  @Test func `a pause can be cut short before it begins`() async throws {
    let pause = FlushPause(clock: clock)
    pause.end()
    await pause.wait(.seconds(2))
    // Only the first wait was cut short.
    let waiting = Task { await pause.wait(.seconds(2)) }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(2))
    await waiting.value
  }
}
