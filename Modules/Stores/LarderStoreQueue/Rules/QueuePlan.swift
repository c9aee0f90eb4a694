import Larder

/// Planned changes of entries of the base, with the stored values that they were planned from.
///
/// This is plain state without any I/O. A plan is performed in an update of the base, and only if none of the stored
/// values that it depends on has changed since it was read.
struct QueuePlan: Sendable {
  /// The stored values that the plan depends on, and the new values.
  private(set) var commit = ConditionalCommit<Never>()

  /// The groups of which an item leaves the queue, or ends its lease.
  private(set) var touchedGroups: [StoreKey: TouchedGroup] = [:]

  /// The items that become dead letters.
  private(set) var deadLetters: [DeadLetterEvent] = []

  /// The changes of one group.
  struct TouchedGroup: Sendable {
    /// The items that leave the group.
    var removed: Set<UInt128> = []
    /// The items whose leases end.
    var unlocked: Set<UInt128> = []
  }

  let layout: QueueLayout
  let rules: QueueRules
  /// The time of the plan, in microseconds since 1970.
  let now: Int64
  private let randomness: QueueRandomness

  init(_ layout: QueueLayout, _ rules: QueueRules, now: Int64, randomness: QueueRandomness) {
    self.layout = layout
    self.rules = rules
    self.now = now
    self.randomness = randomness
  }

  /// The new values.
  var changes: some Sequence<(key: StoreKey, value: [UInt8]?)> { commit.changes }

  /// Adds stored values, on which the plan depends from now on.
  mutating func read(_ stored: [StoreKey: [UInt8]?]) {
    for (key, value) in stored { commit.require(value, forKey: key) }
  }

  /// Returns the value that a key has after the changes so far.
  ///
  /// - Returns: The value. It is `nil` if the key is missing or was not read.
  func value(forKey key: StoreKey) -> [UInt8]? {
    commit.plannedValue(forKey: key) ?? nil
  }

  func item(_ sequence: UInt128) -> ItemRecord? {
    value(forKey: layout.stateKey(sequence)).flatMap { ItemRecord($0) }
  }

  mutating func set(_ value: [UInt8]?, forKey key: StoreKey) {
    commit.setValue(value, forKey: key)
  }

  /// Reports a key that a caller writes, also if its value stays as it is.
  mutating func report(_ key: StoreKey) {
    commit.report(key)
  }

  // MARK: Items

  /// Changes the state of an item and all indexes of it.
  ///
  /// - Parameters:
  ///   - sequence: The sequence number of the item.
  ///   - old: The state before, or `nil` for a new item.
  ///   - new: The state afterward, or `nil` to remove the item.
  mutating func change(_ sequence: UInt128, from old: ItemRecord?, to new: ItemRecord?) {
    for entry in old.map({ indexEntries(of: $0, sequence) }) ?? [] { set(nil, forKey: entry.key) }
    for entry in new.map({ indexEntries(of: $0, sequence) }) ?? [] { set(entry.value, forKey: entry.key) }
    set(new?.bytes, forKey: layout.stateKey(sequence))
    if let old, let group = old.group {
      if new == nil { touchedGroups[group, default: TouchedGroup()].removed.insert(sequence) }
      if old.phase == .leased, new?.phase != .leased {
        touchedGroups[group, default: TouchedGroup()].unlocked.insert(sequence)
      }
    }
  }

  private func indexEntries(of item: ItemRecord, _ sequence: UInt128) -> [StoreEntry<[UInt8]>] {
    var entries: [StoreEntry<[UInt8]>] = []
    if let group = item.group { entries.append(StoreEntry(key: layout.memberKey(group, sequence), value: [])) }
    switch item.phase {
    case .ready:
      let key = layout.readyKey(sequence, priority: item.priority)
      entries.append(StoreEntry(key: key, value: item.group?.bytes ?? []))
    case .delayed, .leased:
      let timer = QueueTimer.item(sequence, isLeased: item.phase == .leased)
      let key = layout.timerKey(item.deadline, timer)
      entries.append(StoreEntry(key: key, value: item.beginning.bigEndianBytes + (item.group?.bytes ?? [])))
    case .parked: break
    }
    return entries
  }

  /// Adds a new item.
  mutating func insert(_ sequence: UInt128, _ item: ItemRecord, delay: Int64, payload: some Collection<UInt8>) {
    var item = item
    item.wait(delay, from: now)
    change(sequence, from: nil, to: item)
    set(StoredItem.bytes(sequence, payload), forKey: layout.itemKey(item.key))
  }

  /// Removes an item.
  ///
  /// - Parameter remembering: A Boolean value that indicates whether its id is remembered, if the caller gave it.
  mutating func remove(_ sequence: UInt128, _ item: ItemRecord, remembering: Bool) {
    change(sequence, from: item, to: nil)
    set(nil, forKey: layout.itemKey(item.key))
    guard remembering, item.hasCallersKey, rules.duplicateWindow > 0 else { return }
    remember(item.key, sequence, until: now.addingSaturating(rules.duplicateWindow))
  }

