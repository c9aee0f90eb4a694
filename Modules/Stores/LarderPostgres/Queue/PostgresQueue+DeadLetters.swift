#if Postgres
import Foundation
public import Larder

/// Looking at the queue, and dead letters.
extension PostgresQueue {
  /// Returns the items that would be received first, without leasing them; see `DurableQueue`.
  public func peek(max: Int) async throws -> [StoreEntry<Element>] {
    try information.check(limit: max, for: .peek)
    return try await handle.running(.peek) {
      let statement = statements.peek(max, maximumDeliveries: configuration.deliveryLimit)
      return try await entries(of: handle.read(statement, for: .peek), during: .peek)
    }
  }

  /// Returns the number of items in each state, and the age of the oldest item; see `DurableQueue`.
  ///
  /// PostgreSQL counts the rows one by one, so it takes longer for a queue with more items. An item that waits for earlier
  /// items of its group counts as waiting.
  public func queueStatistics() async throws -> QueueStatistics {
    let rows = try await handle.running(.statistics) { try await handle.read(statements.statistics, for: .statistics) }
    func count(_ column: Int) -> Int { Int(rows.integer(0, column) ?? 0) }
    return QueueStatistics(
      counts: QueueCounts(waiting: count(0), delayed: count(1), leased: count(2), dead: count(3)),
      oldestAge: rows.integer(0, 4).map { .microseconds(max(0, $0)) })
  }

  /// Calls a closure for each item that a call of this object turns into a dead letter; see `DurableQueue`.
  public func observeDeadLetters(_ observer: @escaping @Sendable (DeadLetterEvent) -> Void) -> StoreObservation {
    deadLetterObservers.add(observer)
  }

  // MARK: Dead letters

  /// Returns dead letters in the order of arrival; see `DurableQueue`.
  public func deadLetters(limit: Int, after sequence: UInt128) async throws -> [DeadLetter<Element>] {
    try information.check(limit: limit, for: .deadLetters)
    return try await handle.running(.deadLetters) {
      let statement = statements.deadLetters(limit: limit, after: Int64(clamping: sequence))
      let rows = try await handle.read(statement, for: .deadLetters)
      return try await BulkWork.run(atMost: rows.rowCount) { [self] allowance in
        try (0..<rows.rowCount).map { row in
          try allowance.take(rows.withBytes(row, 5) { $0?.count ?? 0 })
          let key = rows.key(row, 1)
          let value = Result { () throws(StoreError) in
            try self.value(of: rows, row, 5, forKey: key, during: .deadLetters)
          }
          return DeadLetter(
            key: key, sequence: UInt128(clamping: rows.integer(row, 0) ?? 0), attempts: Int(rows.integer(row, 2) ?? 0),
            reason: DeadLetterReason(rawValue: UInt8(clamping: rows.integer(row, 3) ?? 0)),
            date: Date(microsecondsSince1970: rows.integer(row, 4) ?? 0), value: value)
        }
      }
    }
  }

  /// Moves the dead letters of several keys to the end of the queue; see `DurableQueue`.
  ///
  /// The call waits for all others that change the queue, and they wait for it.
  ///
  /// ```swift
  /// let letters = try await events.deadLetters(limit: 20, after: 0)
  /// try await events.requeue(letters.map(\.key))
  /// ```
  @discardableResult
  public func requeue(_ keys: [StoreKey]) async throws -> Int {
    try information.checkWritable(for: .requeue)
    try information.check(keys, for: .requeue)
    return try await handle.running(.requeue) {
      // An item that a statement has moved is in the queue for the next one.
      var seen: Set<StoreKey> = []
      let distinct = keys.filter { seen.insert($0).inserted }
      let parts = StoreTable.parts(ofSizes: distinct.map(\.count)).map { Array(distinct[$0]) }
      guard parts.count > 1 else {
        return try movedCount(try await requeue(statements.requeue(keys), .deadLetters(keys)))
      }
      let first = try recordedCodec.beginning(.exclusive, compares: false, during: .requeue)
      let count = try await handle.transaction(for: .requeue, first: first) { session, _ in
        var count = 0
        for part in parts {
          let list = requeuing(statements.requeue(part), .deadLetters(part))
          let results = try await session.run(list, for: .requeue, store: information.name)
          count += try movedCount(results[1])
        }
        session.afterCommit { [recordedCodec] in recordedCodec.noteCommit() }
        return TransactionEnd(result: count)
      }
      noteChange()
      return count
    }
  }

