import Larder

/// The state of a queue without the payloads: a state machine that makes every decision and never blocks.
///
/// Every change is a ``QueueRecord``, either decided here or read from the log when the queue is opened. Replaying
/// therefore repeats the decisions exactly. The only other source of changes is time: ``advance(to:)`` ends delays and
/// leases, which the log need not record.
///
/// A decision takes effect immediately. Until ``commit()``, decisions can be rolled back to a ``mark`` if their records
/// could not be written.
///
/// This file changes the state of items. The extensions make the decisions.
struct QueueLedger: Sendable {
  /// A point to which decisions can be rolled back.
  struct Mark: Sendable {
    fileprivate var undoCount: Int
    fileprivate var tallies: QueueTallies
    fileprivate var deadLetterCount: Int
  }

  private enum Undo: Sendable {
    case item(UInt64, ItemState?, requeueSegment: UInt32?)
    case remembered(StoreKey, RememberedKey?)
  }

  /// The origin of a record.
  enum Source: Sendable {
    /// The log contains the record.
    case log
    /// The record was decided here, and can be rolled back.
    case decision
  }

  let rules: QueueRules

  var items = ItemList()
  var deadItems = ItemList()
  var keys = SortedEntries<UInt64>()
  var deadSequences: [StoreKey: [UInt64]] = [:]
  var timers: [UInt64: ItemTimer] = [:]
  var causes: [UInt64: DeadLetterCause] = [:]
  var deadlines = DeadlineHeap()
  /// The times at which items became dead letters, if these are kept for a limited time.
  var deadLetterTimes = DeadlineHeap()
  var remembered = RememberedKeys()
  /// The items that were leased when the queue was opened, and not released since.
  ///
  /// They may have crashed a process.
  var suspects: Set<UInt64> = []
  /// The segments with the records that requeued dead letters, by the new sequence numbers.
  ///
  /// The payloads are in other segments.
  var requeueSegments: [UInt64: UInt32] = [:]

  /// The next sequence number.
  ///
  /// A number is never assigned twice, even after a rollback.
  var nextSequence: UInt64 = 1

  /// The current segment, to which records are written.
  var segment: UInt32 = 0

  /// The time in microseconds since 1970: the wall-clock time of opening, advanced by a monotonic clock.
  var now: Int64 = .min

  private(set) var counts = QueueCounts()
  /// The number of items and dead letters whose key the caller gave.
  private(set) var callersKeyCount = 0
  /// The sizes of live items and of dead letters that count against the capacity, in bytes.
  private(set) var liveBytes = 0
  private(set) var deadBytes = 0
  var uses = SegmentUses()
  var tallies = QueueTallies()
  /// Items that became dead letters and were not reported yet.
  var newDeadLetters: [DeadLetterEvent] = []
  var account = CallAccount()

  private var undo: [Undo] = []

  /// Creates an empty ledger, which accepts replayed records until ``begin(at:)`` is called.
  init(rules: QueueRules) {
    self.rules = rules
  }

  // MARK: Replaying

  /// Reserves all sequence numbers below the given one.
  mutating func reserve(nextSequence: UInt64) {
    self.nextSequence = max(self.nextSequence, nextSequence)
  }

  /// Applies a record of the log.
  ///
  /// - Parameters:
  ///   - record: The record.
  ///   - segment: The segment with the record.
  mutating func replay(_ record: QueueRecord, in segment: UInt32) {
    self.segment = segment
    apply(record, from: .log)
  }

