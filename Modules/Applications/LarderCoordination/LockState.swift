/// The holder of a lock, as it is stored: one term.
///
/// The record changes only when the holder does, so that a transaction that has read it is not made stale by a renewal.
struct LockTerm: Sendable, Hashable {
  /// The number of the term, greater than those of all earlier ones.
  let number: UInt64

  /// The random number of the caller that the lock was granted to.
  let owner: UInt64

  /// The lease, in nanoseconds.
  let lease: Int64

  /// A Boolean value that indicates whether the lock has not been released.
  var isHeld = true
}

/// The heartbeat of a lock's holder, and the callers that wait.
struct LockHeartbeat: Sendable, Hashable {
  /// The greatest number of waiters that keep their order.
  ///
  /// Later ones take part when there is room.
  static let maximumClaims = 32

  /// The number of the term that ``count`` belongs to.
  var term: UInt64 = 0

  /// The number of renewals in the term.
  var count: UInt64 = 0

  /// The random numbers of the callers that wait, in the order of their arrival.
  var claims: [UInt64] = []
}

/// The stored state of a lock.
///
/// This is plain state without any I/O, on which ``StoreLock`` works in one commit for each change.
struct LockState: Sendable, Hashable {
  /// The latest term, or `nil` before the first one.
  var term: LockTerm?

  var heartbeat = LockHeartbeat()

  /// The number of renewals in the latest term.
  var beats: UInt64 { heartbeat.term == term?.number ? heartbeat.count : 0 }

  /// A Boolean value that indicates whether a caller holds the lock.
  func isHeld(by owner: UInt64) -> Bool { term?.owner == owner && term?.isHeld == true }

  /// Begins a term.
  ///
  /// - Parameters:
  ///   - owner: The random number of the caller, whose claim ends, with all claims before it.
  ///   - lease: The lease, in nanoseconds.
  mutating func begin(owner: UInt64, lease: Int64) {
    term = LockTerm(number: (term?.number ?? 0) &+ 1, owner: owner, lease: lease)
    if let index = heartbeat.claims.firstIndex(of: owner) { heartbeat.claims.removeSubrange(...index) }
  }

  /// Notes a renewal of a term.
  ///
  /// - Returns: Whether the term has not ended.
  mutating func renew(_ term: LockTerm) -> Bool {
    guard self.term == term else { return false }
    (heartbeat.count, heartbeat.term) = (beats &+ 1, term.number)
    return true
  }

  /// Ends a term, whose number is kept.
  ///
  /// - Returns: Whether the term had not ended.
  mutating func release(_ term: LockTerm) -> Bool {
    guard self.term == term else { return false }
    self.term?.isHeld = false
    return true
  }

  /// Notes that a caller waits.
  ///
  /// - Returns: Whether the caller has a place in the order now.
  mutating func claim(_ waiter: UInt64) -> Bool {
    if heartbeat.claims.contains(waiter) { return true }
    guard heartbeat.claims.count < LockHeartbeat.maximumClaims else { return false }
    heartbeat.claims.append(waiter)
    return true
  }

  /// Notes that a caller may take the lock, and does not.
  ///
  /// If the holder is dead, the next caller need not find that out again.
  mutating func decline(_ waiter: UInt64) {
    term?.isHeld = false
    withdraw(waiter)
  }

  /// Notes that a caller no longer waits, and does not hold the lock.
  mutating func withdraw(_ waiter: UInt64) {
    if term?.owner == waiter { term?.isHeld = false }
    heartbeat.claims.removeAll { $0 == waiter }
  }
}

/// The heartbeat and the turn that an object has seen of a lock, and since when.
///
/// This is plain state without any clock. Times are nanoseconds of the object's own steady clock, from an arbitrary start.
/// No time of another process is compared with them: a holder counts as dead after the object has itself seen one heartbeat
/// unchanged for the whole lease.
struct LockObservation: Sendable, Hashable {
  /// A heartbeat, which is another one after each change of the holder.
  private struct Heartbeat: Sendable, Hashable {
    let term: LockTerm?
    let beats: UInt64
  }

  /// A waiter whose turn it is, while the holder stays the same.
  private struct Turn: Sendable, Hashable {
    let term: LockTerm?
    let first: UInt64?
  }

  private var heartbeat: Heartbeat?
  private var heartbeatSince: Int64 = 0
  private var firstTurn: Turn?
  private var firstTurnSince: Int64 = 0