  /// Returns the number in the result of a requeue of keys.
  ///
  /// - Throws: ``StoreError`` with `conflict` if nothing was moved because an item in the queue has one of the keys.
  private func movedCount(_ rows: QueryResult) throws -> Int {
    guard rows.isNull(0, 1) else {
      throw StoreError(
        .conflict, during: .requeue, store: information.name, key: rows.key(0, 1),
        message: "the dead letter cannot be requeued, because an item in the queue has its key")
    }
    return Int(rows.integer(0, 0) ?? 0)
  }

  /// Moves all dead letters to the end of the queue in their order of arrival; see `DurableQueue`.
  ///
  /// They are moved a thousand at a time, each thousand while all other calls that change the queue wait.
  @discardableResult
  public func requeueDeadLetters() async throws -> Int {
    try information.checkWritable(for: .requeue)
    return try await handle.running(.requeue) {
      // Excludes items that become dead letters during this call.
      let found = try await handle.read(statements.lastDeadLetter, for: .requeue)
      guard let last = found.integer(0, 0) else { return 0 }
      var (count, first) = (0, Int64(0))
      while true {
        let rows = try await requeue(
          statements.requeue(after: first, upTo: last), .deadLetterPage(after: first, upTo: last))
        count += Int(rows.integer(0, 0) ?? 0)
        guard let next = rows.integer(0, 1) else { return count }
        first = next
      }
    }
  }

  private func requeue(_ statement: Statement, _ groups: QueueStatements.GroupSource) async throws -> QueryResult {
    let rows = try await write(requeuing(statement, groups), locking: .exclusive, for: .requeue)[1]
    noteChange()
    return rows
  }

  /// Returns the statements of a requeue, the second of which is the one that moves dead letters.
  private func requeuing(_ statement: Statement, _ groups: QueueStatements.GroupSource) -> [Statement] {
    let call = Int64.random(in: .min ... .max)
    let list = [statements.lockGroups(groups, call), statement] + statements.advance(call)
    return list + (configuration.capacity == nil ? [] : [statements.forgetRoom])
  }

  /// Permanently removes the dead letters of several keys; see `DurableQueue`.
  @discardableResult
  public func purgeDeadLetters(_ keys: [StoreKey]) async throws -> Int {
    try information.checkWritable(for: .purgeDeadLetters)
    try information.check(keys, for: .purgeDeadLetters)
    return try await purge(keys)
  }

  /// Permanently removes all dead letters; see `DurableQueue`.
  @discardableResult
  public func purgeDeadLetters() async throws -> Int {
    try information.checkWritable(for: .purgeDeadLetters)
    return try await purge(nil)
  }

  private func purge(_ keys: [StoreKey]?) async throws -> Int {
    try await handle.running(.purgeDeadLetters) {
      try await write([statements.purge(keys)], for: .purgeDeadLetters)[0].changedRowCount
    }
  }
}

/// Pausing the queue, for all programs that have it open.
extension PostgresQueue: PausableQueue {
  /// Pauses the queue; see `PausableQueue`.
  ///
  /// ```swift
  /// try await events.pause()  // for all hosts
  /// try await migrate(database)
  /// try await events.resume()
  /// ```
  public func pause() async throws {
    try information.checkWritable(for: .pause)
    try await handle.running(.pause) {
      _ = try await write([statements.pause], for: .pause)
    }
  }

  /// Resumes the queue; see `PausableQueue`.
  ///
  /// Consumers of other programs notice it as they notice an item that this one enqueues.
  public func resume() async throws {
    try information.checkWritable(for: .resume)
    try await handle.running(.resume) {
      _ = try await write([statements.resume], for: .resume)
      noteChange()
    }
  }

  /// Returns whether the queue is paused; see `PausableQueue`.
  public func isPaused() async throws -> Bool {
    try await handle.running(.isPaused) {
      try await handle.read(statements.pauseState, for: .isPaused).integer(0, 0) == 1
    }
  }
}
#endif
