import Larder

/// What a queue holds, without the payloads: plain state, which decides everything and waits for nothing.
///
/// Whatever changes it is a ``QueueRecord``, made here by a decision or found in the log when the queue is opened: so what
/// is replayed is what was decided. Only time changes it otherwise: ``advance(to:)`` lets delays and leases end, which
/// the log need not say.
///
/// A decision takes effect at once. Until ``commit()`` everything since can be undone, all of it or back to a ``mark``:
/// that is for records that could not be written.
struct QueueLedger: Sendable {
  /// An item that is to come.
  struct NewItem: Sendable {
    /// Its key; `nil` to generate one, of ``generatedKeyLength`` bytes.
    var key: StoreKey?
    var place: QueuePlace
    /// In microseconds.
    var delay: Int64 = 0
  }

  /// A point to which later decisions can be undone.
  struct Mark: Sendable {
    fileprivate var undoCount: Int
    fileprivate var tallies: QueueTallies
  }

  private enum Undo: Sendable {
    case item(UInt64, ItemState?)
    case remembered(StoreKey, RememberedKey?)
  }

  /// How many bytes a generated key has.
  static let generatedKeyLength = 16

  let rules: QueueRules

  private var items = ItemLine()
  private var deadItems = ItemLine()
  private var keys = SortedMap<UInt64>()
  private var deadSequences: [StoreKey: [UInt64]] = [:]
  private var timers: [UInt64: ItemTimer] = [:]
  private var deaths: [UInt64: Death] = [:]
  private var deadlines = DeadlineHeap()
  private(set) var remembered: [StoreKey: RememberedKey] = [:]
  private var rememberedOrder: [(deadline: Int64, key: StoreKey)] = []
  private var rememberedHead = 0

  /// The next sequence number; none is given twice, whatever is undone.
  private(set) var nextSequence: UInt64 = 1

  /// The segment to which records are written.
  var segment: UInt32 = 0

  /// The time, in microseconds since 1970.
  private(set) var now: Int64 = .min

  private(set) var counts = QueueCounts()
  /// How many items, dead ones too, have a key that their caller gave.
  private var callersKeyCount = 0
  /// The bytes that count against a capacity.
  private(set) var liveBytes = 0
  private(set) var usage: [UInt32: SegmentUsage] = [:]
  private(set) var tallies = QueueTallies()

  private var undo: [Undo] = []
  private var isReplaying = true

  // What the call that goes on has added.
  private var firstOwnSequence: UInt64 = 1
  private var ownSizes: [UInt64: Int] = [:]
  private var ownItems = 0
  private var ownBytes = 0

  /// Makes an empty ledger, which takes records that are replayed until ``begin(at:)``.
  init(rules: QueueRules) {
    self.rules = rules
  }

  // MARK: Replaying

  /// Takes over a sequence number that must not be given again.
  mutating func reserve(nextSequence: UInt64) {
    self.nextSequence = max(self.nextSequence, nextSequence)
  }

  /// Ends the replaying.
  mutating func begin(at now: Int64) {
    isReplaying = false
    self.now = now
    boundTimers()
    expire()
  }

  /// Takes a record that the log holds.
  ///
  /// - Parameters:
  ///   - record: The record.
  ///   - segment: The segment in which it stands.
  mutating func replay(_ record: QueueRecord, in segment: UInt32) {
    self.segment = segment
    apply(record)
  }

  /// Notes that the end of a segment was written anew, in another segment.
  ///
  /// What says that a key is remembered may stand in that end or not: the old segment is kept for it all the same.
  ///
  /// - Parameters:
  ///   - segment: The segment.
  ///   - start: Where in it that end begins.
  ///   - newSegment: The other segment.
  ///   - newStart: Where in that one the end begins.
  mutating func moveEnd(of segment: UInt32, from start: Int64, to newSegment: UInt32, at newStart: Int64) {
    var moved: [QueueItem] = []
    for line in [items, deadItems] {
      line.forEach { if $0.place.segment == segment, $0.place.offset >= start { moved.append($0) } }
    }
    // It is the disk that has done this, which nothing undoes.
    isReplaying = true
    defer { isReplaying = false }
    for var item in moved {
      guard var state = state(of: item.sequence) else { continue }
      item.place.segment = newSegment
      item.place.offset = UInt32(clamping: Int64(item.place.offset) - start + newStart)
      state.item = item
      setState(state, of: item.sequence)
    }
  }

