import Larder

/// Leasing the items at the head of the queue.
extension StoreQueue {
  /// A leased item.
  struct LeasedItem: Sendable {
    let item: ItemRecord
    let receipt: DeliveryReceipt
  }

  /// An entry of an item that is ready.
  struct ReadyItem: Sendable {
    let entry: StoreEntry<[UInt8]>
    let sequence: UInt128
    let group: StoreKey?

    init?(_ entry: StoreEntry<[UInt8]>, _ layout: QueueLayout) {
      guard let sequence = layout.sequence(of: entry.key), entry.value.count <= StoreKey.maximumLength else {
        return nil
      }
      self.entry = entry
      self.sequence = sequence
      group = entry.value.isEmpty ? nil : StoreKey(bytes: entry.value)
    }
  }

  /// The part of a group that a call has read.
  struct GroupHead: Sendable {
    /// The first item, or `nil` if the group had none.
    ///
    /// Other items are behind it as long as the plan is current. A plan without a first item proves nothing, because items that
    /// are enqueued change no record of their group.
    let first: UInt128?
    /// A plan that depends on what was read, with the state of the first item.
    let plan: QueuePlan
    /// The item that can be leased, or `nil` while another one is.
    let leasable: UInt128?
  }

  /// The plans of a call for the items at the head of the queue.
  private struct Head {
    var leases: [(plan: QueuePlan, item: LeasedItem)] = []
    /// The plans for items that cannot be leased.
    var others: [QueuePlan] = []
    /// A Boolean value that indicates whether an item becomes a dead letter, so the next one of its group can be
    /// leased.
    var buries = false
    /// The groups that the call has met.
    var groups: [StoreKey: GroupHead] = [:]
    /// The values of the entries of groups with a leased item.
    ///
    /// These entries are not even parsed when enough items are to be parked.
    var blockedGroups: Set<[UInt8]> = []
    /// The groups of which an item is leased or becomes a dead letter.
    var takenGroups: Set<StoreKey> = []
    /// The items that are behind others of their groups, and are parked so that no later call meets them.
    var behind: [ReadyItem] = []
  }

  /// The most items that one call parks, and the most that it turns into dead letters at a time.
  private static var parkingLimit: Int { 512 }
  private static var burialLimit: Int { 128 }

  /// The most entries of ready items that are read at a time.
  static var lookLimit: Int { 1024 }

  /// Leases the first items that are due.
  ///
  /// - Parameters:
  ///   - wanted: The maximum number of items.
  ///   - length: The duration of the leases, in microseconds.
  ///   - mayBeSuspect: A Boolean value that indicates whether an item that may have crashed a process is leased. It is
  ///     then leased alone.
  ///   - skipped: The sequence numbers of items that are passed over.
  func lease(
    _ wanted: Int, _ length: Int64, mayBeSuspect: Bool, skipping skipped: Set<UInt128>
  ) async throws -> [LeasedItem] {
    let epoch = randomness.next()
    for _ in 0..<Self.maximumLooks {
      var (found, leased) = (Head(), [LeasedItem]())
      defer {
        let sequences = found.leases.map(\.item.receipt.sequence)
        reserved.withLock { $0.subtract(sequences) }
        // Another consumer may have found no item because these were reserved.
        if sequences.count > leased.count { waits.signal() }
      }
      try await look(for: wanted, length, epoch, mayBeSuspect: mayBeSuspect, skipping: skipped, &found)
      try await park(&found)
      // The leases first, because parking an item of a group would make the lease of another one stale.
      let leaseCount = found.leases.count
      let performed = try await perform(found.leases.map(\.plan) + found.others, .receive) { index, performedCount in
        index >= leaseCount || performedCount < wanted
      }
      leased = performed.filter { $0 < leaseCount }.map { found.leases[$0].item }
      if !leased.isEmpty { return leased }
      // If others have taken the items, or some became dead letters, there may be another one.
      if leaseCount == 0, !found.buries { return [] }
    }
    throw information.contentionError(for: .receive)
  }

  private static var maximumLooks: Int { 10_000 }

