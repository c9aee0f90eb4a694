import LarderTesting
import Testing

@testable import Larder

/// The knowledge of a consumer about its leases, without any clock or queue.
@Suite struct LeaseStateTests {
  private let receipts = (1...3).map { DeliveryReceipt(sequence: $0, attempt: 1, epoch: 7) }

  private func state() -> LeaseState { LeaseState(receipts, length: .seconds(30), from: .seconds(100)) }

  private func fail(_ state: inout LeaseState, at now: Duration) {
    var generator = SeededGenerator(seed: 1)
    state.renewalFailed(at: now, using: &generator)
  }

  @Test func `leases are renewed in each third`() {
    var state = state()
    #expect(state.nextRenewal == .seconds(110) && state.end == .seconds(130))
    state.renewed(at: .seconds(112), stale: [])
    #expect(state.nextRenewal == .seconds(122) && state.end == .seconds(142) && state.held == receipts)
  }

  @Test func `leases are lost when all receipts are stale`() {
    var state = state()
    state.renewed(at: .seconds(110), stale: [receipts[1]])
    #expect(!state.areLost && state.held == [receipts[0], receipts[2]])
    state.renewed(at: .seconds(120), stale: [receipts[0], receipts[2]])
    #expect(state.areLost)
  }

  @Test func `a renewal that fails is repeated until the leases end`() {
    var state = state()
    var now = Duration.seconds(110)
    var count = 0
    while !state.areLost, count < 100 {
      fail(&state, at: now)
      count += 1
      if !state.areLost { #expect(state.nextRenewal > now && state.nextRenewal <= state.end) }
      now = state.nextRenewal
    }
    // The last attempt is made at the end.
    #expect(state.areLost && now == .seconds(130) && (6...12).contains(count), "\(count)")
  }

  @Test func `an attempt is repeated only if that can help`() {
    var generator = SeededGenerator(seed: 1)
    func error(_ isRetryable: Bool) -> StoreError {
      StoreError(.timedOut, during: .acknowledge, message: "busy", isRetryable: isRetryable)
    }
    var settlement = SettlementState()
    var last = Duration.zero
    for _ in 0..<5 {
      let pause = settlement.failed(error(true), timeLeft: .seconds(30), using: &generator) ?? .zero
      #expect(pause > .zero && pause <= .seconds(2))
      last = pause
    }
    #expect(last > .milliseconds(500))
    let cut = settlement.failed(error(true), timeLeft: .milliseconds(1), using: &generator)
    let late = settlement.failed(error(true), timeLeft: .zero, using: &generator)
    let final = settlement.failed(error(false), timeLeft: .seconds(30), using: &generator)
    #expect(cut == .milliseconds(1) && late == nil && final == nil)
  }

  @Test func `a stale receipt after an unknown outcome is a success while the lease runs`() {
    var generator = SeededGenerator(seed: 1)
    var settlement = SettlementState()
    #expect(settlement.stale(receipts, timeLeft: .seconds(1)) == receipts)
    let known = StoreError(.timedOut, during: .acknowledge, message: "busy", isRetryable: true)
    _ = settlement.failed(known, timeLeft: .seconds(9), using: &generator)
    #expect(settlement.stale(receipts, timeLeft: .seconds(1)) == receipts)
    var unknown = known
    unknown.outcome = .unknown
    _ = settlement.failed(unknown, timeLeft: .seconds(9), using: &generator)
    #expect(settlement.stale(receipts, timeLeft: .seconds(1)) == [])
    // Another consumer may have ended the lease.
    #expect(settlement.stale(receipts, timeLeft: .zero) == receipts)
  }
}
