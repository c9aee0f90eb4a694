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

  init(_ layout: QueueLayout, _ rules: QueueRules, now: Int64) {
    self.layout = layout
    self.rules = rules
    self.now = now
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

  // MARK: Items

  /// Changes the state of an item and all indexes of it.
  ///
  /// - Parameters:
  ///   - sequence: The sequence number of the item.
  ///   - old: The state before, or `nil` for a new item.
  ///   - new: The state afterwards, or `nil` to remove the item.
  mutating func change(_ sequence: UInt128, from old: ItemRecord?, to new: ItemRecord?) {
    for key in old.map({ indexKeys(of: $0, sequence) }) ?? [] { set(nil, forKey: key) }
    for key in new.map({ indexKeys(of: $0, sequence) }) ?? [] { set([], forKey: key) }
    set(new?.bytes, forKey: layout.stateKey(sequence))
    if let old, let group = old.group {
      if new == nil { touchedGroups[group, default: TouchedGroup()].removed.insert(sequence) }
      if old.phase == .leased, new?.phase != .leased {
        touchedGroups[group, default: TouchedGroup()].unlocked.insert(sequence)
      }
    }
  }

  private func indexKeys(of item: ItemRecord, _ sequence: UInt128) -> [StoreKey] {
    var keys: [StoreKey] = []
    if let group = item.group { keys.append(layout.memberKey(group, sequence)) }
    switch item.phase {
    case .ready: keys.append(layout.readyKey(sequence, priority: item.priority))
    case .delayed, .leased:
      keys.append(layout.timerKey(item.deadline, .item(sequence, isLeased: item.phase == .leased)))
    case .parked: break
    }
    return keys
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
  /// - Parameter remembering: Whether its id is remembered, if the caller gave it.
  mutating func remove(_ sequence: UInt128, _ item: ItemRecord, remembering: Bool) {
    change(sequence, from: item, to: nil)
    set(nil, forKey: layout.itemKey(item.key))
    guard remembering, item.hasCallersKey, rules.duplicateWindow > 0 else { return }
    let expiry = now.addingSaturating(rules.duplicateWindow)
    set(RememberedID(expiry: expiry, sequence: sequence).bytes, forKey: layout.rememberedKey(item.key))
    set([], forKey: layout.timerKey(expiry, .id(item.key)))
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
    let record = DeadRecord(item: item, reason: reason, time: now, expiry: expiry, payload: payload)
    set(record.bytes, forKey: layout.deadKey(sequence))
    set([], forKey: layout.deadIndexKey(item.key, sequence))
    if expiry != 0 { set([], forKey: layout.timerKey(expiry, .deadLetter(sequence))) }
    deadLetters.append(DeadLetterEvent(key: item.key, sequence: sequence, attempts: Int(item.attempts), reason: reason))
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
    leased.deadline = now.addingSaturating(length)
    leased.epoch = epoch
    change(sequence, from: item, to: leased)
    if let group = item.group { set(GroupRecord(leased: sequence).bytes, forKey: layout.groupKey(group)) }
    return DeliveryReceipt(sequence: sequence, attempt: leased.attempts, epoch: epoch)
  }

  /// Holds an item back until the earlier items of its group have left the queue.
  ///
  /// The record of the group must have been read.
  mutating func park(_ sequence: UInt128, _ item: ItemRecord) {
    var parked = item
    parked.phase = .parked
    change(sequence, from: item, to: parked)
    if let group = item.group {
      set(GroupRecord(leased: leasedItem(of: group)).bytes, forKey: layout.groupKey(group))
    }
  }

  /// Ends the changes of a group: its first item becomes ready if no item is leased.
  ///
  /// - Parameters:
  ///   - group: The group.
  ///   - first: The first item that stays in the group, or `nil` if none does. Its state must have been read.
  mutating func finish(_ group: StoreKey, first: UInt128?) {
    let touched = touchedGroups[group] ?? TouchedGroup()
    let key = layout.groupKey(group)
    let leased = value(forKey: key).flatMap { GroupRecord($0) }?.leased
      .flatMap { touched.unlocked.contains($0) || touched.removed.contains($0) ? nil : $0 }
    guard let first else {
      set(nil, forKey: key)
      return
    }
    set(GroupRecord(leased: leased).bytes, forKey: key)
    guard leased == nil, let item = item(first), item.phase == .parked else { return }
    var ready = item
    ready.phase = .ready
    change(first, from: item, to: ready)
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
  /// - Returns: Whether it is moved.
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

  /// Removes a dead letter, which must have been read.
  ///
  /// - Returns: Whether it can be removed, because it is not damaged.
  mutating func purge(_ sequence: UInt128) -> Bool {
    guard let record = value(forKey: layout.deadKey(sequence)).flatMap({ DeadRecord($0) }) else { return false }
    removeDeadLetter(sequence, record)
    return true
  }

  // MARK: Timers

  /// Does what is due when a timer has expired, if the timer still belongs to its subject.
  ///
  /// The subject must have been read.
  mutating func settle(_ timer: QueueTimer, at time: Int64, key: StoreKey) {
    set(nil, forKey: key)
    switch timer {
    case .item(let sequence, let isLeased):
      guard let item = item(sequence), item.deadline == time, item.phase == (isLeased ? .leased : .delayed) else {
        return
      }
      change(sequence, from: item, to: item.due)
    case .id(let id):
      let record = value(forKey: layout.rememberedKey(id)).flatMap { RememberedID($0) }
      if record?.expiry == time { set(nil, forKey: layout.rememberedKey(id)) }
    case .deadLetter(let sequence):
      let record = value(forKey: layout.deadKey(sequence)).flatMap { DeadRecord($0) }
      if let record, record.expiry == time { removeDeadLetter(sequence, record) }
    }
  }
}
