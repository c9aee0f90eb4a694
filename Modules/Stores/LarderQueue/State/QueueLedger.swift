import Larder

/// The state of a queue without the payloads: plain data, which makes every decision and never waits.
///
/// Whatever changes it is a ``QueueRecord``, made here by a decision or found in the log when the queue is opened: so what
/// is replayed is what was decided. Only time changes it otherwise: ``advance(to:)`` lets delays and leases end, which
/// the log need not say.
///
/// A decision takes effect at once. Until ``commit()`` everything since can be undone, all of it or back to a ``mark``:
/// that is for records that could not be written.
///
/// Its parts: what changes an item is here; what is decided is in the extensions by subject.
struct QueueLedger: Sendable {
  /// A point to which later decisions can be undone.
  struct Mark: Sendable {
    fileprivate var undoCount: Int
    fileprivate var tallies: QueueTallies
    fileprivate var deathCount: Int
  }

  private enum Undo: Sendable {
    case item(UInt64, ItemState?, revival: UInt32?)
    case remembered(StoreKey, RememberedKey?)
  }

  /// Where a record comes from.
  enum Source: Sendable {
    /// The log says so.
    case log
    /// It was decided here, and can be undone.
    case decision
  }

  let rules: QueueRules

  var items = ItemLine()
  var deadItems = ItemLine()
  var keys = SortedMap<UInt64>()
  var deadSequences: [StoreKey: [UInt64]] = [:]
  var timers: [UInt64: ItemTimer] = [:]
  var deaths: [UInt64: Death] = [:]
  var deadlines = DeadlineHeap()
  /// When dead letters died, where they are not kept for ever.
  var deathTimes = DeadlineHeap()
  var remembered = RememberedKeys()
  /// The items that were leased when the queue was opened, and were not given back since: they may have killed a process.
  var suspects: Set<UInt64> = []
  private var groups: [UInt64: [UInt8]] = [:]
  /// The segments that say of items which were dead letters what their numbers are now: their payloads stand behind others.
  var revivals: [UInt64: UInt32] = [:]

  /// The next sequence number; none is given twice, whatever is undone.
  var nextSequence: UInt64 = 1

  /// The segment to which records are written.
  var segment: UInt32 = 0

  /// The time, in microseconds since 1970: that of opening, advanced by a monotonic clock.
  var now: Int64 = .min

  private(set) var counts = QueueCounts()
  /// How many items, dead ones too, have a key that their caller gave.
  private(set) var callersKeyCount = 0
  /// The bytes of live items, and of dead ones, that count against a capacity.
  private(set) var liveBytes = 0
  private(set) var deadBytes = 0
  var uses = SegmentUses()
  var tallies = QueueTallies()
  /// Deaths that are not reported yet.
  var newDeaths: [QueueDeath] = []
  var account = CallAccount()

  private var undo: [Undo] = []

  /// Makes an empty ledger, which takes records that are replayed until ``begin(at:)``.
  init(rules: QueueRules) {
    self.rules = rules
  }

  // MARK: Replaying

  /// Takes over a sequence number that must not be given again.
  mutating func reserve(nextSequence: UInt64) {
    self.nextSequence = max(self.nextSequence, nextSequence)
  }

  /// Takes a record that the log holds.
  ///
  /// - Parameters:
  ///   - record: The record.
  ///   - segment: The segment in which it stands.
  mutating func replay(_ record: QueueRecord, in segment: UInt32) {
    self.segment = segment
    apply(record, from: .log)
  }

  /// Notes that items were written anew elsewhere, in the course of which the end of a segment was moved.
  ///
  /// Of other records in that end it is not known where they stand now: both segments are kept for them.
  ///
  /// - Parameters:
  ///   - segment: The segment.
  ///   - offsets: Where payloads were in it, and where they are now.
  ///   - newSegment: The other segment.
  mutating func moveEnd(of segment: UInt32, _ offsets: [UInt32: UInt32], to newSegment: UInt32) {
    var moved: [QueueItem] = []
    for line in [items, deadItems] {
      line.forEach { if $0.place.segment == segment, offsets[$0.place.offset] != nil { moved.append($0) } }
    }
    for item in moved {
      guard var state = state(of: item.sequence), let offset = offsets[item.place.offset] else { continue }
      state.item.place.segment = newSegment
      state.item.place.offset = offset
      if state.item.stateSegment == segment { state.item.stateSegment = newSegment }
      let isRevived = revivals[item.sequence] != nil
      // It is the disk that has done this, which nothing undoes.
      setState(state, of: item.sequence, isUndoable: false)
      if isRevived { setRevival(newSegment, of: item.sequence) }
    }
    uses.takeOver(goneOf: segment, in: newSegment)
    uses.bind(newSegment, to: segment)
  }

  // MARK: Undoing

  /// Where decisions stand now.
  var mark: Mark { Mark(undoCount: undo.count, tallies: tallies, deathCount: newDeaths.count) }

  /// Undoes the decisions since a mark.
  mutating func rollBack(to mark: Mark) {
    while undo.count > mark.undoCount, let step = undo.popLast() {
      switch step {
      case .item(let sequence, let state, let revival):
        setState(state, of: sequence, isUndoable: false)
        if let revival { setRevival(revival, of: sequence) }
        if let timer = state?.timer { noteDeadline(timer, of: sequence) }
      case .remembered(let key, let entry): setRemembered(entry, for: key, isUndoable: false)
      }
    }
    tallies = mark.tallies
    newDeaths.removeSubrange(mark.deathCount...)
  }

