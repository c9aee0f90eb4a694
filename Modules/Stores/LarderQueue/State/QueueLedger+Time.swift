/// Deadlines of leases, delays and dead letters.
extension QueueLedger {
  /// Ends the replaying.
  ///
  /// Nothing is kept back longer than was said, from now on: when a lease was taken the clock may have been ahead.
  ///
  /// - Parameter now: The time, in microseconds since 1970.
  /// - Returns: What is to be written for it, so that the next opening knows it too.
  mutating func begin(at now: Int64) -> [QueueRecord] {
    self.now = now
    var changes: [QueueRecord] = []
    for sequence in timers.keys.sorted() {
      guard var timer = timers[sequence], let item = items[sequence] else { continue }
      let latest = now.addingSaturating(timer.length)
      guard timer.deadline > latest else { continue }
      timer.deadline = latest
      timers[sequence] = timer
      let standing: Standing = item.phase == .leased ? .leased(timer) : .delayed(timer)
      changes.append(.state(sequence: sequence, attempts: item.attempts, standing))
    }
    for (sequence, death) in deaths where death.time > now {
      deaths[sequence]?.time = now
      guard let state = state(of: sequence) else { continue }
      changes.append(.state(sequence: sequence, attempts: state.item.attempts, state.standing))
    }
    suspects = Set(timers.keys.filter { items[$0]?.phase == .leased })
    deadlines = DeadlineHeap(timers.map { DeadlineHeap.Entry(deadline: $1.deadline, sequence: $0) })
    remembered.bound(to: now.addingSaturating(rules.duplicateWindow))
    if rules.deadLetterLifetime != nil {
      deathTimes = DeadlineHeap(deaths.map { DeadlineHeap.Entry(deadline: $1.time, sequence: $0) })
    }
    expire()
    commit()
    return changes
  }

  /// Lets the time go on, never back: delays and leases end whose deadlines have come.
  mutating func advance(to now: Int64) {
    self.now = max(self.now, now)
    expire()
  }

  private mutating func expire() {
    while let first = deadlines.first, first.deadline <= now {
      deadlines.removeFirst()
      guard timers[first.sequence]?.deadline == first.deadline, var state = state(of: first.sequence) else { continue }
      state.standing = .waiting
      // What the group has changed so far may be undone to a time before this.
      setState(state, of: first.sequence, isUndoable: hasChanges)
    }
    while let key = remembered.nextExpired(at: now) { setRemembered(nil, for: key, isUndoable: hasChanges) }
  }

  /// When the next delay or lease ends, in microseconds.
  var nextDeadline: Int64? {
    mutating get {
      while let first = deadlines.first {
        if timers[first.sequence]?.deadline == first.deadline { return first.deadline }
        deadlines.removeFirst()
      }
      return nil
    }
  }

  /// Whether dead letters are there whose time is over.
  var hasExpiredDeadLetters: Bool {
    guard let lifetime = rules.deadLetterLifetime, let first = deathTimes.first else { return false }
    return first.deadline.addingSaturating(lifetime) <= now
  }

  /// Removes dead letters whose time is over.
  ///
  /// - Parameters:
  ///   - limit: The most to look at.
  ///   - records: Gets what is to be written.
  mutating func expireDeadLetters(_ limit: Int, into records: inout [QueueRecord]) {
    for _ in 0..<limit where hasExpiredDeadLetters {
      guard let first = deathTimes.removeFirst() else { return }
      // One that came back and died again has another time.
      guard let death = deaths[first.sequence], death.time <= first.deadline else { continue }
      change(.remove(first.sequence...first.sequence), &records)
      tallies.deadExpired += 1
    }
  }
}
