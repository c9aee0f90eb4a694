import Larder

/// Leasing items, and ending or extending their leases.
extension QueueLedger {
  /// Returns whether an item may crash its decoder, because it was delivered more than once and was leased when the
  /// queue was opened.
  func isSuspect(_ item: QueueItem) -> Bool {
    item.attempts >= 2 && suspects.contains(item.sequence)
  }

  /// Returns the first waiting items to lease.
  ///
  /// If deliveries are unlimited, an item that has probably crashed its decoder several times comes after all others. So
  /// does a deferred item.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of items.
  ///   - deferred: The sequence numbers of the deferred items. Defaults to an empty set.
  ///   - mayBeDeferred: A Boolean value that indicates whether deferred items are returned if there are no others.
  ///     Defaults to `true`.
  ///   - isWanted: A closure that returns whether to include an item.
  mutating func firstToLease(
    _ limit: Int, deferring deferred: Set<UInt64> = [], mayBeDeferred: Bool = true,
    where isWanted: (QueueItem) -> Bool = { _ in true }
  ) -> [QueueItem] {
    let suspects = rules.maximumDeliveries == nil ? suspects : []
    guard !suspects.isEmpty || !deferred.isEmpty else { return items.firstWaiting(limit, where: isWanted) }
    let found = items.firstWaiting(limit) { item in
      isWanted(item) && !deferred.contains(item.sequence)
        && !(item.attempts >= FailedDelivery.decodingLimit && suspects.contains(item.sequence))
    }
    guard found.isEmpty else { return found }
    return items.firstWaiting(limit) { isWanted($0) && (mayBeDeferred || !deferred.contains($0.sequence)) }
  }

  /// Leases an item.
  ///
  /// - Parameters:
  ///   - item: A waiting item.
  ///   - length: The duration of the lease, in microseconds.
  ///   - present: The start of the lease, in microseconds. Defaults to ``now``.
  ///   - epoch: The random number of the call that receives it.
  ///   - frames: The frames to write, to which this method appends.
  mutating func lease(
    _ item: QueueItem, length: Int64, from present: Int64? = nil, epoch: UInt64, into frames: inout FrameBuffer
  ) -> DeliveryReceipt {
    let attempts = item.attempts == .max ? item.attempts : item.attempts + 1
    let timer = ItemTimer(deadline: (present ?? now).addingSaturating(length), length: length, epoch: epoch)
    change(.state(sequence: item.sequence, attempts: attempts, .leased(timer)), &frames)
    tallies.delivered += 1
    if attempts > 1 { tallies.redelivered += 1 }
    return DeliveryReceipt(sequence: UInt128(item.sequence), attempt: attempts, epoch: epoch)
  }

  /// Turns an item into a dead letter.
  mutating func moveToDeadLetters(_ item: QueueItem, _ reason: DeadLetterReason, into frames: inout FrameBuffer) {
    change(
      .state(sequence: item.sequence, attempts: item.attempts, .dead(DeadLetterCause(reason: reason, time: now))),
      &frames)
    // Now, because the dead letter can be purged, requeued or dropped while its id is remembered.
    if item.hasCallersKey, rules.duplicateWindow > 0 {
      let deadline = now.addingSaturating(rules.duplicateWindow)
      change(.remember(key: item.key, sequence: item.sequence, deadline: deadline), &frames)
    }
    tallies.deadLettered += 1
    newDeadLetters.append(
      DeadLetterEvent(key: item.key, sequence: UInt128(item.sequence), attempts: Int(item.attempts), reason: reason))
  }

  /// Returns the item of a receipt.
  ///
  /// - Throws: ``QueueRefusal/stale`` if the receipt does not belong to the current lease of the item.
  func leasedItem(of receipt: DeliveryReceipt) throws(QueueRefusal) -> QueueItem {
    guard let sequence = UInt64(exactly: receipt.sequence), let item = items[sequence], item.phase == .leased,
      item.attempts == receipt.attempt,
      timers[item.sequence]?.epoch == receipt.epoch
    else { throw .stale }
    return item
  }

  /// Acknowledges a delivery and permanently removes its item.
  mutating func acknowledge(
    _ receipt: DeliveryReceipt, into frames: inout FrameBuffer
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    if item.hasCallersKey, rules.duplicateWindow > 0 {
      let deadline = now.addingSaturating(rules.duplicateWindow)
      change(.acknowledge(sequence: item.sequence, key: item.key, deadline: deadline), &frames)
    } else {
      change(.remove(item.sequence...item.sequence), &frames)
    }
    tallies.acknowledged += 1
  }

  /// Returns an item to its old position, or turns it into a dead letter after its last delivery.
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the lease.
  ///   - delay: The delay until the item can be received again, in microseconds.
  ///   - counts: A Boolean value that indicates whether the delivery counts. Defaults to `true`. If it does not, the
  ///     item never becomes a dead letter.
  ///   - frames: The frames to write, to which this method appends.
  mutating func release(
    _ receipt: DeliveryReceipt, delay: Int64, counts: Bool = true, into frames: inout FrameBuffer
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    tallies.released += 1
    if counts, rules.isExhausted(item) {
      moveToDeadLetters(item, .tooManyDeliveries, into: &frames)
    } else {
      // An item that was given back unprocessed can still crash its next consumer.
      if counts { suspects.remove(item.sequence) }
      wait(item, delay: delay, attempts: counts ? item.attempts : item.attempts - min(item.attempts, 1), &frames)
    }
  }

