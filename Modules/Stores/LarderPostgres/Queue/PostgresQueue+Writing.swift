#if Postgres
public import Larder

/// The queue as a store.
extension PostgresQueue {
  /// Applies several changes atomically; see `DataStore`.
  ///
  /// Setting an existing key replaces its item without changing the item's position. Setting a new key enqueues an item,
  /// even if its id is remembered; if that exceeds ``PostgresQueueConfiguration/capacity``, the call throws `full` and
  /// changes nothing. Removing a key withdraws its item. The call waits for all others that change the queue, and they wait
  /// for it. It takes one round trip, or three with a capacity.
  public func apply(_ changes: ChangeBatch<Element>) async throws {
    try await handle.running(.apply) {
      try information.check(changes)
      guard !changes.isEmpty else { return }
      let format = coder.codecRecord.format
      let encoded = try await BulkWork.encode(changes) { [coder] value, key in
        try coder.bytes(of: value, forKey: key, during: .apply)
      }
      let list = statements(for: encoded)
      if configuration.capacity == nil {
        _ = try await write(list, locking: .exclusive, comparesCodec: true, encodedIn: format, for: .apply)
      } else {
        let first = try recordedCodec.beginning(.exclusive, encodedIn: format, during: .apply)
        try await recordedCodec.comparing(for: .apply) {
          try await handle.transaction(for: .apply, first: first) { session, _ in
            try await run(list, in: session, for: .apply)
            session.afterCommit { [recordedCodec] in recordedCodec.noteCommit() }
            return TransactionEnd(result: ())
          }
        }
      }
      noteChange()
    }
  }

  /// Reads, modifies and writes the items of several keys atomically; see `DataStore`.
  ///
  /// An item that the body does not assign, or that stays the same, keeps its lease. New items beyond ``PostgresQueueConfiguration/capacity`` throw
  /// `full`, with nothing changed. The call waits for all others that change the queue, and they wait for it. The body may
  /// run more than once, because a transaction that meets a conflict is repeated. The call takes two round trips, or three
  /// with a capacity.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Element, Result>
  ) async throws -> Result {
    try await handle.running(.update) {
      try information.check(updateOf: keys)
      let format = coder.codecRecord.format
      let first = try recordedCodec.beginning(.exclusive, during: .update) + [statements.payloads(forKeys: keys)]
      let (result, isChanged) = try await recordedCodec.comparing(for: .update) {
        try await handle.transaction(for: .update, first: first) { session, results in
          let rows = results[results.count - 1]
          let indices = rows.rowsByKey
          let stored = keys.map { key in indices[key].map { (rows.bytes($0, 1) ?? [])[...] } }
          var slots = UpdateSlots(stored: try await values(of: rows, forKeys: keys, during: .update))
          let decision = body(&slots)
          let changes =
            decision.isCommit ? try coder.changes(in: slots, of: keys, stored: stored) : []
          try coder.codecRecord.checkUnchanged(since: format, during: .update, store: information.name)
          session.afterCommit { [recordedCodec] in recordedCodec.noteCommit() }
          var list = statements(
            for: changes.map { key, bytes in bytes.map { .set(key, Array($0)) } ?? .remove(key) })
          if configuration.capacity != nil, !changes.isEmpty {
            try await run(list, in: session, for: .update)
            list = []
          }
          return TransactionEnd(
            result: (decision.result, !changes.isEmpty), statements: list, commits: !changes.isEmpty)
        }
      }
      if isChanged { noteChange() }
      return result
    }
  }

  /// Runs the statements of changes in a transaction, and throws `full` if they add items beyond the capacity.
  private func run(
    _ list: [Statement], in session: TransactionSession, for operation: StoreOperation
  ) async throws {
    let counting = [statements.lockRoom, statements.itemCount]
    let results = try await session.run(
      counting + list + [statements.itemCount], for: operation, store: information.name)
    let (before, after) = (results[1].integer(0, 0) ?? 0, results[results.count - 1].integer(0, 0) ?? 0)
    let capacity = configuration.capacity ?? .max
    guard after > before, after > capacity else { return }
    throw StoreError(
      .full, during: operation, store: information.name,
      message: "the queue has no room for \(after - before) more items; its capacity is \(capacity)", isRetryable: true)
  }

  /// Returns the statements that make changes in order, if the table is locked.
  private func statements(for changes: [BatchChange<[UInt8]>]) -> [Statement] {
    let call = Int64.random(in: .min ... .max)
    let window = configuration.policy.duplicateWindow.wholeMicroseconds
    var list: [Statement] = []
    var run = Run()
    var (hasSet, hasRemoved) = (false, false)
    func end(_ run: inout Run) {
      if !run.set.isEmpty {
        hasSet = true
        let payloads = run.set.map { (run.payloads[$0] ?? [])[...] }
        // A message to the server is limited to 1 GiB.
        list += StoreTable.parts(ofSizes: zip(run.set, payloads).map { $0.count + $1.count }).map { part in
          statements.set(Array(run.set[part]), to: Array(payloads[part]))
        }
      }
      if !run.removed.isEmpty {
        hasRemoved = true
        list += [statements.lockGroups(.keys(run.removed), call), statements.remove(run.removed, window: window)]
      }
      run = Run()
    }
    for change in changes {
      switch change {
      case .set(let key, let payload):
        if !run.removed.isEmpty { end(&run) }
        if run.payloads.updateValue(payload, forKey: key) == nil { run.set.append(key) }
      case .remove(let key):
        if !run.set.isEmpty { end(&run) }
        run.removed.append(key)
      case .removeAll(let range):
        end(&run)
        hasRemoved = true
        list += [statements.lockGroups(.range(range), call), statements.remove(range, window: window)]
      }
    }
    end(&run)
    if hasRemoved { list += statements.advance(call) }
    if hasSet, configuration.capacity != nil { list.append(statements.forgetRoom) }
    return list
  }
}

/// Changes of one kind that follow each other: either all set an item, or all remove one.
///
/// A removal is no part of a set that follows it, because an item that is removed and set again goes to the end.
private struct Run {
  /// In the order they were first set.
  var set: [StoreKey] = []
  var payloads: [StoreKey: [UInt8]] = [:]
  var removed: [StoreKey] = []
}
#endif
