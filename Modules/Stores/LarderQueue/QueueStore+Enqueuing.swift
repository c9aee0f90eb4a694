public import Larder

/// Enqueuing items.
extension QueueStore {
  /// Puts an item at the end of the queue.
  ///
  /// With an id it can be repeated: while an item with that id is in the queue, and for
  /// ``QueueConfiguration/duplicateWindow`` after it was acknowledged or became a dead letter, it does nothing.
  ///
  /// - Parameters:
  ///   - element: The item.
  ///   - id: The key under which it is kept; defaults to a generated one.
  ///   - delay: How long it is kept back; defaults to zero.
  /// - Returns: What became of it.
  /// - Throws: ``StoreError``: `full` if there is no room and the policy is not to wait; `invalidKey`;
  ///   `invalidArgument` if the delay is negative; `encodingFailed`; `valueTooLarge`; `closed`; `ioFailed`.
  ///   `CancellationError` if the task was cancelled before it began, or while it waited for room.
  @discardableResult
  public func enqueue(
    _ element: Element, id: StoreKey? = nil, delay: Duration = .zero
  ) async throws -> EnqueuedItem {
    let length = try microseconds(ofDelay: delay, for: .enqueue)
    if let id { try information.check(id, for: .enqueue) }
    return try await running(.enqueue) {
      let payload = try coder.payload(of: element, forKey: id, during: .enqueue)
      return try await engine.perform(.enqueue, .writes, needsRoom: true) { core in
        try core.enqueue(payload, key: id, delay: length)
      }
    }
  }

  /// Puts items at the end of the queue, in order, all or none of them.
  ///
  /// - Parameter inputs: The items, each with an id and a delay where it has them.
  /// - Returns: What became of each, in order.
  /// - Throws: As ``enqueue(_:id:delay:)``.
  @discardableResult
  public func enqueue(_ inputs: [QueueInput<Element>]) async throws -> [EnqueuedItem] {
    let delays = try inputs.map { try microseconds(ofDelay: $0.delay, for: .enqueue) }
    try information.check(inputs.compactMap(\.id), for: .enqueue)
    return try await running(.enqueue) {
      let payloads = try await BulkWork.run(atMost: inputs.count) { [coder] allowance in
        try inputs.map { input in
          try allowance.encode { try coder.payload(of: input.value, forKey: input.id, during: .enqueue) }
        }
      }
      let ids = inputs.map(\.id)
      return try await engine.perform(.enqueue, .writes, needsRoom: true) { core in
        try core.ledger.checkFit(zip(ids, payloads).map { (key: $0, bytes: $1.count) })
        var enqueued: [EnqueuedItem] = []
        enqueued.reserveCapacity(ids.count)
        for (index, id) in ids.enumerated() {
          enqueued.append(try core.enqueue(payloads[index], key: id, delay: delays[index]))
        }
        return enqueued
      }
    }
  }

  // MARK: Arguments

  func microseconds(ofDelay delay: Duration, for operation: StoreOperation) throws -> Int64 {
    guard delay >= .zero else {
      throw StoreError(
        .invalidArgument, during: operation, store: information.name,
        message: "a delay must not be negative, but is \(delay)")
    }
    return delay.microseconds
  }

  func microseconds(ofLease lease: Duration, for operation: StoreOperation) throws -> Int64 {
    guard lease > .zero else {
      throw StoreError(
        .invalidArgument, during: operation, store: information.name,
        message: "a lease must be greater than zero, not \(lease)")
    }
    return lease.microseconds
  }
}
