#if Postgres
public import Larder

/// Enqueuing items.
extension PostgresQueue {
  /// Appends items to the queue in order, atomically.
  ///
  /// With an id, enqueuing is idempotent: it is a no-op while an item with that id is in the queue, and for
  /// `QueuePolicy.duplicateWindow` after that item was acknowledged or became a dead letter.
  ///
  /// ```swift
  /// let outbox = try await PostgresQueue<OrderPlaced>(in: database, name: "outbox", codec: .json())
  /// try await database.write { transaction in
  ///   try await transaction.execute("INSERT INTO orders(id, item) VALUES($1, $2)", ["17", "lamp"])
  ///   try await transaction.enqueue([QueueInput(OrderPlaced(order: 17))], in: outbox)
  /// }
  /// ```
  ///
  /// - Parameter inputs: The items, each with an optional id, delay, priority and group.
  /// - Returns: The result for each item, in order.
  /// - Throws: `StoreError` with `invalidKey`; `invalidArgument` if a delay, a priority or a group is invalid;
  ///   `encodingFailed`; `valueTooLarge`; `full`; `conflict`; `closed`; `timedOut`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func enqueue(_ inputs: [QueueInput<Element>]) async throws -> [EnqueuedItem] {
    try information.check(inputs)
    return try await handle.running(.enqueue) { try await enqueue(inputs, in: nil) }
  }

  fileprivate func enqueue(
    _ inputs: [QueueInput<Element>], in transaction: PostgresTransaction?
  ) async throws -> [EnqueuedItem] {
    let format = coder.codecRecord.format
    let new = try await newItems(inputs)
    guard !new.keys.isEmpty else { return [] }
    let plan = enqueuing(new)
    // An older item that is added to newer ones does no harm, but a program that can write newer ones must.
    let results = try await write(
      plan.statements, comparesCodec: coder.codecRecord.newestName != nil, encodedIn: format, in: transaction,
      for: .enqueue)
    noteChange(in: transaction)
    if let rows = plan.search.map({ results[$0] }), (0..<rows.rowCount).contains(where: { rows.integer($0, 2) == 1 }) {
      try await boundByDuration(during: .enqueue, in: transaction)
    }
    return try enqueued(new, plan, results)
  }

  /// Returns items with their keys and encoded values.
  private func newItems(_ inputs: [QueueInput<Element>]) async throws -> NewItems {
    try await BulkWork.run(atMost: inputs.count) { [self] allowance in
      var new = NewItems()
      var seen: Set<StoreKey> = []
      for input in inputs {
        let key = input.id ?? makeKey()
        new.keys.append(key)
        // Even an item that is a duplicate within the call must be encodable.
        let payload = try allowance.encode {
          var bytes: [UInt8] = []
          try coder.append(input.value, forKey: key, to: &bytes, during: .enqueue)
          return bytes
        }
        guard seen.insert(key).inserted else { continue }
        new.items.keys.append(key)
        new.items.payloads.append(payload[...])
        new.items.delays.append(input.delay.wholeMicroseconds)
        new.items.priorities.append(Int64(input.priority))
        new.items.groups.append(input.group)
        new.items.named.append(input.id == nil ? 0 : 1)
      }
      return new
    }
  }

  /// Returns the statements that enqueue items.
  private func enqueuing(_ new: NewItems) -> EnqueuingPlan {
    let items = new.items
    let groups = items.groups.compactMap { $0 }
    let call = Int64.random(in: .min ... .max)
    var plan = EnqueuingPlan()
    if let capacity = configuration.capacity {
      plan.statements += statements.makeRoom(items.keys.count, capacity: capacity)
    }
    if !groups.isEmpty { plan.statements.append(statements.lockGroups(.groups(groups), call)) }
    // A message to the server is limited to 1 GiB.
    let insertions = StoreTable.parts(ofSizes: items.sizes).map { part in
      statements.insert(items[part], needingRoomFor: configuration.capacity == nil ? nil : items.keys.count)
    }
    plan.insertions = plan.statements.count..<plan.statements.count + insertions.count
    plan.statements += insertions
    if configuration.capacity != nil { plan.statements.append(statements.takeRoom(items.keys.count)) }
    if !groups.isEmpty { plan.statements += statements.advance(call) }
    if items.named.contains(1) {
      plan.search = plan.statements.count
      plan.statements.append(statements.sequences(ofKeys: items.keys))
    }
    return plan
  }

  /// Returns what became of items.
  ///
  /// - Throws: ``StoreError`` with `full`, if nothing was enqueued because there was no room.
  private func enqueued(
    _ new: NewItems, _ plan: EnqueuingPlan, _ results: [QueryResult]
  ) throws -> [EnqueuedItem] {
    func sequences(_ results: ArraySlice<QueryResult>, key: Int, sequence: Int) -> [StoreKey: UInt128] {
      var sequences: [StoreKey: UInt128] = [:]
      for rows in results {
        for row in 0..<rows.rowCount {
          sequences[rows.key(row, key)] = UInt128(clamping: rows.integer(row, sequence) ?? 0)
        }
      }
      return sequences
    }
    var inserted = sequences(results[plan.insertions], key: 1, sequence: 0)
    let known = plan.search.map { sequences(results[$0...$0], key: 0, sequence: 1) } ?? [:]
    return try new.keys.map { key in
      if let sequence = inserted.removeValue(forKey: key) { return EnqueuedItem(key: key, sequence: sequence) }
      guard let sequence = known[key] else {
        throw StoreError(
          .full, during: .enqueue, store: information.name,
          message: "the queue has no room for \(new.items.keys.count) more items; its capacity is "
            + "\(configuration.capacity ?? 0)", isRetryable: true)
      }
      return EnqueuedItem(key: key, sequence: sequence, isDuplicate: true)
    }
  }
}

/// The statements that enqueue items.
private struct EnqueuingPlan: Sendable {
  var statements: [Statement] = []
  /// The positions of the statements that return the items that were enqueued.
  var insertions = 0..<0
  /// The position of the statement that returns the items of all ids, if there are any.
  var search: Int?
}

/// Items to enqueue.
private struct NewItems: Sendable {
  /// The key of each input.
  var keys: [StoreKey] = []
  /// The items, without those that are duplicates within the call.
  var items = QueueStatements.Items()
}

extension PostgresTransaction {
  /// Appends items to a queue in order.
  ///
  /// The items can be received after the transaction is committed. If it is not, they were never in the queue. An id is
  /// free or taken as of the commit: another transaction that enqueues the same id waits for this one.
  ///
  /// ```swift
  /// try await database.write { transaction in
  ///   try await transaction.setValue(order, forKey: "17", in: orders)
  ///   try await transaction.enqueue([QueueInput(OrderPlaced(order: 17))], in: outbox)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - inputs: The items, each with an optional id, delay, priority and group.
  ///   - queue: A queue of this database.
  /// - Returns: The result for each item, in order.
  /// - Throws: `StoreError`: `invalidArgument` if an argument is invalid or if the queue belongs to another database; the
  ///   errors of ``PostgresQueue/enqueue(_:)``.
  @discardableResult
  public func enqueue<Element>(
    _ inputs: [QueueInput<Element>], in queue: PostgresQueue<Element>
  ) async throws -> [EnqueuedItem] {
    try queue.information.check(inputs)
    return try await queue.enqueue(inputs, in: self)
  }
}
#endif