  /// Updates the locations of items after the end of a segment was copied to another one.
  ///
  /// The locations of other records in that end are unknown, so both segments are kept for them.
  ///
  /// - Parameters:
  ///   - segment: The segment.
  ///   - offsets: The old offsets of payloads, with their new ones.
  ///   - newSegment: The other segment.
  mutating func moveEnd(of segment: UInt32, _ offsets: [UInt32: UInt32], to newSegment: UInt32) {
    let moved = [items, deadItems].flatMap { $0.all.filter { $0.place.segment == segment } }
    for item in moved {
      guard var state = state(of: item.sequence), let offset = offsets[item.place.offset] else { continue }
      state.item.place.segment = newSegment
      state.item.place.offset = offset
      if state.item.stateSegment == segment { state.item.stateSegment = newSegment }
      let isRequeued = requeueSegments[item.sequence] != nil
      // The change is already on disk, so it cannot be rolled back.
      setState(state, of: item.sequence, isUndoable: false)
      if isRequeued { setRequeueSegment(newSegment, of: item.sequence) }
    }
    uses.takeOver(goneOf: segment, in: newSegment)
    uses.bind(newSegment, to: segment)
  }

  // MARK: Rolling back

  /// The current point, to which later decisions can be rolled back.
  var mark: Mark { Mark(undoCount: undo.count, tallies: tallies, deadLetterCount: newDeadLetters.count) }

  /// Rolls back the decisions since a mark.
  mutating func rollBack(to mark: Mark) {
    while undo.count > mark.undoCount, let step = undo.popLast() {
      switch step {
      case .item(let sequence, let state, let requeueSegment):
        setState(state, of: sequence, isUndoable: false)
        if let requeueSegment { setRequeueSegment(requeueSegment, of: sequence) }
        if let timer = state?.timer { noteDeadline(timer, of: sequence) }
      case .remembered(let key, let entry): setRemembered(entry, for: key, isUndoable: false)
      }
    }
    tallies = mark.tallies
    newDeadLetters.removeSubrange(mark.deadLetterCount...)
  }

  /// A Boolean value that indicates whether any decision can be rolled back.
  var hasChanges: Bool { !undo.isEmpty }

  /// Commits all decisions, so they can no longer be rolled back.
  mutating func commit() {
    undo.removeAll(keepingCapacity: true)
  }

  // MARK: Changing

  /// Applies a decision, and appends its record to the frames to write.
  mutating func change(_ record: QueueRecord, _ frames: inout FrameBuffer) {
    frames.append(record)
    if case .remove(let sequences) = record { account.note(nil, of: sequences.lowerBound) }
    apply(record, from: .decision)
  }

  /// Applies a record that is or will be in ``segment``.
  mutating func apply(_ record: QueueRecord, from source: Source) {
    let isUndoable = source == .decision
    switch record {
    case .put(let state):
      put(state, from: source)
    case .state(let sequence, let attempts, let standing):
      // A dead letter returns to the queue by another record.
      guard let item = items[sequence] ?? (standing.phase == .dead ? deadItems[sequence] : nil) else { return }
      var state = state(of: item)
      state.standing = standing
      state.item.attempts = attempts ?? item.attempts
      state.item.stateSegment = segment
      setState(state, of: sequence, isUndoable: isUndoable)
    case .remove(let sequences):
      for sequence in existing(in: sequences) { remove(sequence, isUndoable: isUndoable) }
    case .acknowledge(let sequence, let key, let deadline):
      remove(sequence, isUndoable: isUndoable)
      let entry = RememberedKey(sequence: sequence, deadline: deadline, segment: segment)
      setRemembered(entry, for: key, isUndoable: isUndoable)
    case .requeue(let sequence, let newSequence, let arrival):
      reserve(nextSequence: newSequence + 1)
      // The segment with the record of the dead letter may have been removed since, because no item depends on it any more.
      guard let old = deadItems[sequence] ?? (source == .log ? items[sequence] : nil) else { return }
      if source == .log { makeWay(for: old.key, of: newSequence) }
      remove(sequence, isUndoable: isUndoable)
      let item = QueueItem(
        sequence: newSequence, key: old.key, arrival: arrival, place: old.place, stateSegment: old.place.segment,
        hasCallersKey: old.hasCallersKey)
      setState(ItemState(item: item), of: newSequence, isUndoable: isUndoable)
      setRequeueSegment(segment, of: newSequence)
    case .remember(let key, let sequence, let deadline):
      let entry = RememberedKey(sequence: sequence, deadline: deadline, segment: segment)
      setRemembered(entry, for: key, isUndoable: isUndoable)
    case .segments:
      break
    }
  }