  // MARK: Time

  /// Lets the time go on: delays and leases end whose deadlines have come.
  mutating func advance(to now: Int64) {
    let goesBack = now < self.now
    self.now = now
    if goesBack { boundTimers() }
    expire()
  }

  /// Lets nothing be kept back longer than was said, when the clock may have been put back.
  private mutating func boundTimers() {
    for (sequence, timer) in timers {
      timers[sequence]?.deadline = min(timer.deadline, now.addingSaturating(timer.length))
    }
    deadlines = DeadlineHeap(timers.map { DeadlineHeap.Entry(deadline: $1.deadline, sequence: $0) })
    let latest = now.addingSaturating(rules.duplicateWindow)
    for (key, entry) in remembered where entry.deadline > latest { remembered[key]?.deadline = latest }
    rememberedOrder = remembered.map { ($1.deadline, $0) }.sorted { $0.deadline < $1.deadline }
    rememberedHead = 0
  }

  private mutating func expire() {
    while let first = deadlines.first, first.deadline <= now {
      deadlines.removeFirst()
      guard timers[first.sequence]?.deadline == first.deadline, var state = state(of: first.sequence) else { continue }
      state.item.phase = .waiting
      state.timer = nil
      setState(state, of: first.sequence)
    }
    while rememberedHead < rememberedOrder.count, rememberedOrder[rememberedHead].deadline <= now {
      let key = rememberedOrder[rememberedHead].key
      rememberedHead += 1
      if let entry = remembered[key], entry.deadline <= now { setRemembered(nil, for: key) }
    }
    if rememberedHead > 1024, rememberedHead > rememberedOrder.count / 2 {
      rememberedOrder.removeSubrange(..<rememberedHead)
      rememberedHead = 0
    }
    // It is time that has done all this, which nothing undoes.
    undo.removeAll(keepingCapacity: true)
  }

  /// When the next delay or lease ends, in microseconds since 1970.
  var nextDeadline: Int64? {
    mutating get {
      while let first = deadlines.first {
        if timers[first.sequence]?.deadline == first.deadline { return first.deadline }
        deadlines.removeFirst()
      }
      return nil
    }
  }

  // MARK: Undoing

  /// Where decisions stand now.
  var mark: Mark { Mark(undoCount: undo.count, tallies: tallies) }

  /// Undoes the decisions since a mark.
  mutating func rollBack(to mark: Mark) {
    // While it undoes, it must not note what it does.
    isReplaying = true
    while undo.count > mark.undoCount, let step = undo.popLast() {
      switch step {
      case .item(let sequence, let state):
        setState(state, of: sequence)
        if let timer = state?.timer { noteDeadline(timer, of: sequence) }
      case .remembered(let key, let entry): setRemembered(entry, for: key)
      }
    }
    isReplaying = false
    tallies = mark.tallies
  }

  /// Lets the decisions stand.
  mutating func commit() {
    undo.removeAll(keepingCapacity: true)
  }

  /// Begins a call, which counts for what it adds itself.
  mutating func beginCall() {
    firstOwnSequence = nextSequence
    guard !ownSizes.isEmpty else { return }
    ownSizes.removeAll()
    ownItems = 0
    ownBytes = 0
  }

  /// Notes what the call that goes on has put into an item.
  ///
  /// - Parameters:
  ///   - size: The bytes; `nil` where it takes the item out.
  ///   - sequence: The item.
  private mutating func noteOwn(_ size: Int?, of sequence: UInt64) {
    let old = ownSizes[sequence]
    ownSizes[sequence] = size
    ownBytes += (size ?? 0) - (old ?? 0)
    if sequence >= firstOwnSequence { ownItems += (size == nil ? 0 : 1) - (old == nil ? 0 : 1) }
  }

  // MARK: Looking

  /// The state of an item, live or dead.
  func state(of sequence: UInt64) -> ItemState? {
    guard let item = items[sequence] ?? deadItems[sequence] else { return nil }
    return state(of: item)
  }

  private func state(of item: QueueItem) -> ItemState {
    ItemState(item: item, timer: timers[item.sequence], death: deaths[item.sequence])
  }

  /// The live item of a key.
  func item(forKey key: StoreKey) -> QueueItem? {
    keys[key].flatMap { items[$0] }
  }

