/// Leasing items, and ending or extending their leases.
extension QueueLedger {
  /// Whether an item has been delivered as often as it may be.
  func isExhausted(_ item: QueueItem) -> Bool {
    rules.isExhausted(item)
  }

  /// Whether an item may kill its decoder: it was delivered more than once, and was leased when the queue was opened.
  func isSuspect(_ item: QueueItem) -> Bool {
    item.attempts >= 2 && suspects.contains(item.sequence)
  }

  /// The first items to be handed out of those that wait.
  ///
  /// Where deliveries are without end, one that has probably killed its decoder several times comes behind all others.
  ///
  /// - Parameters:
  ///   - limit: The most to give.
  ///   - isWanted: Whether an item counts.
  mutating func firstToLease(_ limit: Int, where isWanted: (QueueItem) -> Bool = { _ in true }) -> [QueueItem] {
    guard rules.maximumDeliveries == nil, !suspects.isEmpty else { return items.firstWaiting(limit, where: isWanted) }
    let suspects = suspects
    let found = items.firstWaiting(limit) { item in
      isWanted(item) && !(item.attempts >= QueueLedger.decodingLimit && suspects.contains(item.sequence))
    }
    return found.isEmpty ? items.firstWaiting(limit, where: isWanted) : found
  }

  /// Hands an item out.
  ///
  /// - Parameters:
  ///   - item: One that waits.
  ///   - length: How long its lease is, in microseconds.
  ///   - present: From when on, in microseconds; defaults to ``now``.
  ///   - epoch: The number of this receiving.
  ///   - records: Gets what is to be written.
  mutating func lease(
    _ item: QueueItem, length: Int64, from present: Int64? = nil, epoch: UInt64, into records: inout [QueueRecord]
  ) -> DeliveryReceipt {
    let attempts = item.attempts == .max ? item.attempts : item.attempts + 1
    let timer = ItemTimer(deadline: (present ?? now).addingSaturating(length), length: length, epoch: epoch)
    change(.state(sequence: item.sequence, attempts: attempts, .leased(timer)), &records)
    tallies.delivered += 1
    if attempts > 1 { tallies.redelivered += 1 }
    return DeliveryReceipt(sequence: item.sequence, attempt: attempts, epoch: epoch)
  }

  /// Makes a dead letter of an item.
  mutating func kill(_ item: QueueItem, _ reason: DeathReason, into records: inout [QueueRecord]) {
    change(
      .state(sequence: item.sequence, attempts: item.attempts, .dead(Death(reason: reason, time: now))), &records)
    tallies.deadLettered += 1
    newDeaths.append(
      QueueDeath(key: item.key, sequence: item.sequence, attempts: Int(item.attempts), reason: reason))
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
      change(.remove(item.sequence...item.sequence), &records)
    }
    tallies.acknowledged += 1
  }

  /// Lets an item wait again in its old place, or makes a dead letter of it where it was delivered often enough.
  ///
  /// - Parameters:
  ///   - receipt: That of its lease.
  ///   - delay: How long it is kept back, in microseconds.
  ///   - counts: Whether the delivery counts; where not, the item does not die.
  ///   - records: Gets what is to be written.
  mutating func release(
    _ receipt: DeliveryReceipt, delay: Int64, counts: Bool = true, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    tallies.released += 1
    if counts, isExhausted(item) {
      kill(item, .tooManyDeliveries, into: &records)
    } else {
      wait(item, delay: delay, attempts: counts ? item.attempts : item.attempts - min(item.attempts, 1), &records)
    }
  }

  private mutating func wait(_ item: QueueItem, delay: Int64, attempts: UInt32, _ records: inout [QueueRecord]) {
    suspects.remove(item.sequence)
    let standing: Standing =
      delay > 0 ? .delayed(ItemTimer(deadline: now.addingSaturating(delay), length: delay)) : .waiting
    change(.state(sequence: item.sequence, attempts: attempts, standing), &records)
  }

  /// Ends the lease of an item that could not be read or decoded.
  ///
  /// - Parameters:
  ///   - receipt: That of its lease.
  ///   - failure: What was wrong with it.
  ///   - delay: How long it is kept back, in microseconds, where it lives on.
  ///   - records: Gets what is to be written.
  mutating func reject(
    _ receipt: DeliveryReceipt, _ failure: DeliveryFailure, delay: Int64, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    switch failure {
    case .unreadable:
      wait(item, delay: delay, attempts: item.attempts, &records)
    case .damaged:
      kill(item, .undecodable, into: &records)
    case .undecodable:
      // Deliveries without end do not make an item decodable.
      if item.attempts >= rules.maximumDeliveries ?? QueueLedger.decodingLimit {
        kill(item, .undecodable, into: &records)
      } else {
        wait(item, delay: delay, attempts: item.attempts, &records)
      }
    }
  }

  /// How often an item is delivered in vain that cannot be decoded, where there is no limit to deliveries.
  private static let decodingLimit: UInt32 = 5

  /// Lets a lease end so much after a time.
  mutating func extend(
    _ receipt: DeliveryReceipt, length: Int64, from present: Int64? = nil, into records: inout [QueueRecord]
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    let deadline = (present ?? now).addingSaturating(length)
    let timer = ItemTimer(deadline: deadline, length: length, epoch: receipt.epoch)
    change(.state(sequence: item.sequence, attempts: item.attempts, .leased(timer)), &records)
  }

  /// Ends every lease.
  mutating func voidLeases(into records: inout [QueueRecord]) {
    for sequence in timers.keys.sorted() {
      guard let item = items[sequence], item.phase == .leased else { continue }
      change(.state(sequence: sequence, attempts: item.attempts, .waiting), &records)
    }
  }
}

/// The reason why an item that was leased cannot be handed out.
enum DeliveryFailure: Sendable, Hashable {
  /// The disk does not give it.
  case unreadable
  /// Its bytes are not those that were written.
  case damaged
  /// The codec refuses it.
  case undecodable
}