  private mutating func wait(_ item: QueueItem, delay: Int64, attempts: UInt32, _ frames: inout FrameBuffer) {
    let standing: Standing =
      delay > 0 ? .delayed(ItemTimer(deadline: now.addingSaturating(delay), length: delay)) : .waiting
    change(.state(sequence: item.sequence, attempts: attempts, standing), &frames)
  }

  /// Ends the lease of an item that could not be read or decoded.
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the lease.
  ///   - failure: The reason of the failure.
  ///   - delay: The delay until the item can be received again, in microseconds, if it does not become a dead letter.
  ///   - frames: The frames to write, to which this method appends.
  mutating func reject(
    _ receipt: DeliveryReceipt, _ failure: FailedDelivery.Reason, delay: Int64, into frames: inout FrameBuffer
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    let isLast = item.attempts >= rules.maximumDeliveries ?? UInt32(FailedDelivery.decodingLimit)
    if failure == .damaged || failure == .undecodable && isLast {
      moveToDeadLetters(item, .undecodable, into: &frames)
    } else {
      suspects.remove(item.sequence)
      let attempts = failure == .refused ? item.attempts - min(item.attempts, 1) : item.attempts
      wait(item, delay: delay, attempts: attempts, &frames)
    }
  }

  /// Resets a lease so that it expires the given duration after the given time.
  mutating func extend(
    _ receipt: DeliveryReceipt, length: Int64, from present: Int64? = nil, into frames: inout FrameBuffer
  ) throws(QueueRefusal) {
    let item = try leasedItem(of: receipt)
    let deadline = (present ?? now).addingSaturating(length)
    let timer = ItemTimer(deadline: deadline, length: length, epoch: receipt.epoch)
    change(.state(sequence: item.sequence, attempts: item.attempts, .leased(timer)), &frames)
  }

  /// Ends every lease.
  ///
  /// - Returns: The items whose new states must be written.
  mutating func voidLeases() -> [UInt64] {
    let leased = timers.keys.filter { items[$0]?.phase == .leased }.sorted()
    for sequence in leased { apply(.state(sequence: sequence, attempts: nil, .waiting), from: .decision) }
    return leased
  }
}

/// Requeuing and purging dead letters.
extension QueueLedger {
  /// Moves the latest dead letter of a key to the end of the queue, as if it were enqueued now.
  ///
  /// - Returns: A Boolean value that indicates whether there was a dead letter.
  mutating func requeue(_ key: StoreKey, into frames: inout FrameBuffer) throws(QueueRefusal) -> Bool {
    guard let sequence = deadSequences[key]?.last, deadItems[sequence] != nil else { return false }
    guard keys[key] == nil else { throw .conflict(key) }
    guard nextSequence <= QueueRecord.greatestSequence else { throw .exhausted }
    // Dead letters already count against the capacity.
    change(.requeue(sequence: sequence, newSequence: nextSequence, arrival: now), &frames)
    return true
  }

  /// Moves dead letters to the end of the queue in order of arrival, except those whose key a live item has.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of dead letters to look at.
  ///   - sequences: The range of sequence numbers.
  ///   - frames: The frames to write, to which this method appends.
  /// - Returns: The number of dead letters moved, and the last sequence number looked at; `nil` if there are no more.
  mutating func requeueAll(
    _ limit: Int, in sequences: ClosedRange<UInt64>, into frames: inout FrameBuffer
  ) throws(QueueRefusal) -> (count: Int, last: UInt64?) {
    let letters = deadLetters(limit, after: sequences.lowerBound - 1)
    var count = 0
    for letter in letters where letter.item.sequence <= sequences.upperBound {
      guard keys[letter.item.key] == nil else { continue }
      guard nextSequence <= QueueRecord.greatestSequence else { throw .exhausted }
      change(.requeue(sequence: letter.item.sequence, newSequence: nextSequence, arrival: now), &frames)
      count += 1
    }
    let last = letters.last?.item.sequence
    return (count, last.flatMap { $0 < sequences.upperBound ? $0 : nil })
  }

  /// Removes the dead letters of a key.
  ///
  /// - Returns: The number of dead letters removed.
  mutating func purgeDeadLetters(_ key: StoreKey, into frames: inout FrameBuffer) -> Int {
    let sequences = deadSequences[key] ?? []
    for sequence in sequences { change(.remove(sequence...sequence), &frames) }
    return sequences.count
  }

  /// Removes all dead letters.
  ///
  /// - Returns: The number of dead letters removed.
  mutating func purgeDeadLetters(into frames: inout FrameBuffer) -> Int {
    let sequences = deadItems.all.map(\.sequence)
    for sequence in sequences { change(.remove(sequence...sequence), &frames) }
    return sequences.count
  }
}
