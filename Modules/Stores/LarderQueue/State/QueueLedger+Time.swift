import Larder

/// Deadlines of leases, delays and dead letters.
extension QueueLedger {
  /// Ends the replay and starts the clock.
  ///
  /// From now on, no delay or lease lasts longer than its duration, and no id is remembered for longer than the window, even
  /// if the wall clock was ahead when it began.
  ///
  /// - Parameter now: The time, in microseconds since 1970.
  /// - Returns: What must be written, so the next opening sees the same deadlines.
  mutating func begin(at now: Int64) -> OpeningChanges {
    self.now = now
    var changed = OpeningChanges()
    for sequence in timers.keys.sorted() {
      guard var timer = timers[sequence], items[sequence] != nil else { continue }
      let latest = now.addingSaturating(timer.length)
      guard timer.deadline > latest else { continue }
      timer.deadline = latest
      timers[sequence] = timer
      changed.items.append(sequence)
    }
    for (sequence, cause) in causes where cause.time > now {
      causes[sequence]?.time = now
      changed.items.append(sequence)
    }
    suspects = Set(timers.keys.filter { items[$0]?.phase == .leased })
    deadlines = DeadlineHeap(timers.map { ($1.deadline, $0) })
    changed.ids = remembered.bound(to: now.addingSaturating(rules.duplicateWindow))
    if rules.deadLetterRetention != nil {
      deadLetterTimes = DeadlineHeap(causes.map { ($1.time, $0) })
    }
    expire()
    commit()
    return changed
  }

  /// Advances the time, never backward, and ends delays and leases that are due.
  mutating func advance(to now: Int64) {
    self.now = max(self.now, now)
    expire()
  }

  private mutating func expire() {
    while let first = deadlines.first, first.deadline <= now {
      deadlines.removeFirst()
      guard timers[first.sequence]?.deadline == first.deadline, var state = state(of: first.sequence) else { continue }
      state.standing = .waiting
      // A rollback of the group's earlier changes can restore a state from before this change.
      setState(state, of: first.sequence, isUndoable: hasChanges)
    }
    while let key = remembered.nextExpired(at: now) { setRemembered(nil, for: key, isUndoable: hasChanges) }
  }

  /// The next deadline of a delay or lease, in microseconds.
  var nextDeadline: Int64? {
    mutating get {
      while let first = deadlines.first {
        if timers[first.sequence]?.deadline == first.deadline { return first.deadline }
        deadlines.removeFirst()
      }
      return nil
    }
  }

  /// A Boolean value that indicates whether there are dead letters past their retention time.
  var hasExpiredDeadLetters: Bool {
    guard let timeToLive = rules.deadLetterRetention, let first = deadLetterTimes.first else { return false }
    return first.deadline.addingSaturating(timeToLive) <= now
  }

  /// Removes dead letters past their retention time.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of dead letters to look at.
  ///   - frames: The frames to write, to which this method appends.
  mutating func expireDeadLetters(_ limit: Int, into frames: inout FrameBuffer) {
    for _ in 0..<limit where hasExpiredDeadLetters {
      guard let first = deadLetterTimes.removeFirst() else { return }
      // An item that was requeued and became a dead letter again has a later time.
      guard let cause = causes[first.sequence], cause.time <= first.deadline else { continue }
      change(.remove(first.sequence...first.sequence), &frames)
      tallies.deadExpired += 1
    }
  }
}

/// The changes that opening a queue has made in its ledger.
struct OpeningChanges: Sendable {
  /// The items with new deadlines.
  var items: [UInt64] = []
  /// The remembered ids with new deadlines.
  var ids: [StoreKey] = []

  var isEmpty: Bool { items.isEmpty && ids.isEmpty }
}

/// A binary heap of deadlines, the earliest first.
///
/// An outdated deadline stays until it is first, so callers must check that a deadline still applies.
struct DeadlineHeap: Sendable {
  typealias Entry = (deadline: Int64, sequence: UInt64)

  private var entries: [Entry] = []

  var count: Int { entries.count }
  var first: Entry? { entries.first }

  init() {}

  /// Creates a heap from entries in any order.
  init(_ entries: [Entry]) {
    // A sorted array is a heap.
    self.entries = entries.sorted { $0.deadline < $1.deadline }
  }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var index = entries.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard entries[index].deadline < entries[parent].deadline else { return }
      entries.swapAt(index, parent)
      index = parent
    }
  }

  @discardableResult
  mutating func removeFirst() -> Entry? {
    guard let last = entries.popLast() else { return nil }
    guard let first = entries.first else { return last }
    entries[0] = last
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < entries.count {
        if entries[child].deadline < entries[least].deadline { least = child }
      }
      guard least != index else { return first }
      entries.swapAt(index, least)
      index = least
    }
  }
}