  /// The first live items of a range, by key.
  func items(in range: KeyRange, limit: Int, order: ScanOrder) -> [QueueItem] {
    var found: [QueueItem] = []
    keys.forEach(in: range, limit: limit, order: order) { _, sequence in
      if let item = items[sequence] { found.append(item) }
    }
    return found
  }

  /// The first keys of live items of a range.
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreKey] {
    keys.keys(in: range, limit: limit, order: order)
  }

  /// Counts the live items of a range.
  func count(in range: KeyRange) -> Int {
    keys.count(in: range)
  }

  /// The first items that wait, in order of arrival.
  mutating func firstWaiting(_ limit: Int) -> [QueueItem] {
    items.firstWaiting(limit)
  }

  /// The first items that would be delivered, in order of arrival.
  mutating func firstDeliverable(_ limit: Int) -> [QueueItem] {
    let rules = rules
    return items.firstWaiting(limit) { !rules.isExhausted($0) }
  }

  /// When the oldest live item came, in microseconds since 1970.
  var oldestArrival: Int64? { items.first?.arrival }

  /// The dead letters, in order of arrival.
  ///
  /// - Parameter limit: The most to give.
  func deadLetters(_ limit: Int) -> [ItemState] {
    deadItems.prefix(limit).map { state(of: $0) }
  }

  /// What a segment holds that is needed: items, and remembered keys.
  func survivors(in segment: UInt32) -> [QueueRecord] {
    var records: [QueueRecord] = []
    for line in [items, deadItems] {
      line.forEach { item in
        if item.place.segment == segment { records.append(.put(state(of: item))) }
      }
    }
    for (key, entry) in remembered where entry.segment == segment {
      records.append(.remember(key: key, sequence: entry.sequence, deadline: entry.deadline))
    }
    return records
  }

  // MARK: Deciding: what comes

  /// Enqueues an item, unless its key is in the queue or remembered.
  ///
  /// - Parameters:
  ///   - new: The item.
  ///   - records: Gets what is to be written, the item first.
  mutating func enqueue(
    _ new: NewItem, into records: inout [QueueRecord]
  ) throws(QueueRefusal) -> EnqueuedItem {
    if let key = new.key, let sequence = sequenceOfDuplicate(key) {
      return EnqueuedItem(key: key, sequence: sequence, isDuplicate: true, droppedCount: 0)
    }
    let key = new.key ?? generatedKey()
    let dropped = try add(new, key: key, hasCallersKey: new.key != nil, into: &records)
    tallies.enqueued += 1
    return EnqueuedItem(key: key, sequence: nextSequence - 1, isDuplicate: false, droppedCount: dropped)
  }

  /// Refuses items that would not even fit into an empty queue, together.
  ///
  /// - Parameter sizes: The bytes of the keys and the payloads of those with a key, and of the others.
  func checkFit(_ sizes: [(key: StoreKey?, bytes: Int)]) throws(QueueRefusal) {
    guard rules.isLimited else { return }
    var keys: Set<StoreKey> = []
    var (items, bytes) = (0, 0)
    for (key, size) in sizes {
      if let key {
        guard sequenceOfDuplicate(key) == nil, keys.insert(key).inserted else { continue }
      }
      items += 1
      bytes += (key?.count ?? QueueLedger.generatedKeyLength) + size
    }
    guard items <= rules.capacity.items ?? .max, bytes <= rules.capacity.bytes ?? .max else {
      throw .full(neverFits: true)
    }
  }

  private func sequenceOfDuplicate(_ key: StoreKey) -> UInt64? {
    if let sequence = keys[key] ?? deadSequences[key]?.last { return sequence }
    guard let entry = remembered[key], entry.deadline > now else { return nil }
    return entry.sequence
  }

  /// A key that sorts by arrival, and that nobody has given to another item.
  private mutating func generatedKey() -> StoreKey {
    while true {
      let key = QueueLedger.generatedKey(of: nextSequence)
      guard callersKeyCount > 0, keys.contains(key) || deadSequences[key] != nil else { return key }
      nextSequence += 1
    }
  }

  /// A sequence number in 16 hexadecimal digits.
  private static func generatedKey(of sequence: UInt64) -> StoreKey {
    withUnsafeTemporaryAllocation(byteCount: generatedKeyLength, alignment: 1) { digits in
      for (index, shift) in stride(from: 60, through: 0, by: -4).enumerated() {
        let digit = UInt8(truncatingIfNeeded: sequence >> UInt64(shift)) & 15
        digits[index] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
      }
      return StoreKey(copying: UnsafeRawBufferPointer(digits))
    }
  }

  private mutating func add(
    _ new: NewItem, key: StoreKey, hasCallersKey: Bool, into records: inout [QueueRecord]
  ) throws(QueueRefusal) -> Int {
    var item = QueueItem(
      sequence: nextSequence, key: key, arrival: now, place: new.place, hasCallersKey: hasCallersKey)
    var drops: [QueueRecord] = []
    let dropped = try makeRoom(items: 1, bytes: item.size, for: item.sequence, size: item.size, into: &drops)
    var timer: ItemTimer?
    if new.delay > 0 {
      item.phase = .delayed
      timer = ItemTimer(deadline: now.addingSaturating(new.delay), length: new.delay)
    }
    change(.put(ItemState(item: item, timer: timer)), &records)
    // Behind the item, whose place in the frame is settled.
    records.append(contentsOf: drops)
    return dropped
  }

  /// Puts a value under a key: into the place of the live item that has it, or at the end.
  mutating func setValue(
    at place: QueuePlace, forKey key: StoreKey, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    guard let old = item(forKey: key) else {
      _ = try add(NewItem(key: key, place: place), key: key, hasCallersKey: true, into: &records)
      return
    }
    var state = state(of: old)
    state.item.place = place
    state.item.attempts = 0
    if old.phase == .leased {
      state.item.phase = .waiting
      state.timer = nil
    }
    var drops: [QueueRecord] = []
    let growth = state.item.size - old.size
    _ = try makeRoom(items: 0, bytes: growth, for: old.sequence, size: state.item.size, into: &drops)
    change(.put(state), &records)
    records.append(contentsOf: drops)
  }

  /// Drops what must go for something to come, where that is the policy.
  ///
  /// - Parameters:
  ///   - count: How many items more there will be.
  ///   - bytes: How many bytes more there will be.
  ///   - sequence: The item that comes or grows, which is not dropped.
  ///   - size: The bytes that it will have.
  ///   - records: Gets what is to be written.
  /// - Returns: How many items were dropped.
  private mutating func makeRoom(
    items count: Int, bytes: Int, for sequence: UInt64, size: Int, into records: inout [QueueRecord]
  ) throws(QueueRefusal) -> Int {
    guard rules.isLimited else { return 0 }
    let capacity = rules.capacity
    noteOwn(size, of: sequence)
    guard ownItems <= capacity.items ?? .max, ownBytes <= capacity.bytes ?? .max else {
      throw .full(neverFits: true)
    }
    var dropped = 0
    // What shrinks always fits.
    while counts.live + count > capacity.items ?? .max && count > 0
      || liveBytes + bytes > capacity.bytes ?? .max && bytes > 0
    {
      guard capacity.policy == .dropOldest,
        let oldest = items.first(where: { $0.phase != .leased && $0.sequence != sequence }),
        oldest.sequence < firstOwnSequence
      else { throw .full(neverFits: false) }
      change(.remove(sequence: oldest.sequence), &records)
      dropped += 1
    }
    tallies.dropped += dropped
    return dropped
  }

  // MARK: Deciding: what goes

  /// Takes out the live item of a key, where there is one.
  mutating func removeValue(forKey key: StoreKey, into records: inout [QueueRecord]) {
    guard let sequence = keys[key] else { return }
    change(.remove(sequence: sequence), &records)
  }

  /// Takes out the live items of a range.
  mutating func removeAll(in range: KeyRange, into records: inout [QueueRecord]) {
    for item in items(in: range, limit: .max, order: .ascending) {
      change(.remove(sequence: item.sequence), &records)
    }
  }

  // MARK: Deciding: deliveries

  /// Whether an item has been delivered as often as it may be.
  func isExhausted(_ item: QueueItem) -> Bool {
    rules.isExhausted(item)
  }

  /// Hands an item out.
  ///
  /// - Parameters:
  ///   - item: One that waits.
  ///   - length: How long its lease is, in microseconds.
  ///   - epoch: The number of this receiving.
  ///   - records: Gets what is to be written.
  mutating func lease(
    _ item: QueueItem, length: Int64, epoch: UInt64, into records: inout [QueueRecord]
  ) -> DeliveryReceipt {
    let attempts = item.attempts == .max ? item.attempts : item.attempts + 1
    let timer = ItemTimer(deadline: now.addingSaturating(length), length: length, epoch: epoch)
    change(.lease(sequence: item.sequence, attempts: attempts, timer), &records)
    tallies.delivered += 1
    if attempts > 1 { tallies.redelivered += 1 }
    return DeliveryReceipt(sequence: item.sequence, attempt: attempts, epoch: epoch)
  }

  /// Counts a delivery of an item that cannot be handed out now, and lets it wait.
  mutating func postpone(_ item: QueueItem, delay: Int64, into records: inout [QueueRecord]) {
    _ = lease(item, length: delay, epoch: 0, into: &records)
    let timer = ItemTimer(deadline: now.addingSaturating(delay), length: delay)
    change(.wait(sequence: item.sequence, timer), &records)
  }

  /// Makes a dead letter of an item.
  mutating func kill(_ sequence: UInt64, _ reason: DeathReason, into records: inout [QueueRecord]) {
    change(.die(sequence: sequence, Death(reason: reason, time: now)), &records)
    tallies.deadLettered += 1
  }

  /// The item of a receipt.
  ///
  /// - Throws: ``QueueRefusal/stale`` unless the receipt is that of the lease which the item has.
  func leasedItem(of receipt: DeliveryReceipt) throws(QueueRefusal) -> QueueItem {
    guard let item = items[receipt.sequence], item.phase == .leased, item.attempts == receipt.attempt,
      timers[item.sequence]?.epoch == receipt.epoch
    else { throw .stale }
    return item
  }

  /// Lets an item go for good.
  mutating func acknowledge(
    _ receipt: DeliveryReceipt, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    if item.hasCallersKey, rules.duplicateWindow > 0 {
      let deadline = now.addingSaturating(rules.duplicateWindow)
      change(.acknowledge(sequence: item.sequence, key: item.key, deadline: deadline), &records)
    } else {
      change(.remove(sequence: item.sequence), &records)
    }
    tallies.acknowledged += 1
  }

  /// Lets an item wait again in its old place, or makes a dead letter of it where it was delivered often enough.
  ///
  /// - Parameters:
  ///   - receipt: That of its lease.
  ///   - delay: How long it is kept back, in microseconds.
  ///   - records: Gets what is to be written.
  mutating func release(
    _ receipt: DeliveryReceipt, delay: Int64, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    tallies.released += 1
    if isExhausted(item) {
      kill(item.sequence, .tooManyDeliveries, into: &records)
    } else {
      let timer = delay > 0 ? ItemTimer(deadline: now.addingSaturating(delay), length: delay) : nil
      change(.wait(sequence: item.sequence, timer), &records)
    }
  }

  /// Lets a lease end so much after now.
  mutating func extend(
    _ receipt: DeliveryReceipt, length: Int64, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    let timer = ItemTimer(deadline: now.addingSaturating(length), length: length, epoch: receipt.epoch)
    change(.lease(sequence: item.sequence, attempts: item.attempts, timer), &records)
  }

  /// Ends every lease.
  mutating func voidLeases(into records: inout [QueueRecord]) {
    for sequence in timers.keys.sorted() where items[sequence]?.phase == .leased {
      change(.wait(sequence: sequence, nil), &records)
    }
  }

  // MARK: Deciding: dead letters

  /// Puts the latest dead letter of a key at the end of the line, as if it came now.
  ///
  /// - Returns: Whether there was one.
  mutating func requeue(_ key: StoreKey, into records: inout [QueueRecord]) throws(QueueRefusal) -> Bool {
    guard let sequence = deadSequences[key]?.last, let item = deadItems[sequence] else { return false }
    guard keys[key] == nil else { throw .conflict(key) }
    _ = try makeRoom(items: 1, bytes: item.size, for: nextSequence, size: item.size, into: &records)
    change(.revive(sequence: sequence, newSequence: nextSequence, arrival: now), &records)
    return true
  }

  /// Takes out the dead letters of a key.
  ///
  /// - Returns: How many there were.
  mutating func purgeDeadLetters(_ key: StoreKey, into records: inout [QueueRecord]) -> Int {
    let sequences = deadSequences[key] ?? []
    for sequence in sequences { change(.remove(sequence: sequence), &records) }
    return sequences.count
  }

  /// Takes out every dead letter.
  ///
  /// - Returns: How many there were.
  mutating func purgeDeadLetters(into records: inout [QueueRecord]) -> Int {
    var sequences: [UInt64] = []
    deadItems.forEach { sequences.append($0.sequence) }
    for sequence in sequences { change(.remove(sequence: sequence), &records) }
    return sequences.count
  }

  // MARK: Changing

  private mutating func change(_ record: QueueRecord, _ records: inout [QueueRecord]) {
    records.append(record)
    if case .remove(let sequence) = record, !ownSizes.isEmpty { noteOwn(nil, of: sequence) }
    apply(record)
  }

  /// Makes the change that a record says; for one that was decided here, ``segment`` is where it is written.
  mutating func apply(_ record: QueueRecord) {
    switch record {
    case .put(let state):
      let item = state.item
      let isNew = item.sequence >= nextSequence
      reserve(nextSequence: item.sequence &+ 1)
      if isReplaying, item.phase != .dead { makeWay(for: item.key, of: item.sequence) }
      setState(state, of: item.sequence, isNew: isNew)
    case .lease(let sequence, let attempts, let timer):
      guard var item = items[sequence] else { return }
      item.attempts = attempts
      item.phase = .leased
      setState(ItemState(item: item, timer: timer), of: sequence)
    case .wait(let sequence, let timer):
      guard var item = items[sequence] else { return }
      item.phase = timer == nil ? .waiting : .delayed
      setState(ItemState(item: item, timer: timer), of: sequence)
    case .remove(let sequence):
      setState(nil, of: sequence)
    case .acknowledge(let sequence, let key, let deadline):
      setState(nil, of: sequence)
      setRemembered(RememberedKey(sequence: sequence, deadline: deadline, segment: segment), for: key)
    case .die(let sequence, let death):
      guard var item = items[sequence] else { return }
      item.phase = .dead
      setState(ItemState(item: item, death: death), of: sequence)
    case .revive(let sequence, let newSequence, let arrival):
      reserve(nextSequence: newSequence &+ 1)
      guard let old = deadItems[sequence] else { return }
      if isReplaying { makeWay(for: old.key, of: newSequence) }
      setState(nil, of: sequence)
      let item = QueueItem(
        sequence: newSequence, key: old.key, arrival: arrival, place: old.place, hasCallersKey: old.hasCallersKey)
      setState(ItemState(item: item), of: newSequence)
    case .remember(let key, let sequence, let deadline):
      setRemembered(RememberedKey(sequence: sequence, deadline: deadline, segment: segment), for: key)
    }
  }

  /// Takes out the item that has a key which another item is to have.
  ///
  /// No decision leads to that, but a log does of which a part was lost.
  private mutating func makeWay(for key: StoreKey, of sequence: UInt64) {
    if let other = keys[key], other != sequence { setState(nil, of: other) }
  }

  /// Puts an item into a state, or takes it out: all changes to items come here.
  ///
  /// - Parameters:
  ///   - new: The state; `nil` to take the item out.
  ///   - sequence: The item.
  ///   - isNew: Whether it is known not to be there yet.
  private mutating func setState(_ new: ItemState?, of sequence: UInt64, isNew: Bool = false) {
    let old = isNew ? nil : state(of: sequence)
    if !isReplaying { undo.append(.item(sequence, old)) }
    let oldKey = old.flatMap { $0.item.phase == .dead ? nil : $0.item.key }
    let newKey = new.flatMap { $0.item.phase == .dead ? nil : $0.item.key }
    if let old { count(old.item, isComing: false) }
    if let new { count(new.item, isComing: true) }
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
    if let timer = new?.timer, !isReplaying { noteDeadline(timer, of: sequence) }
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

  private mutating func setRemembered(_ new: RememberedKey?, for key: StoreKey) {
    let old = remembered[key]
    if !isReplaying { undo.append(.remembered(key, old)) }
    if let old { use(old.segment, count: -1, bytes: 0) }
    if let new {
      use(new.segment, count: 1, bytes: 0)
      rememberedOrder.append((new.deadline, key))
    }
    remembered[key] = new
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
    if item.phase != .dead { liveBytes += one * item.size }
    use(item.place.segment, count: one, bytes: one * item.size)
  }

  private mutating func use(_ segment: UInt32, count: Int, bytes: Int) {
    var used = usage[segment] ?? SegmentUsage()
    used.count += count
    used.bytes += bytes
    usage[segment] = used.count > 0 ? used : nil
  }
}