  /// Whether there is anything that can be undone.
  var hasChanges: Bool { !undo.isEmpty }

  /// Lets the decisions stand.
  mutating func commit() {
    undo.removeAll(keepingCapacity: true)
  }

  // MARK: Changing

  /// Makes a change that was decided.
  mutating func change(_ record: QueueRecord, _ records: inout [QueueRecord]) {
    records.append(record)
    if case .remove(let sequences) = record { account.note(nil, of: sequences.lowerBound) }
    apply(record, from: .decision)
  }

  /// Makes the change that a record says; ``segment`` is where it is written.
  mutating func apply(_ record: QueueRecord, from source: Source) {
    let isUndoable = source == .decision
    switch record {
    case .put(let state):
      put(state, from: source)
    case .state(let sequence, let attempts, let standing):
      // A dead letter comes back by another record.
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
    case .revive(let sequence, let newSequence, let arrival):
      reserve(nextSequence: newSequence + 1)
      guard let old = deadItems[sequence] else { return }
      if source == .log { makeWay(for: old.key, of: newSequence) }
      let group = state(of: old).group
      remove(sequence, isUndoable: isUndoable)
      let item = QueueItem(
        sequence: newSequence, key: old.key, arrival: arrival, place: old.place, stateSegment: old.place.segment,
        hasCallersKey: old.hasCallersKey, priority: old.priority)
      setState(ItemState(item: item, group: group), of: newSequence, isUndoable: isUndoable)
      setRevival(segment, of: newSequence)
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
      if let revival = revivals[item.sequence] { uses.noteGone(item.sequence, of: revival, in: segment) }
    }
    setState(state, of: item.sequence, isNew: isNew, isUndoable: source == .decision)
  }

  private mutating func remove(_ sequence: UInt64, isUndoable: Bool) {
    guard let item = items[sequence] ?? deadItems[sequence] else { return }
    uses.noteGone(sequence, of: item.place.segment, in: segment)
    if let revival = revivals[sequence] { uses.noteGone(sequence, of: revival, in: segment) }
    setState(nil, of: sequence, isUndoable: isUndoable)
  }

  /// The numbers of the items, live and dead, of a range.
  func existing(in range: ClosedRange<UInt64>) -> [UInt64] {
    guard range.lowerBound < range.upperBound else { return [range.lowerBound] }
    var found: [UInt64] = []
    for line in [items, deadItems] {
      line.forEach(from: range.lowerBound) { item in
        guard item.sequence <= range.upperBound else { return false }
        found.append(item.sequence)
        return true
      }
    }
    return found
  }

  /// Takes out the item that has a key which another item is to have.
  ///
  /// No decision leads to that, but a log does of which a part was lost.
  private mutating func makeWay(for key: StoreKey, of sequence: UInt64) {
    if let other = keys[key], other != sequence { remove(other, isUndoable: false) }
  }

  /// Puts an item into a state, or takes it out: all changes to items come here.
  ///
  /// - Parameters:
  ///   - new: The state; `nil` to take the item out.
  ///   - sequence: The item.
  ///   - isNew: Whether it is known not to be there yet.
  ///   - isUndoable: Whether it can be undone.
  mutating func setState(_ new: ItemState?, of sequence: UInt64, isNew: Bool = false, isUndoable: Bool) {
    let old = isNew ? nil : state(of: sequence)
    if isUndoable { undo.append(.item(sequence, old, revival: revivals[sequence])) }
    let oldKey = old.flatMap { $0.item.phase == .dead ? nil : $0.item.key }
    let newKey = new.flatMap { $0.item.phase == .dead ? nil : $0.item.key }
    if let old { count(old.item, isComing: false) }
    if let new { count(new.item, isComing: true) }
    if old?.item.place != new?.item.place { setRevival(nil, of: sequence) }
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
    if new?.death != nil || old?.death != nil { deaths[sequence] = new?.death }
    if new?.group != old?.group { groups[sequence] = new.flatMap { $0.group.isEmpty ? nil : $0.group } }
    // While records are replayed, there is no time yet.
    guard now > .min else { return }
    if let timer = new?.timer, timer != old?.timer { noteDeadline(timer, of: sequence) }
    if let death = new?.death, death != old?.death, rules.deadLetterLifetime != nil {
      deathTimes.insert(DeadlineHeap.Entry(deadline: death.time, sequence: sequence))
    }
  }

  private mutating func setRevival(_ segment: UInt32?, of sequence: UInt64) {
    guard segment != nil || !revivals.isEmpty else { return }
    if let old = revivals[sequence] { uses.use(old, count: -1, size: 64) }
    if let segment { uses.use(segment, count: 1, size: 64) }
    revivals[sequence] = segment
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
    deadlines.insert(DeadlineHeap.Entry(deadline: timer.deadline, sequence: sequence))
    // Leases that are extended again and again leave deadlines that no longer hold.
    if deadlines.count > 2 * timers.count + 64 {
      deadlines = DeadlineHeap(timers.map { DeadlineHeap.Entry(deadline: $1.deadline, sequence: $0) })
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

  // MARK: Looking

  /// The state of an item, live or dead.
  func state(of sequence: UInt64) -> ItemState? {
    guard let item = items[sequence] ?? deadItems[sequence] else { return nil }
    return state(of: item)
  }

  func state(of item: QueueItem) -> ItemState {
    ItemState(
      item: item, timer: timers[item.sequence], death: deaths[item.sequence],
      group: groups.isEmpty ? [] : groups[item.sequence] ?? [])
  }
}
