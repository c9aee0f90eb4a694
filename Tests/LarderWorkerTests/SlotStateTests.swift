import LarderTesting
import Testing

@testable import LarderWorker

@Suite struct SlotStateTests {
  private func expectAssigned(_ queues: [Int], _ state: inout SlotState, at place: SourceLocation = #_sourceLocation) {
    let assigned = state.assign()
    #expect(assigned == queues, sourceLocation: place)
  }

  private func expectTaken(
    _ count: Int, of maximum: Int, _ state: inout SlotState, at place: SourceLocation = #_sourceLocation
  ) {
    let taken = state.takeFree(maximum)
    #expect(taken == count, sourceLocation: place)
  }

  private func expectDelay(
    _ delay: Duration, at now: Duration, _ schedule: inout RateSchedule, _ place: SourceLocation = #_sourceLocation
  ) {
    let reserved = schedule.reserve(at: now)
    #expect(reserved == delay, sourceLocation: place)
  }

  @Test func slotsAreSharedByWeight() {
    var state = SlotState(limit: 1, weights: [3, 1])
    state.wait(0, alone: false)
    state.wait(1, alone: false)
    var order: [Int] = []
    for _ in 0..<8 {
      let assigned = state.assign()
      #expect(assigned.count == 1)
      order += assigned
      state.free(1)
      for queue in assigned { state.wait(queue, alone: false) }
    }
    #expect(order == [0, 0, 1, 0, 0, 0, 1, 0])
  }

  @Test func aQueueThatDoesNotWaitEarnsNothing() {
    var state = SlotState(limit: 1, weights: [1, 1])
    for _ in 0..<10 {
      state.wait(0, alone: false)
      expectAssigned([0], &state)
      state.free(1)
    }
    state.wait(0, alone: false)
    state.wait(1, alone: false)
    let first = state.assign()
    state.free(1)
    let second = state.assign()
    #expect(Set(first + second) == [0, 1])
  }

  @Test func anItemRunsAlone() {
    var state = SlotState(limit: 3, weights: [1, 1])
    state.wait(0, alone: false)
    expectAssigned([0], &state)
    state.wait(0, alone: true)
    expectAssigned([], &state)
    // Items of other queues must not overtake it forever.
    state.wait(1, alone: false)
    expectAssigned([], &state)
    expectTaken(0, of: 1, &state)
    state.free(1)
    expectAssigned([0], &state)
    #expect(state.running == 1)
    expectTaken(0, of: 1, &state)
    state.free(1)
    expectAssigned([1], &state)
  }

  @Test func aQueueThatStopsWaitingReservesNothing() {
    var state = SlotState(limit: 2, weights: [1, 1])
    state.wait(0, alone: false)
    expectAssigned([0], &state)
    state.wait(0, alone: true)
    expectAssigned([], &state)
    let (first, second) = (state.stopWaiting(0), state.stopWaiting(0))
    #expect(first && !second)
    state.wait(1, alone: false)
    expectAssigned([1], &state)
  }

  @Test func freeSlotsAreTakenOnlyIfNoQueueWaits() {
    var state = SlotState(limit: 4, weights: [1, 1])
    expectTaken(3, of: 3, &state)
    expectTaken(1, of: 3, &state)
    expectTaken(0, of: 3, &state)
    state.wait(0, alone: false)
    state.free(4)
    expectTaken(0, of: 3, &state)
    expectAssigned([0], &state)
    expectTaken(3, of: 9, &state)
  }

  /// Random histories keep the limit, run exclusive items alone, and serve every queue that waits.
  @Test func randomHistories() {
    for seed in 1...200 as ClosedRange<UInt64> {
      var random = SeededGenerator(seed: seed)
      let limit = Int.random(in: 1...4, using: &random)
      var state = SlotState(limit: limit, weights: [1, 2, 5])
      var alone: [Int: Bool] = [:]
      var running = 0
      var isExclusive = false
      var waited = [0, 0, 0]
      for _ in 0..<300 {
        for queue in 0..<3 where alone[queue] == nil && Bool.random(using: &random) {
          alone[queue] = Int.random(in: 0..<6, using: &random) == 0
          state.wait(queue, alone: alone[queue] == true)
        }
        for queue in state.assign() {
          #expect(!isExclusive, "seed \(seed)")
          isExclusive = alone.removeValue(forKey: queue) == true
          running += 1
          #expect(!isExclusive || running == 1, "seed \(seed)")
          waited[queue] = 0
        }
        #expect(running <= limit && state.running == running, "seed \(seed)")
        for queue in alone.keys { waited[queue] += 1 }
        #expect(waited.allSatisfy { $0 < 60 }, "seed \(seed)")
        if running > 0 {
          running -= 1
          isExclusive = false
          state.free(1)
        }
      }
    }
  }

  @Test func startsAreEvenlySpaced() {
    var schedule = RateSchedule(QueueRateLimit(4, per: .seconds(1)))
    expectDelay(.zero, at: .seconds(5), &schedule)
    expectDelay(.milliseconds(250), at: .seconds(5), &schedule)
    expectDelay(.milliseconds(400), at: .milliseconds(5100), &schedule)
    // Unused starts are not saved up.
    expectDelay(.zero, at: .seconds(60), &schedule)
    expectDelay(.milliseconds(250), at: .seconds(60), &schedule)
  }
}