  /// Remembers an id from now on.
  private mutating func remember(_ id: StoreKey, _ sequence: UInt128, until expiry: Int64) {
    let record = RememberedID(beginning: now, expiry: expiry, sequence: sequence)
    set(record.bytes, forKey: layout.rememberedKey(id))
    set(now.bigEndianBytes, forKey: layout.timerKey(expiry, .id(id)))
  }

  /// Turns an item into a dead letter.
  ///
  /// - Parameters:
  ///   - sequence: The sequence number of the item.
  ///   - item: Its state.
  ///   - reason: The reason.
  ///   - payload: Its payload, or nothing if it is damaged.
  mutating func bury(_ sequence: UInt128, _ item: ItemRecord, _ reason: DeadLetterReason, payload: ArraySlice<UInt8>) {
    remove(sequence, item, remembering: true)
    let expiry = rules.deadLetterRetention.map { now.addingSaturating($0) } ?? 0
    setDeadLetter(DeadRecord(item: item, reason: reason, time: now, expiry: expiry, payload: payload), sequence)
    set([], forKey: layout.deadIndexKey(item.key, sequence))
    deadLetters.append(DeadLetterEvent(key: item.key, sequence: sequence, attempts: Int(item.attempts), reason: reason))
  }

  private mutating func setDeadLetter(_ record: DeadRecord, _ sequence: UInt128) {
    set(record.bytes, forKey: layout.deadKey(sequence))
    guard record.expiry != 0 else { return }
    set(record.time.bigEndianBytes, forKey: layout.timerKey(record.expiry, .deadLetter(sequence)))
  }

  /// Removes a dead letter.
  mutating func removeDeadLetter(_ sequence: UInt128, _ record: DeadRecord) {
    set(nil, forKey: layout.deadKey(sequence))
    set(nil, forKey: layout.deadIndexKey(record.item.key, sequence))
    if record.expiry != 0 { set(nil, forKey: layout.timerKey(record.expiry, .deadLetter(sequence))) }
  }

  /// Leases an item.
  mutating func lease(_ sequence: UInt128, _ item: ItemRecord, length: Int64, epoch: UInt64) -> DeliveryReceipt {
    var leased = item
    leased.phase = .leased
    leased.attempts += leased.attempts == .max ? 0 : 1
    leased.beginning = now
    leased.deadline = now.addingSaturating(length)
    leased.epoch = epoch
    change(sequence, from: item, to: leased)
    if let group = item.group { setRecord(of: group, leased: sequence) }
    return DeliveryReceipt(sequence: sequence, attempt: leased.attempts, epoch: epoch)
  }

  /// Holds an item back until the earlier items of its group have left the queue.
  ///
  /// The record of the group must have been read.
  mutating func park(_ sequence: UInt128, _ item: ItemRecord) {
    var parked = item
    // If it was delayed, its delay has ended.
    parked.wait(0, from: now)
    parked.phase = .parked
    change(sequence, from: item, to: parked)
    if let group = item.group { setRecord(of: group, leased: leasedItem(of: group)) }
  }

  /// Ends the changes of a group: its first item becomes ready if no item is leased.
  ///
  /// - Parameters:
  ///   - group: The group.
  ///   - first: The first item that stays in the group, or `nil` if there isn't one. Its state must have been read.
  mutating func finish(_ group: StoreKey, first: UInt128?) {
    let touched = touchedGroups[group] ?? TouchedGroup()
    let key = layout.groupKey(group)
    let leased = value(forKey: key).flatMap { GroupRecord($0) }?.leased
      .flatMap { touched.unlocked.contains($0) || touched.removed.contains($0) ? nil : $0 }
    guard let first else {
      set(nil, forKey: key)
      return
    }
    setRecord(of: group, leased: leased)
    guard leased == nil, let item = item(first), [.parked, .ready].contains(item.phase) else { return }
    var ready = item
    ready.phase = .ready
    // Also if it is ready, so that a consumer that has passed it over is woken.
    change(first, from: item, to: ready)
  }

  private mutating func setRecord(of group: StoreKey, leased: UInt128?) {
    set(GroupRecord(leased: leased, nonce: randomness.next()).bytes, forKey: layout.groupKey(group))
  }

  /// Returns the leased item of a group, whose record must have been read.
  func leasedItem(of group: StoreKey) -> UInt128? {
    value(forKey: layout.groupKey(group)).flatMap { GroupRecord($0)?.leased }
  }

  // MARK: Dead letters

