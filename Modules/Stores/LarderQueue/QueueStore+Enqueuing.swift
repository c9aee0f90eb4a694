public import Larder

/// Enqueuing items.
extension QueueStore {
  /// Appends an item to the queue; see `DurableQueue`.
  ///
  /// It does the same as ``enqueue(_:)`` with one item, and takes half of the time.
  ///
  /// ```swift
  /// let results = try await outbox.enqueue([
  ///   QueueInput(Event(name: "opened")),
  ///   QueueInput(Event(name: "reminder"), id: "reminder:17", after: .seconds(3600)),
  /// ])
  /// print(results.map(\.sequence))
  /// ```
  ///
  /// - Parameters:
  ///   - element: The item.
  ///   - id: The key of the item. Defaults to a generated key.
  ///   - delay: The delay until the item can be received. Defaults to zero.
  ///   - priority: The priority. It must be 0. Defaults to 0.
  ///   - group: The group. It must be `nil`. Defaults to `nil`.
  /// - Returns: The key and position of the item, and whether it is a duplicate.
  /// - Throws: The same errors as ``enqueue(_:)``.
  @discardableResult
  public func enqueue(
    _ element: Element, id: StoreKey? = nil, after delay: Duration = .zero, priority: Int = 0, group: StoreKey? = nil
  ) async throws -> EnqueuedItem {
    guard priority == 0, group == nil else {
      return try await enqueue([QueueInput(element, id: id, after: delay, priority: priority, group: group)])[0]
    }
    try information.checkWritable(for: .enqueue)
    if let id { try information.check(id, for: .enqueue) }
    try information.check(delay: delay, for: .enqueue)
    let length = delay.wholeMicroseconds
    return try await running(.enqueue) {
      let payload = try coder.payload(of: element, forKey: id, during: .enqueue)
      return try await engine.perform(.enqueue, .writes, needsRoom: true) { core in
        try core.ledger.enqueue(payload, key: id, delay: length, into: &core.frames)
      }
    }
  }

  /// Appends items to the queue in order, atomically.
  ///
  /// With an id, enqueuing is idempotent: it is a no-op while an item with that id is in the queue, and for
  /// `QueuePolicy.duplicateWindow` after that item was acknowledged or became a dead letter.
  ///
  /// - Parameter inputs: The items, each with an optional id and delay. A queue in a folder has neither priorities nor
  ///   groups.
  /// - Returns: The result for each item, in order.
  /// - Throws: `StoreError` with `full` if there is no room and the policy is not to wait; `invalidKey`;
  ///   `invalidArgument` if a delay is negative; `unsupported` if an item has a priority other than 0, or a group;
  ///   `encodingFailed`; `valueTooLarge`; `closed`; `ioFailed`. `CancellationError` if the task was cancelled before the
  ///   call began, or while it waited for room.
  @discardableResult
  public func enqueue(_ inputs: [QueueInput<Element>]) async throws -> [EnqueuedItem] {
    try information.check(inputs)
    guard inputs.allSatisfy({ $0.priority == 0 && $0.group == nil }) else {
      throw StoreError(
        .unsupported, during: .enqueue, store: information.name,
        message: "a QueueStore has no priorities or groups; use a StoreQueue for items that need them")
    }
    return try await running(.enqueue) {
      let payloads = try await BulkWork.run(atMost: inputs.count) { [coder] allowance in
        try inputs.map { input in
          try allowance.encode { try coder.payload(of: input.value, forKey: input.id, during: .enqueue) }
        }
      }
      let (ids, delays) = (inputs.map(\.id), inputs.map(\.delay.wholeMicroseconds))
      return try await engine.perform(.enqueue, .writes, needsRoom: true) { core in
        try core.ledger.checkFit(zip(ids, payloads).map { (key: $0, bytes: $1.count) })
        var enqueued: [EnqueuedItem] = []
        enqueued.reserveCapacity(ids.count)
        for (index, id) in ids.enumerated() {
          enqueued.append(
            try core.ledger.enqueue(payloads[index], key: id, delay: delays[index], into: &core.frames))
        }
        return enqueued
      }
    }
  }
}
