/// An item to enqueue, possibly together with others.
///
/// ```swift
/// let results = try await outbox.enqueue([
///   QueueInput(Event(name: "opened")),
///   QueueInput(Event(name: "reminder"), id: "reminder:17", after: .seconds(3600)),
/// ])
/// print(results.map(\.sequence))
/// ```
public struct QueueInput<Element: Sendable>: Sendable {
  /// The item.
  public var value: Element

  /// The key of the item, which makes enqueuing it again a no-op; `nil` for a generated key.
  public var id: StoreKey?

  /// The delay until the item can be received.
  public var delay: Duration

  /// The priority of the item, in ``priorities``.
  ///
  /// An item with a higher priority is delivered before all items with a lower one that are due.
  public var priority: Int

  /// The group of the item, of 1 to ``maximumGroupLength`` bytes; `nil` for no group.
  ///
  /// Items of a group are delivered in the order of arrival, one at a time.
  public var group: StoreKey?

  /// Creates an input.
  ///
  /// - Parameters:
  ///   - value: The item.
  ///   - id: The key of the item. Defaults to `nil`, for a generated key.
  ///   - delay: The delay until the item can be received. Defaults to zero.
  ///   - priority: The priority of the item. Defaults to 0.
  ///   - group: The group of the item. Defaults to `nil`.
  public init(
    _ value: Element, id: StoreKey? = nil, after delay: Duration = .zero, priority: Int = 0, group: StoreKey? = nil
  ) {
    self.value = value
    self.id = id
    self.delay = delay
    self.priority = priority
    self.group = group
  }

  /// The valid priorities, from -10 to 10.
  public static var priorities: ClosedRange<Int> { -10...10 }

  /// The maximum length of the name of a group, in bytes: 128.
  public static var maximumGroupLength: Int { 128 }
}

/// The result of enqueuing an item.
///
/// ```swift
/// let item = try await queue.enqueue(event, id: "order:17")
/// if item.isDuplicate { logger.info("the item is in the queue already") }
/// ```
public struct EnqueuedItem: Sendable, Hashable {
  /// The key that the item can be read with, replaced or withdrawn, either given or generated.
  ///
  /// A generated key is text of hexadecimal digits that sorts by arrival.
  public let key: StoreKey

  /// The item's position in the order of arrival.
  ///
  /// For a duplicate, it is the position of the original item.
  public let sequence: UInt128

  /// A Boolean value that indicates whether nothing was enqueued, because an item with that key is in the queue or left
  /// it recently.
  public let isDuplicate: Bool

  /// The number of older items that a queue with a capacity dropped to make room.
  public let droppedCount: Int

  /// Creates a result.
  ///
  /// - Parameters:
  ///   - key: The key of the item.
  ///   - sequence: The item's position in the order of arrival.
  ///   - isDuplicate: A Boolean value that indicates whether nothing was enqueued. Defaults to `false`.
  ///   - droppedCount: The number of older items that were dropped to make room. Defaults to 0.
  public init(key: StoreKey, sequence: UInt128, isDuplicate: Bool = false, droppedCount: Int = 0) {
    self.key = key
    self.sequence = sequence
    self.isDuplicate = isDuplicate
    self.droppedCount = droppedCount
  }
}

extension StoreInformation {
  /// Checks the arguments of enqueuing: that the queue is writable, and that ids, delays, priorities and groups are
  /// valid.
  ///
  /// - Parameter inputs: The items.
  /// - Throws: ``StoreError`` with `notPermitted`; `invalidKey`; `invalidArgument`.
  public func check<Element>(_ inputs: [QueueInput<Element>]) throws {
    try checkWritable(for: .enqueue)
    for input in inputs {
      if let id = input.id { try check(id, for: .enqueue) }
      try check(delay: input.delay, for: .enqueue)
      guard QueueInput<Element>.priorities.contains(input.priority) else {
        throw invalidArgument("a priority must be between -10 and 10, not \(input.priority)", .enqueue)
      }
      if let group = input.group {
        let maximum = QueueInput<Element>.maximumGroupLength
        guard (1...maximum).contains(group.count) else {
          throw invalidArgument("a group must have 1 to \(maximum) bytes, not \(group.count)", .enqueue)
        }
      }
    }
  }

  /// Checks that a delay is not negative.
  ///
  /// - Parameters:
  ///   - delay: The delay.
  ///   - operation: The operation that received the delay.
  /// - Throws: ``StoreError`` with `invalidArgument`.
  public func check(delay: Duration, for operation: StoreOperation) throws {
    guard delay < .zero else { return }
    throw invalidArgument("a delay must not be negative, but is \(delay)", operation)
  }

  /// Checks that the queue is open for writing, and that the duration of a lease is greater than zero.
  ///
  /// - Parameters:
  ///   - lease: The duration.
  ///   - operation: The operation that received the duration.
  /// - Throws: ``StoreError`` with `notPermitted` or `invalidArgument`.
  public func check(lease: Duration, for operation: StoreOperation) throws {
    try checkWritable(for: operation)
    guard lease <= .zero else { return }
    throw invalidArgument("a lease must be greater than zero, not \(lease)", operation)
  }

  /// Checks that the maximum number of items to receive is at least 1.
  ///
  /// - Parameter max: The maximum number of items.
  /// - Throws: ``StoreError`` with `invalidArgument`.
  public func check(maximumDeliveries max: Int) throws {
    guard max < 1 else { return }
    throw invalidArgument("`max` must be at least 1, not \(max)", .receive)
  }

  /// Checks that a receipt was not stale.
  ///
  /// - Parameters:
  ///   - stale: The stale receipts of a call that had one.
  ///   - operation: The operation that received it.
  /// - Throws: ``StoreError`` with `staleReceipt` if there are any.
  public func check(stale: [DeliveryReceipt], for operation: StoreOperation) throws {
    guard !stale.isEmpty else { return }
    throw StoreError(
      .staleReceipt, during: operation, store: name,
      message: "the receipt is stale: its lease has ended, or the item was replaced or removed")
  }

  private func invalidArgument(_ message: String, _ operation: StoreOperation) -> StoreError {
    StoreError(.invalidArgument, during: operation, store: name, message: message)
  }
}
