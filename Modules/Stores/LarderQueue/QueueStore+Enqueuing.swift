public import Larder

/// Enqueuing items.
extension QueueStore {
  /// Appends an item to the queue.
  ///
  /// With an id, enqueuing is idempotent: it is a no-op while an item with that id is in the queue, and for
  /// ``QueueConfiguration/duplicateWindow`` after that item was acknowledged or became a dead letter.
  ///
  /// - Parameters:
  ///   - element: The item.
  ///   - id: The key of the item; defaults to a generated key.
  ///   - delay: The delay until the item can be received; defaults to zero.
  /// - Returns: The key and position of the item, and whether it is a duplicate.
  /// - Throws: `StoreError` with `full` if there is no room and the policy is not to wait; `invalidKey`;
  ///   `invalidArgument` if the delay is negative; `encodingFailed`; `valueTooLarge`; `closed`; `ioFailed`.
  ///   `CancellationError` if the task was cancelled before the call began, or while it waited for room.
  @discardableResult
  public func enqueue(
    _ element: Element, id: StoreKey? = nil, delay: Duration = .zero
  ) async throws -> EnqueuedItem {
    let length = try microseconds(ofDelay: delay, for: .enqueue)
    if let id { try information.check(id, for: .enqueue) }
    return try await running(.enqueue) {
      let payload = try coder.payload(of: element, forKey: id, during: .enqueue)
      return try await engine.perform(.enqueue, .writes, needsRoom: true) { core in
        try core.ledger.enqueue(payload, key: id, delay: length, into: &core.frames)
      }
    }
  }

  /// Appends items to the queue in order, atomically.
  ///
  /// - Parameter inputs: The items, each with an optional id and delay.
  /// - Returns: The result for each item, in order.
  /// - Throws: The same errors as ``enqueue(_:id:delay:)``.
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
          enqueued.append(
            try core.ledger.enqueue(payloads[index], key: id, delay: delays[index], into: &core.frames))
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

/// An item to enqueue together with others.
public struct QueueInput<Element: Sendable>: Sendable {
  /// The item.
  public var value: Element

  /// The key of the item, which makes enqueuing it again a no-op; `nil` for a generated key.
  public var id: StoreKey?

  /// The delay until the item can be received.
  public var delay: Duration

  /// Creates an input.
  ///
  /// - Parameters:
  ///   - value: The item.
  ///   - id: The key of the item; defaults to `nil`, for a generated key.
  ///   - delay: The delay until the item can be received; defaults to zero.
  public init(_ value: Element, id: StoreKey? = nil, delay: Duration = .zero) {
    self.value = value
    self.id = id
    self.delay = delay
  }
}

/// The result of enqueuing an item.
public struct EnqueuedItem: Sendable, Hashable {
  /// The key with which the item can be read, replaced or withdrawn, either given or generated.
  ///
  /// A generated key is text of 16 hexadecimal digits that sorts by arrival.
  public let key: StoreKey

  /// The item's position in the order of arrival.
  ///
  /// For a duplicate, it is the position of the original item.
  public let sequence: UInt64

  /// Whether nothing was enqueued, because an item with that key is in the queue or left it recently.
  public let isDuplicate: Bool

  /// The number of older items dropped to make room; see ``QueueCapacity/Policy/dropOldest``.
  public let droppedCount: Int
}
