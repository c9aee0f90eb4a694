import Larder
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

  @Test func `slots are shared by weight`() {
    var state = SlotState(limit: 1, weights: [3, 1])
    state.wait(0)
    state.wait(1)
    var order: [Int] = []
    for _ in 0..<8 {
      let assigned = state.assign()
      #expect(assigned.count == 1)
      order += assigned
      state.free(1)
      for queue in assigned { state.wait(queue) }
    }
    #expect(order == [0, 0, 1, 0, 0, 0, 1, 0])
  }

  @Test func `a queue that does not wait earns nothing`() {
    var state = SlotState(limit: 1, weights: [1, 1])
    for _ in 0..<10 {
      state.wait(0)
      expectAssigned([0], &state)
      state.free(1)
    }
    state.wait(0)
    state.wait(1)
    let first = state.assign()
    state.free(1)
    let second = state.assign()
    #expect(Set(first + second) == [0, 1])
  }

  @Test func `free slots are taken only if no queue waits`() {
    var state = SlotState(limit: 4, weights: [1, 1])
    expectTaken(3, of: 3, &state)
    expectTaken(1, of: 3, &state)
    expectTaken(0, of: 3, &state)
    state.wait(0)
    state.free(4)
    expectTaken(0, of: 3, &state)
    expectAssigned([0], &state)
    expectTaken(3, of: 9, &state)
  }

  @Test func `a hung closure costs its slot only`() {
    var state = SlotState(limit: 2, weights: [1, 1])
    expectTaken(1, of: 1, &state)
    state.start(0)
    #expect(!state.isIdle(0) && state.isIdle(1) && !state.isIdle(nil))
    state.hang(0)
    #expect(state.isIdle(0) && state.isIdle(nil) && !state.isStalled)
    state.wait(1)
    expectAssigned([1], &state)
    state.start(1)
    #expect(state.isIdle(0) && !state.isIdle(1))
    expectTaken(0, of: 1, &state)
    state.hang(1)
    #expect(state.isStalled && state.hung == 2)
    state.wait(0)
    expectAssigned([], &state)
    state.endHung()
    expectAssigned([0], &state)
    #expect(!state.isStalled && state.taken == 2)
  }

  /// Random histories keep the limit, and serve every queue that waits while a slot is not hung.
  @Test func `random histories`() {
    for seed in 1...200 as ClosedRange<UInt64> {
      var random = SeededGenerator(seed: seed)
      let limit = Int.random(in: 1...4, using: &random)
      var state = SlotState(limit: limit, weights: [1, 2, 5])
      var running: [Int] = []
      var (hung, waited) = (0, [0, 0, 0])
      for _ in 0..<300 {
        for queue in 0..<3 where !state.waiting.contains(queue) && Bool.random(using: &random) { state.wait(queue) }
        for queue in state.assign() {
          state.start(queue)
          running.append(queue)
          waited[queue] = 0
        }
        #expect(running.count + hung == min(limit, state.taken) && state.hung == hung, "seed \(seed)")
        for queue in 0..<3 { #expect(state.isIdle(queue) == !running.contains(queue), "seed \(seed)") }
        for queue in state.waiting { waited[queue] += 1 }
        #expect(waited.allSatisfy { $0 < 60 }, "seed \(seed)")
        if let queue = running.first {
          running.removeFirst()
          // A slot is left.
          if hung < limit - 1, Int.random(in: 0..<8, using: &random) == 0 {
            state.hang(queue)
            hung += 1
          } else {
            state.end(queue)
          }
        }
        if hung > 0, Int.random(in: 0..<20, using: &random) == 0 {
          state.endHung()
          hung -= 1
        }
      }
    }
  }

  @Test func `the first reason of a cancellation decides`() {
    var state = ClosureState()
    let (first, second) = (state.cancel(.timeLimit), state.cancel(.stopped))
    #expect(first && !second && state.cancellation == .timeLimit)
    state.giveUp()
    guard case .hung = state.outcome else { return #expect(Bool(false), "\(String(describing: state.outcome))") }
    #expect(!state.hasEnded)
    state.end(.returned([:]))
    guard case .hung = state.outcome else { return #expect(Bool(false), "\(String(describing: state.outcome))") }
    #expect(state.hasEnded)
  }

  @Test func `a closure that has ended is neither cancelled nor hung`() {
    var state = ClosureState()
    state.end(.returned([:]))
    let isCancelled = state.cancel(.timeLimit)
    state.giveUp()
    #expect(!isCancelled && state.cancellation == nil)
    guard case .returned = state.outcome else { return #expect(Bool(false), "\(String(describing: state.outcome))") }
  }

  @Test func `starts are evenly spaced`() {
    var schedule = RateSchedule(RateLimit(4, per: .seconds(1)))
    expectDelay(.zero, at: .seconds(5), &schedule)
    expectDelay(.milliseconds(250), at: .seconds(5), &schedule)
    expectDelay(.milliseconds(400), at: .milliseconds(5100), &schedule)
    // Unused starts are not saved up.
    expectDelay(.zero, at: .seconds(60), &schedule)
    expectDelay(.milliseconds(250), at: .seconds(60), &schedule)
  }

  @Test func `a start is reserved at once only if it is permitted now`() {
    var schedule = RateSchedule(RateLimit(1, per: .seconds(1)))
    let (first, second) = (schedule.reserveAtOnce(at: .zero), schedule.reserveAtOnce(at: .milliseconds(999)))
    #expect(first && !second)
    expectDelay(.zero, at: .seconds(1), &schedule)
  }
}