  private mutating func put(_ state: ItemState, from source: Source) {
    let item = state.item
    let isNew = item.sequence >= nextSequence
    reserve(nextSequence: item.sequence + 1)
    if source == .log, item.phase != .dead { makeWay(for: item.key, of: item.sequence) }
    if !isNew, let old = items[item.sequence] ?? deadItems[item.sequence] {
      uses.noteGone(item.sequence, of: old.place.segment, in: segment)
      if let requeueSegment = requeueSegments[item.sequence] {
        uses.noteGone(item.sequence, of: requeueSegment, in: segment)
      }
    }
    setState(state, of: item.sequence, isNew: isNew, isUndoable: source == .decision)
  }

  private mutating func remove(_ sequence: UInt64, isUndoable: Bool) {
    guard let item = items[sequence] ?? deadItems[sequence] else { return }
    uses.noteGone(sequence, of: item.place.segment, in: segment)
    if let requeueSegment = requeueSegments[sequence] { uses.noteGone(sequence, of: requeueSegment, in: segment) }
    setState(nil, of: sequence, isUndoable: isUndoable)
  }

  /// Returns the sequence numbers of the items and dead letters in a range.
  func existing(in range: ClosedRange<UInt64>) -> [UInt64] {
    guard range.lowerBound < range.upperBound else { return [range.lowerBound] }
    return [items, deadItems].flatMap { list in
      list.items(from: range.lowerBound).prefix { $0.sequence <= range.upperBound }.map(\.sequence)
    }
  }

  /// Removes another item with a key that an item is about to get.
  ///
  /// No decision leads to two items with a key, but a log that lost records can.
  private mutating func makeWay(for key: StoreKey, of sequence: UInt64) {
    if let other = keys[key], other != sequence { remove(other, isUndoable: false) }
  }

  /// Sets or removes the state of an item.
  ///
  /// All changes to items use this method.
  ///
  /// - Parameters:
  ///   - new: The new state; `nil` to remove the item.
  ///   - sequence: The sequence number of the item.
  ///   - isNew: A Boolean value that indicates whether the item is known to be new. Defaults to `false`.
  ///   - isUndoable: A Boolean value that indicates whether the change can be rolled back.
  mutating func setState(_ new: ItemState?, of sequence: UInt64, isNew: Bool = false, isUndoable: Bool) {
    let old = isNew ? nil : state(of: sequence)
    if isUndoable { undo.append(.item(sequence, old, requeueSegment: requeueSegments[sequence])) }
    let oldKey = old.flatMap { $0.item.phase == .dead ? nil : $0.item.key }
    let newKey = new.flatMap { $0.item.phase == .dead ? nil : $0.item.key }
    if let old { count(old.item, isComing: false) }
    if let new { count(new.item, isComing: true) }
    if old?.item.place != new?.item.place { setRequeueSegment(nil, of: sequence) }
    if oldKey != newKey {
      if let oldKey {
        items.remove(sequence)
        _ = keys.removeValue(forKey: oldKey)
      }
      if let newKey { _ = keys.setValue(sequence, forKey: newKey) }
    }
    if let old, old.item.phase == .dead { removeDead(old.item) }
    if let new {
      if new.item.phase == .dead { insertDead(new.item) } else { items.set(new.item) }
    }
    if new?.timer != nil || old?.timer != nil { timers[sequence] = new?.timer }
    if new?.cause != nil || old?.cause != nil { causes[sequence] = new?.cause }
    // During replay there is no time yet.
    guard now > .min else { return }
    if let timer = new?.timer, timer != old?.timer { noteDeadline(timer, of: sequence) }
    if let cause = new?.cause, cause != old?.cause, rules.deadLetterRetention != nil {
      deadLetterTimes.insert((cause.time, sequence))
    }
  }

