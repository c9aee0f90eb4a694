import Larder
import LarderTesting
import Testing

@testable import LarderCoordination

/// The state machines of a lock, without a store and without a clock.
@Suite struct LockStateTests {
  private static let lease: Int64 = 300
  private static let turn: Int64 = 90

  private func waiter(_ id: UInt64) -> LockWaiter {
    LockWaiter(id: id, lease: Self.lease, turn: Self.turn)
  }

  @Test func `a free lock is taken immediately`() {
    var (state, first) = (LockState(), waiter(1))
    guard case .granted(let term) = first.change(&state, now: 0) else { return #expect(Bool(false)) }
    #expect(term == LockTerm(number: 1, owner: 1, lease: Self.lease))
    #expect(state.heartbeatRecord == nil)
    var isReleased = state.release(term)
    #expect(isReleased)
    isReleased = state.release(term)
    #expect(!isReleased)
    // The number outlives the lock.
    var second = waiter(2)
    guard case .granted(let next) = second.change(&state, now: 0) else { return #expect(Bool(false)) }
    #expect(next.number == 2)
    let isRenewed = state.renew(term)
    #expect(!isRenewed)
  }

  @Test func `the numbers of terms do not wrap`() {
    let term = LockTerm(number: .max, owner: 1, lease: Self.lease)
    #expect(throws: RecordProblem.damaged) { try LockTerm(record: term.record) }
  }

  @Test func `a dead holder costs one lease after the waiters start`() {
    var state = LockState()
    state.begin(owner: 1, lease: Self.lease)
    var second = waiter(2)
    // The holder may have died long ago: only what the waiter has seen counts.
    #expect(second.change(&state, now: 10_000) == .wait(Self.lease))
    #expect(second.look(at: state, now: 10_299) == .wait(1))
    #expect(second.look(at: state, now: 10_300) == .change)
    #expect(second.change(&state, now: 10_300) == .granted(LockTerm(number: 2, owner: 2, lease: Self.lease)))
  }

  @Test func `a heartbeat begins the lease anew`() throws {
    var state = LockState()
    state.begin(owner: 1, lease: Self.lease)
    let term = try #require(state.term)
    var second = waiter(2)
    _ = second.change(&state, now: 0)
    #expect(state.renew(term) == true)
    #expect(second.look(at: state, now: 290) == .wait(Self.lease))
    #expect(second.look(at: state, now: 589) == .wait(1))
    #expect(second.look(at: state, now: 590) == .change)
    // A renewal after the last look is found in the update.
    #expect(state.renew(term) == true)
    #expect(second.change(&state, now: 590) == .wait(Self.lease))
  }

  @Test func `waiters take the lock in order`() throws {
    var state = LockState()
    state.begin(owner: 1, lease: Self.lease)
    let term = try #require(state.term)
    var (second, third) = (waiter(2), waiter(3))
    _ = second.change(&state, now: 0)
    _ = third.change(&state, now: 1)
    #expect(state.heartbeat.claims == [2, 3])
    #expect(state.release(term) == true)
    // The third one and a newcomer wait for the turn of those before.
    #expect(third.look(at: state, now: 10) == .wait(Self.turn))
    var newcomer = waiter(4)
    #expect(newcomer.change(&state, now: 10) == .wait(2 * Self.turn))
    #expect(second.look(at: state, now: 20) == .change)
    guard case .granted(let next) = second.change(&state, now: 20) else { return #expect(Bool(false)) }
    #expect(state.heartbeat.claims == [3, 4])
    #expect(state.release(next) == true)
    // The third one is dead: the next one takes its turn, and the claim of the dead one is gone.
    #expect(newcomer.look(at: state, now: 30) == .wait(Self.turn))
    #expect(newcomer.look(at: state, now: 30 + Self.turn) == .change)
    #expect(newcomer.change(&state, now: 30 + Self.turn) == .granted(LockTerm(number: 3, owner: 4, lease: Self.lease)))
    #expect(state.heartbeat.claims.isEmpty)
    // It was only slow, and claims again.
    #expect(third.look(at: state, now: 200) == .change)
    _ = third.change(&state, now: 200)
    #expect(state.heartbeat.claims == [3])
  }

  @Test func `waiters beyond the limit have no place`() {
    var state = LockState()
    state.begin(owner: 1, lease: Self.lease)
    for id in 2..<(2 + UInt64(LockHeartbeat.maximumClaims)) { #expect(state.claim(id) == true) }
    #expect(state.claim(99) == false)
    var late = waiter(99)
    let patience = Int64(LockHeartbeat.maximumClaims) * Self.turn
    #expect(late.look(at: state, now: 0) == .wait(Self.lease + patience))
    #expect(late.change(&state, now: 0) == .wait(Self.lease + patience))
    // All of them are dead.
    #expect(
      late.change(&state, now: Self.lease + patience) == .granted(LockTerm(number: 2, owner: 99, lease: Self.lease)))
    #expect(state.heartbeat.claims.isEmpty)
  }

  @Test func `the holder gives up before a waiter takes over`() {
    var lease = LockLease(300, from: 1_000)
    #expect(lease.nextRenewal == 1_100)
    lease.failed(at: 1_100)
    #expect(!lease.isLost)
    #expect(lease.nextRenewal == 1_130)
    lease.renewed(at: 1_130)
    #expect(lease.end == 1_430)
    lease.failed(at: 1_429)
    #expect(!lease.isLost)
    #expect(lease.nextRenewal == 1_430)
    lease.failed(at: 1_430)
    #expect(lease.isLost)
    // A renewal that was late does not bring it back.
    lease.renewed(at: 1_420)
    #expect(lease.isLost)
  }

  /// A caller that has taken the lock in a commit whose outcome it does not know gives it up.
  @Test func `a grant without an answer is withdrawn`() {
    var state = LockState()
    state.begin(owner: 1, lease: Self.lease)
    state.withdraw(2)
    #expect(state.term?.isHeld == true)
    state.withdraw(1)
    #expect(state.term == LockTerm(number: 1, owner: 1, lease: Self.lease, isHeld: false))
  }

  /// Participants that stop for any time: a term ends only by its release, or a whole lease after its last renewal.
  @Test func `no live holder is replaced`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "locks")
    for _ in 0..<2_000 {
      var (state, now) = (LockState(), Int64(0))
      var waiters: [UInt64: LockWaiter] = [:]
      var held: [UInt64: LockTerm] = [:]
      var lastBeat: Int64 = 0
      var numbers: [UInt64] = []
      for _ in 0..<60 {
        now += [0, 1, 30, 89, 90, 150, 299, 300].randomElement(using: &generator) ?? 0
        let id = UInt64.random(in: 1...4, using: &generator)
        if let term = held[id] {
          if Bool.random(using: &generator) {
            if state.renew(term) { lastBeat = now } else { held[id] = nil }
          } else {
            _ = state.release(term)
            held[id] = nil
          }
          continue
        }
        let before = state
        var waiter = waiters[id] ?? waiter(id)
        switch waiter.change(&state, now: now) {
        case .wait: waiters[id] = waiter
        case .granted(let term):
          waiters[id] = nil
          if before.term?.isHeld == true { #expect(now - lastBeat >= Self.lease, "\(before)") }
          held[id] = term
          lastBeat = now
          numbers.append(term.number)
        }
      }
      #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
    }
  }

  // MARK: Records

  @Test func `records are read as they were written`() throws {
    let term = LockTerm(number: .max - 1, owner: 7, lease: 300_000_000, isHeld: false)
    let heartbeat = LockHeartbeat(term: 5, count: 9, claims: [1, .max])
    #expect(try LockTerm(record: term.record) == term)
    #expect(try LockHeartbeat(record: heartbeat.record) == heartbeat)
    let request = IdempotencyRecord(fingerprint: [UInt8](repeating: 3, count: 32), deadline: -1, outcome: [])
    #expect(try IdempotencyRecord(record: request.record) == request)
    let full = LockHeartbeat(claims: .init(repeating: 1, count: LockHeartbeat.maximumClaims))
    #expect(full.record.count == LockHeartbeat.maximumSize)
  }

  @Test func `damaged records are refused`() {
    checkDamage(of: LockTerm(number: 1, owner: 7, lease: 300).record) { _ = try LockTerm(record: $0) }
    checkDamage(of: LockHeartbeat(term: 5, count: 9, claims: [1, 2]).record) { _ = try LockHeartbeat(record: $0) }
    let request = IdempotencyRecord(fingerprint: [UInt8](repeating: 3, count: 32), deadline: 5, outcome: [1, 2])
    checkDamage(of: request.record) { _ = try IdempotencyRecord(record: $0) }
  }

  private func checkDamage(of record: [UInt8], _ read: ([UInt8]) throws -> Void) {
    for length in record.indices {
      #expect(throws: RecordProblem.damaged) { try read(Array(record[..<length])) }
    }
    for index in record.indices.dropFirst() {
      var damaged = record
      damaged[index] ^= 1
      #expect(throws: RecordProblem.damaged) { try read(damaged) }
    }
    #expect(throws: RecordProblem.newerVersion) { try read([2] + record.dropFirst()) }
  }
}