  /// Moves a dead letter to the end of the queue, if no item in the queue has its key.
  ///
  /// The dead letter and the item of its key must have been read.
  ///
  /// - Returns: A Boolean value that indicates whether it is moved.
  mutating func requeue(_ sequence: UInt128, as newSequence: UInt128) -> Bool {
    guard let record = value(forKey: layout.deadKey(sequence)).flatMap({ DeadRecord($0) }),
      value(forKey: layout.itemKey(record.item.key)) == nil
    else { return false }
    removeDeadLetter(sequence, record)
    let old = record.item
    let item = ItemRecord(
      key: old.key, group: old.group, priority: old.priority, hasCallersKey: old.hasCallersKey, arrival: now)
    insert(newSequence, item, delay: 0, payload: record.payload)
    return true
  }

  /// Removes a dead letter that must have been read.
  ///
  /// - Returns: A Boolean value that indicates whether it can be removed, because it is not damaged.
  mutating func purge(_ sequence: UInt128) -> Bool {
    guard let record = value(forKey: layout.deadKey(sequence)).flatMap({ DeadRecord($0) }) else { return false }
    removeDeadLetter(sequence, record)
    return true
  }

  // MARK: Timers

  /// Does what is due when a timer has expired, if the timer still belongs to its subject.
  ///
  /// The subject must have been read.
  mutating func settle(_ timer: StoredTimer) {
    set(nil, forKey: timer.key)
    switch timer.subject {
    case .item(let sequence, _):
      if let item = item(of: timer) { change(sequence, from: item, to: item.due) }
    case .id(let id):
      if rememberedID(of: timer) != nil { set(nil, forKey: layout.rememberedKey(id)) }
    case .deadLetter(let sequence):
      if let record = deadLetter(of: timer) { removeDeadLetter(sequence, record) }
    }
  }

  /// Holds an item back whose delay has ended, until the earlier items of its group have left the queue.
  ///
  /// The item and the record of the group must have been read.
  mutating func park(_ timer: StoredTimer) {
    guard case .item(let sequence, _) = timer.subject, let item = item(of: timer) else {
      return set(nil, forKey: timer.key)
    }
    // The timer of another group is damaged. Only the record of the group that it names was read.
    guard item.group == timer.group else { return settle(timer) }
    set(nil, forKey: timer.key)
    park(sequence, item)
  }

  /// Counts a timer from now, because the clock was ahead when it was set.
  ///
  /// The subject must have been read.
  mutating func correct(_ timer: StoredTimer) {
    let end = now.addingSaturating(timer.length)
    set(nil, forKey: timer.key)
    switch timer.subject {
    case .item(let sequence, _):
      guard let item = item(of: timer) else { return }
      var corrected = item
      (corrected.beginning, corrected.deadline) = (now, end)
      change(sequence, from: item, to: corrected)
    case .id(let id):
      if let record = rememberedID(of: timer) { remember(id, record.sequence, until: end) }
    case .deadLetter(let sequence):
      guard let record = deadLetter(of: timer) else { return }
      setDeadLetter(
        DeadRecord(item: record.item, reason: record.reason, time: now, expiry: end, payload: record.payload), sequence)
    }
  }

  private func item(of timer: StoredTimer) -> ItemRecord? {
    guard case .item(let sequence, let isLeased) = timer.subject, let item = item(sequence),
      item.deadline == timer.time, item.phase == (isLeased ? .leased : .delayed)
    else { return nil }
    return item
  }

  private func rememberedID(of timer: StoredTimer) -> RememberedID? {
    guard case .id(let id) = timer.subject else { return nil }
    return value(forKey: layout.rememberedKey(id)).flatMap { RememberedID($0) }.flatMap {
      $0.expiry == timer.time ? $0 : nil
    }
  }

  private func deadLetter(of timer: StoredTimer) -> DeadRecord? {
    guard case .deadLetter(let sequence) = timer.subject else { return nil }
    return value(forKey: layout.deadKey(sequence)).flatMap { DeadRecord($0) }.flatMap {
      $0.expiry == timer.time ? $0 : nil
    }
  }

  // MARK: Ids

  /// Returns the sequence number of an item that has an id or had it recently.
  ///
  /// The item and the record of the id must have been read. If the clock was ahead when the id was remembered, the time
  /// that it is remembered begins now.
  mutating func original(of id: StoreKey) -> UInt128? {
    if let stored = value(forKey: layout.itemKey(id)) { return StoredItem(stored)?.sequence ?? 0 }
    guard let record = value(forKey: layout.rememberedKey(id)).flatMap({ RememberedID($0) }), record.expiry > now else {
      return nil
    }
    if WallClock.wasAhead(at: record.beginning, now: now) {
      set(nil, forKey: layout.timerKey(record.expiry, .id(id)))
      remember(
        id, record.sequence, until: now.addingSaturating(max(0, record.expiry.addingSaturating(-record.beginning))))
    }
    return record.sequence
  }
}