  private mutating func setRequeueSegment(_ segment: UInt32?, of sequence: UInt64) {
    guard segment != nil || !requeueSegments.isEmpty else { return }
    if let old = requeueSegments[sequence] { uses.use(old, count: -1, size: 64) }
    if let segment { uses.use(segment, count: 1, size: 64) }
    requeueSegments[sequence] = segment
  }

  private mutating func insertDead(_ item: QueueItem) {
    deadItems.set(item)
    var sequences = deadSequences[item.key] ?? []
    let place = sequences.firstIndex { $0 > item.sequence } ?? sequences.endIndex
    sequences.insert(item.sequence, at: place)
    deadSequences[item.key] = sequences
  }

  private mutating func removeDead(_ item: QueueItem) {
    deadItems.remove(item.sequence)
    deadSequences[item.key]?.removeAll { $0 == item.sequence }
    if deadSequences[item.key]?.isEmpty == true { deadSequences[item.key] = nil }
  }

  private mutating func noteDeadline(_ timer: ItemTimer, of sequence: UInt64) {
    deadlines.insert((timer.deadline, sequence))
    // Repeatedly extended leases leave outdated deadlines in the heap.
    if deadlines.count > 2 * timers.count + 64 {
      deadlines = DeadlineHeap(timers.map { ($1.deadline, $0) })
    }
  }

  mutating func setRemembered(_ new: RememberedKey?, for key: StoreKey, isUndoable: Bool) {
    let old = remembered.set(new, for: key)
    if isUndoable { undo.append(.remembered(key, old)) }
    let size = key.count + QueueRecord.idOverhead
    if let old { uses.use(old.segment, count: -1, size: size) }
    if let new { uses.use(new.segment, count: 1, size: size) }
  }

  private mutating func count(_ item: QueueItem, isComing: Bool) {
    let one = isComing ? 1 : -1
    switch item.phase {
    case .waiting: counts.waiting += one
    case .delayed: counts.delayed += one
    case .leased: counts.leased += one
    case .dead: counts.dead += one
    }
    if item.hasCallersKey { callersKeyCount += one }
    if item.phase == .dead { deadBytes += one * item.size } else { liveBytes += one * item.size }
    let isRemembered = item.hasCallersKey && rules.duplicateWindow > 0
    uses.use(
      item.place.segment, count: one, size: item.size + 64,
      idBytes: isRemembered ? item.key.count + QueueRecord.idOverhead : 0)
    if item.stateSegment != item.place.segment { uses.useState(item.stateSegment, by: one) }
  }

  // MARK: Reading

  /// Returns the state of an item or a dead letter.
  func state(of sequence: UInt64) -> ItemState? {
    guard let item = items[sequence] ?? deadItems[sequence] else { return nil }
    return state(of: item)
  }

  func state(of item: QueueItem) -> ItemState {
    ItemState(item: item, timer: timers[item.sequence], cause: causes[item.sequence])
  }
}

/// Counters of a queue's operations since it was opened.
struct QueueTallies: Sendable, Hashable {
  var enqueued = 0
  var delivered = 0
  /// The number of deliveries that were not the first of their items.
  var redelivered = 0
  var acknowledged = 0
  var released = 0
  var deadLettered = 0
  /// The number of dead letters removed after their retention time.
  var deadExpired = 0
  var dropped = 0
}

/// The reason why a ``QueueLedger`` refuses an operation.
///
/// All changes of the operation are rolled back.
enum QueueRefusal: Error, Hashable {
  /// There is no item to receive, so the call waits.
  case noItems
  /// There is no room, either for now or because the items exceed the capacity by themselves.
  case full(neverFits: Bool)
  /// The disk is full, and the remaining space is reserved for removing items.
  case diskFull
  /// The receipt does not belong to the current lease of its item.
  case stale
  /// A live item has the key of the dead letter.
  case conflict(StoreKey)
  /// All sequence numbers have been assigned.
  case exhausted
}
