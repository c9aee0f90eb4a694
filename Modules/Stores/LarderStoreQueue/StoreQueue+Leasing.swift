import Larder

/// Leasing the items at the head of the queue.
extension StoreQueue {
  /// A leased item.
  struct LeasedItem: Sendable {
    let item: ItemRecord
    let receipt: DeliveryReceipt
  }

  /// The plans of a call for the items at the head of the queue.
  private struct Head {
    var leases: [(plan: QueuePlan, item: LeasedItem)] = []
    /// The plans for items that cannot be leased.
    var others: [QueuePlan] = []
    /// The number of items that cannot be leased.
    var otherCount = 0
    /// The groups whose items are parked, each with the position of its plan and the item that can be leased.
    var parked: [StoreKey: (plan: Int, leasable: UInt128?)] = [:]

    mutating func append(_ other: QueuePlan) {
      others.append(other)
      otherCount += 1
    }
  }

  /// Leases the first items that are due.
  ///
  /// - Parameters:
  ///   - wanted: The maximum number of items.
  ///   - length: The duration of the leases, in microseconds.
  ///   - mayBeSuspect: Whether an item that may have crashed a process is leased. It is then leased alone.
  ///   - skipped: The sequence numbers of items that are passed over.
  func lease(
    _ wanted: Int, _ length: Int64, mayBeSuspect: Bool, skipping skipped: Set<UInt128>
  ) async throws -> [LeasedItem] {
    let epoch = UInt64.random(in: .min ... .max)
    for _ in 0..<Self.maximumLooks {
      var (found, leased) = (Head(), [LeasedItem]())
      defer {
        let sequences = found.leases.map(\.item.receipt.sequence)
        reserved.withLock { $0.subtract(sequences) }
        // Another consumer may have found no item because these were reserved.
        if sequences.count > leased.count { waits.signal() }
      }
      try await look(for: wanted, length, epoch, mayBeSuspect: mayBeSuspect, skipping: skipped, &found)
      if found.leases.isEmpty, found.others.isEmpty { return [] }
      // The leases first, because parking an item of a group would make the lease of another one stale.
      let leaseCount = found.leases.count
      let performed = try await perform(found.leases.map(\.plan) + found.others, .receive) { index, performedCount in
        index >= leaseCount || performedCount < wanted
      }
      leased = performed.filter { $0 < leaseCount }.map { found.leases[$0].item }
      if !leased.isEmpty { return leased }
      // Others have taken the items, or none of them could be leased.
    }
    throw information.contentionError(for: .receive)
  }

  private static var maximumLooks: Int { 10_000 }

  /// Plans leases of the first items that are ready.
  ///
  /// - Parameter found: The plans. Their items are reserved, also if the method throws.
  private func look(
    for wanted: Int, _ length: Int64, _ epoch: UInt64, mayBeSuspect: Bool, skipping skipped: Set<UInt128>,
    _ found: inout Head
  ) async throws {
    // If other processes lease the first items at the same time, the next ones may be left.
    let enough = information.sharing == .exclusive ? wanted : wanted + 4
    var range = layout.ready
    var groups: Set<StoreKey> = []
    while found.leases.count < enough, found.otherCount < 512 {
      let limit = min(max(enough - found.leases.count, found.otherCount) + reserved.withLock { $0.count }, 1024)
      let keys = try await callingBase(.receive) { [range] in
        try await base.keys(in: range, limit: limit, order: .ascending)
      }
      guard let last = keys.last else { return }
      range = range.after(last)
      let taken = reserved.withLock { $0 }.union(skipped)
      let entries = keys.compactMap { key in
        layout.sequence(of: key).flatMap { taken.contains($0) ? nil : (key: key, sequence: $0) }
      }
      let stored = try await read(entries.map { layout.stateKey($0.sequence) }, .receive)
      for entry in entries where found.leases.count < enough {
        let stateKey = layout.stateKey(entry.sequence)
        guard let bytes = stored[stateKey] ?? nil else {
          // Another consumer has removed the item, or its state is lost.
          found.append(removal(ofLost: entry.key, stateKey))
          continue
        }
        // A damaged state is left as it is.
        guard let item = ItemRecord(bytes), item.phase == .ready else { continue }
        if item.mustBeReceivedAlone, !mayBeSuspect || !found.leases.isEmpty { return }
        var plan = newPlan()
        plan.read([stateKey: bytes])
        if rules.isExhausted(item) {
          do {
            try await bury(entry.sequence, item, .tooManyDeliveries, &plan, .receive)
          } catch let error as StoreError where error.isValueUnreadable {
            // The value may be readable later, so the item is left as it is. It holds back only its group.
            continue
          }
          found.append(plan)
          continue
        }
        if let group = item.group {
          // The items behind one that this call leases are parked by a later call.
          guard !groups.contains(group) else { continue }
          if let parked = found.parked[group], parked.leasable != entry.sequence {
            // One plan parks all of them, because parking an item makes other plans for its group stale.
            found.others[parked.plan].read([stateKey: bytes])
            found.others[parked.plan].park(entry.sequence, item)
            found.otherCount += 1
            continue
          }
          let first = try await readFirst(of: group, &plan, .receive)
          let leasable = plan.leasedItem(of: group) == nil ? first : nil
          guard leasable == entry.sequence else {
            plan.park(entry.sequence, item)
            found.parked[group] = (found.others.count, leasable)
            found.append(plan)
            continue
          }
        }
        guard reserved.withLock({ $0.insert(entry.sequence).inserted }) else { continue }
        if let group = item.group { groups.insert(group) }
        let receipt = plan.lease(entry.sequence, item, length: length, epoch: epoch)
        found.leases.append((plan, LeasedItem(item: item, receipt: receipt)))
        if item.mustBeReceivedAlone { return }
      }
      if keys.count < limit { return }
    }
  }

  private func removal(ofLost readyKey: StoreKey, _ stateKey: StoreKey) -> QueuePlan {
    var plan = newPlan()
    plan.read([stateKey: nil, readyKey: []])
    plan.set(nil, forKey: readyKey)
    return plan
  }
}
