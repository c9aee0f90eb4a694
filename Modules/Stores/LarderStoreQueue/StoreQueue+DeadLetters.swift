import Foundation
public import Larder

/// Looking at the queue, and dead letters.
extension StoreQueue {
  /// The number of entries that are read at a time.
  private static var pageSize: Int { 256 }

  /// Returns the items that would be received first, without leasing them; see `DurableQueue`.
  public func peek(max: Int) async throws -> [StoreEntry<Element>] {
    try information.check(limit: max, for: .peek)
    return try await running(.peek) {
      while true {
        var (settledCount, hasMore) = (0, information.access == .readWrite)
        while hasMore, settledCount < max {
          let settled = try await settleTimers(.peek)
          settledCount += settled.count
          hasMore = settled.hasMore
        }
        let entries = try await deliverable(max)
        if entries.count >= max || !hasMore { return entries }
      }
    }
  }

  /// Returns the first items that are ready and that their groups allow to be delivered.
  private func deliverable(_ max: Int) async throws -> [StoreEntry<Element>] {
    var entries: [StoreEntry<Element>] = []
    var groups: [StoreKey: GroupHead] = [:]
    var range: KeyRange? = layout.ready
    while entries.count < max, let part = range {
      let found = try await callingBase(.peek) {
        try await base.entries(in: part, limit: Self.lookLimit, order: .ascending)
      }
      let last = found.count < Self.lookLimit ? nil : found.last
      range = try last.map { try part.rest(behind: $0.key, of: information.name, during: .peek) }
      var sequences: [UInt128] = []
      for item in found.compactMap({ ReadyItem($0, layout) }) {
        if let group = item.group {
          if groups[group] == nil { groups[group] = try await head(of: group, .peek) }
          guard groups[group]?.leasable == item.sequence else { continue }
        }
        sequences.append(item.sequence)
      }
      let states = try await read(sequences.map(layout.stateKey), .peek)
      for sequence in sequences where entries.count < max {
        guard let item = (states[layout.stateKey(sequence)] ?? nil).flatMap({ ItemRecord($0) }),
          item.phase == .ready, !rules.isExhausted(item)
        else { continue }
        let stored = try await read([layout.itemKey(item.key)], .peek)
        guard let bytes = stored[layout.itemKey(item.key)] ?? nil else { continue }
        entries.append(StoreEntry(key: item.key, value: try decode(bytes, item.key, during: .peek)))
      }
    }
    return entries
  }

  /// Returns the number of items in each state, and the age of the oldest item; see `DurableQueue`.
  ///
  /// The numbers are counted from the entries, so it takes longer for a queue with more items. They are of moments close
  /// to each other. An item that waits for earlier items of its group counts as waiting.
  public func queueStatistics() async throws -> QueueStatistics {
    try await running(.statistics) {
      let now = microseconds
      var counts = QueueCounts()
      for try await key in base.keys(in: layout.pending(layout.timers, at: now)) {
        guard case .item(_, let isLeased) = layout.subject(ofTimer: key) else { continue }
        if isLeased { counts.leased += 1 } else { counts.delayed += 1 }
      }
      let live = try await items.count(in: .all)
      counts.waiting = Swift.max(0, live - counts.delayed - counts.leased)
      counts.dead = try await callingBase(.statistics) { try await base.count(in: layout.dead) }
      let oldest = try await callingBase(.statistics) {
        try await base.entries(in: layout.states, limit: 1, order: .ascending)
      }.first.flatMap { ItemRecord($0.value) }
      let age = oldest.map { Duration.microseconds(Swift.max(0, now.addingSaturating(-$0.arrival))) }
      return QueueStatistics(counts: counts, oldestAge: age)
    }
  }

  /// Calls a closure for each item that a call of this object turns into a dead letter; see `DurableQueue`.
  ///
  /// ```swift
  /// let observation = outbox.observeDeadLetters { letter in
  ///   logger.error("\(letter.key) failed after \(letter.attempts) attempts")
  /// }
  /// ```
  public func observeDeadLetters(_ observer: @escaping @Sendable (DeadLetterEvent) -> Void) -> StoreObservation {
    deadLetterObservers.add(observer)
  }

  // MARK: Dead letters

  /// Returns dead letters in the order of arrival; see `DurableQueue`.
  ///
  /// ```swift
  /// for letter in try await outbox.deadLetters(limit: 20, after: 0) {
  ///   print(letter.key, letter.attempts, letter.reason)
  /// }
  /// ```
  public func deadLetters(limit: Int, after sequence: UInt128) async throws -> [DeadLetter<Element>] {
    try information.check(limit: limit, for: .deadLetters)
    return try await running(.deadLetters) {
      let stored = try await callingBase(.deadLetters) {
        try await base.entries(in: layout.dead.after(layout.deadKey(sequence)), limit: limit, order: .ascending)
      }
      return try await BulkWork.run(atMost: stored.count) { [self] allowance in
        try stored.compactMap { entry in
          try allowance.take(entry.value.count)
          return layout.sequence(of: entry.key).map { deadLetter($0, entry.value) }
        }
      }
    }
  }