  /// Notes the state of a lock, and returns the time after which a caller may take it if nothing changes; 0 or less if it
  /// may do so now.
  ///
  /// - Parameters:
  ///   - state: The state.
  ///   - id: The random number of the caller.
  ///   - turn: The time that a waiter has to take a lock when its turn has come.
  ///   - now: A time that is not earlier than the reading of the state.
  mutating func timeUntilTaking(_ state: LockState, by id: UInt64, turn: Int64, now: Int64) -> Int64 {
    let seen = Heartbeat(term: state.term, beats: state.beats)
    if seen != heartbeat { (heartbeat, heartbeatSince) = (seen, now) }
    let turnNow = Turn(term: state.term, first: state.heartbeat.claims.first)
    if turnNow != firstTurn { (firstTurn, firstTurnSince) = (turnNow, now) }
    let claims = state.heartbeat.claims
    // Each of the waiters in front has had its turn by then.
    let patience = Int64(claims.firstIndex(of: id) ?? claims.count) * turn
    guard let term = state.term, term.isHeld else { return firstTurnSince + patience - now }
    return heartbeatSince + term.lease + patience - now
  }
}

/// A caller that waits for a lock.
///
/// This is plain state without any clock.
struct LockWaiter: Sendable {
  /// The next step of a caller.
  enum Step: Sendable, Hashable {
    /// It waits for a time, in nanoseconds, or for a report.
    case wait(Int64)
    /// It makes a change in an update, in which it looks again.
    case change
  }

  /// The result of a change.
  enum Answer: Sendable, Hashable {
    case granted(LockTerm)
    case wait(Int64)

    /// The term, if the lock was granted.
    var term: LockTerm? {
      guard case .granted(let term) = self else { return nil }
      return term
    }
  }

  /// The random number of the caller.
  let id: UInt64

  /// The lease of its term, in nanoseconds.
  let lease: Int64

  /// The time that a waiter has to take a lock when its turn has come, in nanoseconds.
  let turn: Int64

  /// The observations of its object.
  private(set) var observation: LockObservation

  /// Creates a caller.
  init(id: UInt64, lease: Int64, turn: Int64, observation: LockObservation = LockObservation()) {
    (self.id, self.lease, self.turn, self.observation) = (id, lease, turn, observation)
  }

  /// Notes the state of the lock.
  ///
  /// - Parameters:
  ///   - state: The state.
  ///   - now: A time that is not earlier than the reading of the state.
  mutating func look(at state: LockState, now: Int64) -> Step {
    let wait = observation.timeUntilTaking(state, by: id, turn: turn, now: now)
    let mustClaim = !state.heartbeat.claims.contains(id) && state.heartbeat.claims.count < LockHeartbeat.maximumClaims
    return wait <= 0 || mustClaim || state.isHeld(by: id) ? .change : .wait(wait)
  }

  /// Notes the state of the lock, and returns whether the caller may take it.
  mutating func wouldTake(_ state: LockState, now: Int64) -> Bool {
    observation.timeUntilTaking(state, by: id, turn: turn, now: now) <= 0
  }

  /// Takes the lock if it is free or its holder is dead, or takes a place in the order of the waiters.
  ///
  /// - Parameters:
  ///   - state: The state. It is stored if it changes.
  ///   - now: A time that is not earlier than the reading of the state.
  mutating func change(_ state: inout LockState, now: Int64) -> Answer {
    let answer = take(&state, now: now)
    if case .wait = answer { _ = state.claim(id) }
    return answer
  }

  /// Takes the lock if it is free or its holder is dead.
  ///
  /// - Parameters:
  ///   - state: The state. It is stored if it changes.
  ///   - now: A time that is not earlier than the reading of the state.
  mutating func take(_ state: inout LockState, now: Int64) -> Answer {
    if state.isHeld(by: id), let term = state.term {
      // An earlier commit whose outcome was unknown has granted the lock. The lease begins again.
      _ = state.renew(term)
      return .granted(term)
    }
    let wait = observation.timeUntilTaking(state, by: id, turn: turn, now: now)
    guard wait <= 0 else { return .wait(wait) }
    // Waiters whose turn has passed are dead, or claim again.
    if !state.heartbeat.claims.contains(id) { state.heartbeat.claims = [] }
    state.begin(owner: id, lease: lease)
    return state.term.map { .granted($0) } ?? .wait(turn)
  }
}
