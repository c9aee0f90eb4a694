import Testing

@testable import LarderBatching

@Suite struct CallerHandoffTests {
  private func isTurn(_ outcome: TurnOutcome?) -> Bool {
    if case .turn = outcome { true } else { false }
  }

  @Test func whoeverWaitsIsTold() {
    var handoff = CallerHandoff<Int>.running
    let outcome = handoff.wait(7)
    #expect(outcome == nil)
    #expect(handoff.end(.turn) == 7)
  }

  @Test func whoeverComesTooLateFindsTheOutcome() {
    var handoff = CallerHandoff<Int>.running
    #expect(handoff.end(.turn) == nil)
    #expect(isTurn(handoff.wait(7)))
  }
}