  /// Plans leases of the first items that are ready.
  ///
  /// Items whose groups are blocked are passed over by their entries alone, however many there are.
  ///
  /// - Parameter found: The plans. Their items are reserved, also if the method throws.
  private func look(
    for wanted: Int, _ length: Int64, _ epoch: UInt64, mayBeSuspect: Bool, skipping skipped: Set<UInt128>,
    _ found: inout Head
  ) async throws {
    // If other processes lease the first items at the same time, the next ones may be left.
    let enough = information.sharing == .exclusive ? wanted : wanted + 4
    var range = layout.ready
    var limit = enough + reserved.withLock { $0.count }
    while found.leases.count < enough {
      limit = min(limit, Self.lookLimit)
      let entries = try await callingBase(.receive) { [range, limit] in
        try await base.entries(in: range, limit: limit, order: .ascending)
      }
      guard let last = entries.last else { return }
      range = try range.rest(behind: last.key, of: information.name, during: .receive)
      let taken = reserved.withLock { $0 }.union(skipped)
      let blocked = found.behind.count < Self.parkingLimit ? [] : found.blockedGroups
      let items = entries.compactMap { blocked.contains($0.value) ? nil : ReadyItem($0, layout) }
        .filter { !taken.contains($0.sequence) }
      let stateKeys = items.compactMap { $0.group == nil ? layout.stateKey($0.sequence) : nil }
      let states = try await read([layout.pauseKey] + stateKeys, .receive)
      guard (states[layout.pauseKey] ?? nil) == nil else { return }
      for item in items where found.leases.count < enough {
        guard let plan = try await plan(toLease: item, states, &found) else { continue }
        guard let record = plan.item(item.sequence) else {
          // Another consumer has removed the item, or its state is lost. A damaged state is left as it is.
          if plan.value(forKey: layout.stateKey(item.sequence)) == nil { found.others.append(removal(ofLost: item)) }
          continue
        }
        guard record.phase == .ready else { continue }
        if record.mustBeReceivedAlone, !mayBeSuspect || !found.leases.isEmpty { return }
        if rules.isExhausted(record) {
          try await bury(item, record, plan, &found)
          continue
        }
        guard reserved.withLock({ $0.insert(item.sequence).inserted }) else { continue }
        if let group = item.group { found.takenGroups.insert(group) }
        var lease = plan
        lease.read([layout.pauseKey: nil])
        let receipt = lease.lease(item.sequence, record, length: length, epoch: epoch)
        found.leases.append((lease, LeasedItem(item: record, receipt: receipt)))
        if record.mustBeReceivedAlone { return }
      }
      if entries.count < limit { return }
      limit *= 4
    }
  }

  /// Returns a plan that depends on the state of an item and on its group, or `nil` if its group does not allow its
  /// delivery.
  private func plan(
    toLease item: ReadyItem, _ states: [StoreKey: [UInt8]?], _ found: inout Head
  ) async throws -> QueuePlan? {
    guard let group = item.group else {
      var plan = newPlan()
      let stateKey = layout.stateKey(item.sequence)
      plan.read([stateKey: states[stateKey] ?? nil])
      return plan
    }
    // The items behind one that this call leases are parked by a later call.
    guard !found.takenGroups.contains(group) else { return nil }
    let head: GroupHead
    if let known = found.groups[group] {
      head = known
    } else {
      head = try await self.head(of: group, .receive)
      found.groups[group] = head
      if head.leasable == nil { found.blockedGroups.insert(group.bytes) }
    }
    guard head.leasable == item.sequence else {
      if head.first != nil, found.behind.count < Self.parkingLimit { found.behind.append(item) }
      return nil
    }
    return head.plan
  }

  /// Returns which item of a group can be leased.
  func head(of group: StoreKey, _ operation: StoreOperation) async throws -> GroupHead {
    var plan = newPlan()
    let first = try await readFirst(of: group, &plan, operation)
    return GroupHead(first: first, plan: plan, leasable: plan.leasedItem(of: group) == nil ? first : nil)
  }

  private func bury(_ item: ReadyItem, _ record: ItemRecord, _ plan: QueuePlan, _ found: inout Head) async throws {
    guard found.others.count < Self.burialLimit else { return }
    var plan = plan
    do {
      try await bury(item.sequence, record, .tooManyDeliveries, &plan, .receive)
    } catch let error as StoreError where error.isValueUnreadable {
      // The value may be readable later, so the item is left as it is. It holds back only its group.
      return
    }
    if let group = item.group { found.takenGroups.insert(group) }
    found.others.append(plan)
    found.buries = true
  }

  /// Plans to park the items that are behind others of their groups, with one plan for each group, because parking an item
  /// makes other plans for its group stale.
  private func park(_ found: inout Head) async throws {
    let behind = Dictionary(grouping: found.behind) { $0.group ?? "" }
    let states = try await read(found.behind.map { layout.stateKey($0.sequence) }, .receive)
    for (group, items) in behind where !found.takenGroups.contains(group) {
      guard var plan = found.groups[group]?.plan else { continue }
      for item in items {
        let stateKey = layout.stateKey(item.sequence)
        guard let bytes = states[stateKey] ?? nil else {
          found.others.append(removal(ofLost: item))
          continue
        }
        plan.read([stateKey: bytes])
        if let record = plan.item(item.sequence), record.phase == .ready { plan.park(item.sequence, record) }
      }
      found.others.append(plan)
    }
  }

  private func removal(ofLost item: ReadyItem) -> QueuePlan {
    var plan = newPlan()
    plan.read([layout.stateKey(item.sequence): nil, item.entry.key: item.entry.value])
    plan.set(nil, forKey: item.entry.key)
    return plan
  }
}