  private func deadLetter(_ sequence: UInt128, _ bytes: [UInt8]) -> DeadLetter<Element> {
    guard let record = DeadRecord(bytes) else {
      let key = sequence.generatedKey
      return DeadLetter(
        key: key, sequence: sequence, attempts: 0, reason: .undecodable, date: Date(microsecondsSince1970: 0),
        value: .failure(damagedItem(key, .deadLetters)))
    }
    let value = Result { () throws(StoreError) in
      try decode(record.payload, record.item.key, during: .deadLetters)
    }
    return DeadLetter(
      key: record.item.key, sequence: sequence, attempts: Int(record.item.attempts), reason: record.reason,
      date: Date(microsecondsSince1970: record.time), value: value)
  }

  /// Moves the dead letters of several keys to the end of the queue; see `DurableQueue`.
  ///
  /// ```swift
  /// try await outbox.requeue(["reminder:17"])
  /// ```
  @discardableResult
  public func requeue(_ keys: [StoreKey]) async throws -> Int {
    try information.checkWritable(for: .requeue)
    try information.check(keys, for: .requeue)
    return try await running(.requeue) {
      try await committing(.requeue) {
        var plan = newPlan()
        var count = 0
        var seen: Set<StoreKey> = []
        for key in keys where seen.insert(key).inserted {
          let latest = try await callingBase(.requeue) {
            try await base.keys(in: layout.deadIndex(key), limit: 1, order: .descending)
          }.first.flatMap { layout.sequence(of: $0) }
          guard let latest else { continue }
          plan.read(try await read([layout.deadKey(latest), layout.itemKey(key)], .requeue))
          guard plan.requeue(latest, as: nextSequence()) else {
            throw StoreError(
              .conflict, during: .requeue, store: information.name, key: key,
              message: "the dead letter cannot be requeued, because an item in the queue has its key")
          }
          count += 1
        }
        return (plan, count)
      }
    }
  }

  /// Moves all dead letters to the end of the queue in their order of arrival; see `DurableQueue`.
  @discardableResult
  public func requeueDeadLetters() async throws -> Int {
    try information.checkWritable(for: .requeue)
    return try await running(.requeue) {
      // Excludes items that become dead letters during this call. The last number can be later than the clock.
      guard let last = try await advance(pastLastOf: layout.dead, .requeue) else { return 0 }
      return try await changeDeadLetters(upTo: last, .requeue) { [self] sequence, plan in
        guard let record = plan.value(forKey: layout.deadKey(sequence)).flatMap({ DeadRecord($0) }) else {
          return false
        }
        plan.read(try await read([layout.itemKey(record.item.key)], .requeue))
        return plan.requeue(sequence, as: nextSequence())
      }
    }
  }

  /// Permanently removes the dead letters of several keys; see `DurableQueue`.
  @discardableResult
  public func purgeDeadLetters(_ keys: [StoreKey]) async throws -> Int {
    try information.checkWritable(for: .purgeDeadLetters)
    try information.check(keys, for: .purgeDeadLetters)
    return try await running(.purgeDeadLetters) {
      try await committing(.purgeDeadLetters) {
        var plan = newPlan()
        var count = 0
        for key in Set(keys) {
          let index = try await callingBase(.purgeDeadLetters) {
            try await base.keys(in: layout.deadIndex(key), limit: .max, order: .ascending)
          }
          let sequences = index.compactMap { layout.sequence(of: $0) }
          plan.read(try await read(sequences.map(layout.deadKey), .purgeDeadLetters))
          for sequence in sequences where plan.purge(sequence) { count += 1 }
        }
        return (plan, count)
      }
    }
  }

  /// Permanently removes all dead letters; see `DurableQueue`.
  @discardableResult
  public func purgeDeadLetters() async throws -> Int {
    try information.checkWritable(for: .purgeDeadLetters)
    return try await running(.purgeDeadLetters) {
      try await changeDeadLetters(upTo: .max, .purgeDeadLetters) { sequence, plan in plan.purge(sequence) }
    }
  }

  /// Changes dead letters, some at a time.
  ///
  /// - Parameters:
  ///   - last: The last sequence number.
  ///   - operation: The operation, for errors.
  ///   - change: A closure that adds the change of a dead letter to a plan, and returns whether it is changed.
  /// - Returns: The number of changed dead letters.
  private func changeDeadLetters(
    upTo last: UInt128, _ operation: StoreOperation,
    _ change: (UInt128, inout QueuePlan) async throws -> Bool
  ) async throws -> Int {
    var count = 0
    var range: KeyRange? = layout.dead
    while let part = range {
      let found = try await callingBase(operation) {
        try await base.entries(in: part, limit: Self.pageSize, order: .ascending)
      }
      let end = found.count < Self.pageSize ? nil : found.last
      range = try end.map { try part.rest(behind: $0.key, of: information.name, during: operation) }
      var plans: [QueuePlan] = []
      for entry in found {
        guard let sequence = layout.sequence(of: entry.key), sequence <= last else { continue }
        var plan = newPlan()
        plan.read([entry.key: entry.value])
        if try await change(sequence, &plan) { plans.append(plan) }
      }
      count += try await perform(plans, operation).count
    }
    return count
  }
}
