import LarderTesting
import Testing

@testable import LarderBatching

@Suite(.timeLimit(.minutes(60))) struct FlushPauseTests {
  private let clock = ManualClock()

  @Test func itLastsAsLongAsItWasAskedFor() async throws {
    let pause = FlushPause(clock: clock)
    let waiting = Task { await pause.wait(.seconds(2)) }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(clock.sleeperCount == 1)
    clock.advance(by: .seconds(1))
    await waiting.value
  }

  @Test func itIsCutShort() async throws {
    let pause = FlushPause(clock: clock)
    let waiting = Task { await pause.wait(.seconds(2)) }
    try await clock.waitForSleepers(1)
    pause.end()
    await waiting.value
  }

  /// Whoever decides to wait does not wait yet, and is told to hurry meanwhile.
  @Test func itIsCutShortBeforeItBegins() async throws {
    let pause = FlushPause(clock: clock)
    pause.end()
    await pause.wait(.seconds(2))
    // Only that one.
    let waiting = Task { await pause.wait(.seconds(2)) }
    try await clock.waitForSleepers(1)
    clock.advance(by: .seconds(2))
    await waiting.value
  }
}
