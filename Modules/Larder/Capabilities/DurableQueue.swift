/// A store that is a queue: it leases its entries to consumers until they acknowledge them.
///
/// ```swift
/// try await queue.enqueue(event)
/// try await queue.withNext(lease: .seconds(30)) { delivery in
///   try await send(delivery.value)  // acknowledged when this returns, released when it throws
/// }
/// ```
///
/// An item is an entry of the store. Its key is the id that it was enqueued with, or a generated one. Reads, scans and
/// counts include waiting, delayed and leased items in key order, but no dead letters. Setting an existing key replaces
/// its item without changing the item's position, setting a new key enqueues an item, and removing a key withdraws one.
/// If the item was leased, each of these makes its receipt stale.
///
/// Decorators such as the one of `LarderMetrics` forward this capability. If the type of a store is known only at run
/// time, use ``AnyDataStore/queue``.
///
/// ## Promises
///
/// - An item is delivered at least once. After its acknowledgement returns, it is never delivered again, whatever
///   crashes, as far as ``StoreInformation/durability`` promises it.
/// - At most one consumer has a running lease of an item. The lease is durable before the item is returned.
/// - Items that are due are delivered by priority, the highest first, and in the order of arrival within a priority.
///   A released item returns to its old position.
/// - Items of a group are delivered in the order of arrival, one at a time. An item that is leased, delayed or released
///   for a retry holds back the later items of its group, and no other items. Groups don't hold back each other.
/// - Each delivery has its own receipt. It becomes stale when its lease ends, or when the item is replaced or removed.
/// - An item that was delivered too often becomes a dead letter, and holds back no other items.
/// - An item that cannot be read or decoded is never removed because of it, unless it becomes a dead letter.
///
/// ## Implementing a queue
///
/// Implement every requirement, check arguments with the methods of ``StoreInformation``, and run
/// `QueueConformanceSuite` of `LarderTesting` against your queue. A queue without priorities or groups refuses them with
/// ``StoreError/Code/unsupported``.
public protocol DurableQueue<Value>: DataStore {
  /// The monotonic clock that measures delays and leases while this process waits for them.
  var clock: any Clock<Duration> { get }

  /// Appends items to the queue in order, atomically.
  ///
  /// An item with an id is not enqueued again while an item with that id is in the queue, and for some time after that
  /// item was acknowledged or became a dead letter. The time is the same if the dead letter is requeued, purged or removed
  /// in that time, because a producer that repeats a call must not bring back an item that an operator has purged. To process the
  /// item again, requeue its dead letter, enqueue it with another id, or set its key.
  ///
  /// ```swift
  /// try await queue.enqueue([QueueInput(event), QueueInput(reminder, after: .seconds(3600))])
  /// ```
  ///
  /// - Parameter inputs: The items, each with an optional id, delay, priority and group.
  /// - Returns: The result for each item, in order.
  /// - Throws: ``StoreError`` with `invalidArgument` if a delay, a priority or a group is invalid; `unsupported` if the
  ///   queue has no priorities or groups; `full` if there is no room; else as ``DataStore/apply(_:)``.
  ///   `CancellationError`.
  @discardableResult
  func enqueue(_ inputs: [QueueInput<Value>]) async throws -> [EnqueuedItem]

  /// Leases and returns the first items that are due, without waiting for any.
  ///
  /// The lease is written before an item is decoded, so an item that crashes the process counts as delivered. An item
  /// that cannot be decoded is released, and becomes a dead letter after its last delivery. If your program lacks
  /// something to decode an item, such as a key, the method throws, and no delivery counts.
  ///
  /// ```swift
  /// for delivery in try await queue.receive(max: 100, lease: .seconds(30)) {
  ///   try await send(delivery.value)
  ///   try await queue.acknowledge(delivery.receipt)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - max: The maximum number of items, at least 1.
  ///   - lease: The duration of the leases. It must be greater than zero.
  /// - Returns: The items in the order of delivery, or an empty array if no item is due.
  /// - Throws: ``StoreError`` with `invalidArgument`; `closed`; `corrupted`, `undecodable` or another code of the codec
  ///   if no item can be decoded; `full` or `ioFailed` if the leases could not be written. `CancellationError` if the
  ///   task was cancelled before the call began.
  func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Value>]

  /// Waits until an item is due, and leases it.
  ///
  /// This is the basis of ``withNext(lease:renewsLease:_:)`` and ``deliveries(lease:)``, which most programs use.
  ///
  /// ```swift
  /// let delivery = try await queue.nextDelivery(lease: .seconds(30)).get()
  /// try await send(delivery.value)
  /// try await queue.acknowledge(delivery.receipt)
  /// ```
  ///
  /// - Parameter lease: The duration of the lease. It must be greater than zero.
  /// - Returns: The item, or the error of an item that cannot be read or decoded. Such an item is not leased any more.
  /// - Throws: ``StoreError`` as ``receive(max:lease:)``, also if your program cannot decode items. `CancellationError`
  ///   if the task is cancelled while it waits.
  func nextDelivery(lease: Duration) async throws -> Result<QueueDelivery<Value>, StoreError>

  /// Acknowledges deliveries and permanently removes their items, in one commit.
  ///
  /// Acknowledging ignores cancellation.
  ///
  /// ```swift
  /// let stale = try await queue.acknowledge(deliveries.map(\.receipt))
  /// if !stale.isEmpty { logger.warning("\(stale.count) items will be delivered again") }
  /// ```
  ///
  /// - Parameter receipts: The receipts of the deliveries.
  /// - Returns: The receipts that are stale. The items of all other receipts are removed.
  /// - Throws: ``StoreError`` with `closed`, `full` or `ioFailed`.
  func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt]

  /// Releases items for another delivery at their old positions, in one commit.
  ///
  /// If the deliveries count, an item that was delivered too often becomes a dead letter. Releasing ignores
  /// cancellation.
  ///
  /// ```swift
  /// try await queue.release(deliveries.map(\.receipt), after: .seconds(60), countsAsAttempt: false)
  /// ```
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - delay: The delay until the items can be received again, or `nil` for that of the queue's retry policy.
  ///   - countsAsAttempt: A Boolean value that indicates whether the deliveries count. If they don't, the numbers of
  ///     attempts are as they were before.
  /// - Returns: The receipts that are stale. The items of all other receipts are released.
  /// - Throws: ``StoreError`` with `invalidArgument` if the delay is negative; `closed`; `full`; `ioFailed`.
  func release(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt]

  /// Resets leases so that they expire `lease` from now, in one commit.
  ///
  /// Extending ignores cancellation.
  ///
  /// ```swift
  /// let lost = try await queue.extend(deliveries.map(\.receipt), lease: .seconds(30))
  /// guard lost.isEmpty else { throw LeaseLost() }
  /// ```
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries. They stay valid.
  ///   - lease: The new duration of the leases from now. It must be greater than zero.
  /// - Returns: The receipts that are stale. The leases of all other receipts are extended.
  /// - Throws: ``StoreError`` with `invalidArgument`, `closed`, `full` or `ioFailed`.
  func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt]

  /// Returns the items that would be received first, without leasing them.
  ///
  /// ```swift
  /// for entry in try await queue.peek(max: 10) { print(entry.key, entry.value) }
  /// ```
  ///
  /// - Parameter max: The maximum number of items, at least 0.
  /// - Returns: The items with their keys, in the order of delivery.
  /// - Throws: ``StoreError`` with `invalidArgument`; `closed`; `corrupted` or `undecodable` if an item cannot be
  ///   decoded; `ioFailed`.
  func peek(max: Int) async throws -> [StoreEntry<Value>]

  /// Returns the number of items in each state, and the age of the oldest item.
  ///
  /// ```swift
  /// let statistics = try await queue.queueStatistics()
  /// print(statistics.counts.waiting, "waiting,", statistics.counts.dead, "dead")
  /// ```
  ///
  /// - Throws: ``StoreError`` with `closed`; `ioFailed`.
  func queueStatistics() async throws -> QueueStatistics

  /// Returns dead letters in the order of arrival.
  ///
  /// ```swift
  /// for letter in try await queue.deadLetters(limit: 20, after: 0) {
  ///   print(letter.key, letter.reason, letter.attempts, letter.date)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The maximum number of dead letters, at least 0.
  ///   - sequence: The sequence number to start after. Only dead letters with a greater ``DeadLetter/sequence`` are
  ///     returned.
  /// - Throws: ``StoreError`` with `invalidArgument`; `closed`; `ioFailed`.
  func deadLetters(limit: Int, after sequence: UInt128) async throws -> [DeadLetter<Value>]

  /// Moves the dead letters of several keys to the end of the queue, as if they were enqueued now.
  ///
  /// If several dead letters have the same key, the latest one is moved.
  ///
  /// ```swift
  /// let letters = try await queue.deadLetters(limit: 20, after: 0)
  /// try await queue.requeue(letters.filter { $0.reason == .tooManyDeliveries }.map(\.key))
  /// ```
  ///
  /// - Parameter keys: The keys of the dead letters. Keys without a dead letter are ignored.
  /// - Returns: The number of dead letters moved.
  /// - Throws: ``StoreError`` with `conflict` if an item with a key is in the queue, with nothing changed; `invalidKey`;
  ///   `full`; `closed`; `ioFailed`. `CancellationError`.
  @discardableResult
  func requeue(_ keys: [StoreKey]) async throws -> Int

  /// Moves all dead letters to the end of the queue in their order of arrival, as if they were enqueued now.
  ///
  /// A dead letter stays if an item in the queue has its key. If the call fails, some dead letters may already have been
  /// moved.
  ///
  /// ```swift
  /// let count = try await queue.requeueDeadLetters()  // after the cause was removed
  /// print("\(count) items will be delivered again")
  /// ```
  ///
  /// - Returns: The number of dead letters moved.
  /// - Throws: ``StoreError`` with `full`; `closed`; `ioFailed`. `CancellationError`.
  @discardableResult
  func requeueDeadLetters() async throws -> Int

  /// Permanently removes the dead letters of several keys.
  ///
  /// Their ids stay remembered; see ``enqueue(_:)``.
  ///
  /// ```swift
  /// let letters = try await queue.deadLetters(limit: 20, after: 0)
  /// try await queue.purgeDeadLetters(letters.filter { $0.reason == .undecodable }.map(\.key))
  /// ```
  ///
  /// - Parameter keys: The keys of the dead letters. Keys without a dead letter are ignored.
  /// - Returns: The number of dead letters removed.
  /// - Throws: ``StoreError`` with `invalidKey`, `closed`, `full` or `ioFailed`. `CancellationError`.
  @discardableResult
  func purgeDeadLetters(_ keys: [StoreKey]) async throws -> Int

  /// Permanently removes all dead letters.
  ///
  /// - Returns: The number of dead letters removed.
  /// - Throws: ``StoreError`` with `closed`, `full` or `ioFailed`. `CancellationError`.
  @discardableResult
  func purgeDeadLetters() async throws -> Int

  /// Calls a closure for each item that a call of this object turns into a dead letter.
  ///
  /// If several processes share a queue, each item is reported in one of them.
  ///
  /// ```swift
  /// let observation = queue.observeDeadLetters { letter in
  ///   logger.error("\(letter.key) failed after \(letter.attempts) attempts")
  /// }
  /// ```
  ///
  /// - Parameter observer: A closure that receives the report after the change is written. It runs on the thread that
  ///   made the change, so it must return quickly and must not call the queue.
  /// - Returns: The observation. It ends when you cancel it or release it.
  func observeDeadLetters(_ observer: @escaping @Sendable (DeadLetterEvent) -> Void) -> StoreObservation
}

extension StoreDecorator where Base: DurableQueue {
  /// The clock of the base.
  public var clock: any Clock<Duration> { base.clock }

  /// Acknowledges deliveries of the base; see ``DurableQueue/acknowledge(_:)-([DeliveryReceipt])``.
  public func acknowledge(_ receipts: [DeliveryReceipt]) async throws -> [DeliveryReceipt] {
    try await forward(.acknowledge, of: nil) { try await base.acknowledge(receipts) }
  }

  /// Releases items of the base; see ``DurableQueue/release(_:after:countsAsAttempt:)-([DeliveryReceipt],_,_)``.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration?, countsAsAttempt: Bool
  ) async throws -> [DeliveryReceipt] {
    try await forward(.release, of: nil) {
      try await base.release(receipts, after: delay, countsAsAttempt: countsAsAttempt)
    }
  }

  /// Extends leases of the base; see ``DurableQueue/extend(_:lease:)-([DeliveryReceipt],_)``.
  public func extend(_ receipts: [DeliveryReceipt], lease: Duration) async throws -> [DeliveryReceipt] {
    try await forward(.extend, of: nil) { try await base.extend(receipts, lease: lease) }
  }

  /// Returns the statistics of the base; see ``DurableQueue/queueStatistics()``.
  public func queueStatistics() async throws -> QueueStatistics {
    try await forward(.statistics, of: nil) { try await base.queueStatistics() }
  }

  /// Moves dead letters of the base to the end of the queue; see ``DurableQueue/requeue(_:)``.
  @discardableResult
  public func requeue(_ keys: [StoreKey]) async throws -> Int {
    try await forward(.requeue, of: nil) { try await base.requeue(keys) }
  }

  /// Moves all dead letters of the base to the end of the queue; see ``DurableQueue/requeueDeadLetters()``.
  @discardableResult
  public func requeueDeadLetters() async throws -> Int {
    try await forward(.requeue, of: nil) { try await base.requeueDeadLetters() }
  }

  /// Removes dead letters of the base; see ``DurableQueue/purgeDeadLetters(_:)``.
  @discardableResult
  public func purgeDeadLetters(_ keys: [StoreKey]) async throws -> Int {
    try await forward(.purgeDeadLetters, of: nil) { try await base.purgeDeadLetters(keys) }
  }

  /// Removes all dead letters of the base; see ``DurableQueue/purgeDeadLetters()``.
  @discardableResult
  public func purgeDeadLetters() async throws -> Int {
    try await forward(.purgeDeadLetters, of: nil) { try await base.purgeDeadLetters() }
  }

  /// Observes the dead letters of the base; see ``DurableQueue/observeDeadLetters(_:)``.
  public func observeDeadLetters(_ observer: @escaping @Sendable (DeadLetterEvent) -> Void) -> StoreObservation {
    base.observeDeadLetters(observer)
  }
}

extension StoreDecorator where Base: DurableQueue, Base.Value == Value {
  /// Appends items to the base; see ``DurableQueue/enqueue(_:)``.
  @discardableResult
  public func enqueue(_ inputs: [QueueInput<Value>]) async throws -> [EnqueuedItem] {
    try await forward(.enqueue, of: nil) { try await base.enqueue(inputs) }
  }

  /// Leases items of the base; see ``DurableQueue/receive(max:lease:)``.
  ///
  /// ```swift
  /// let deliveries = try await outbox.receive(max: 100, lease: .seconds(60))
  /// try await sendAll(deliveries.map(\.value))
  /// let stale = try await outbox.acknowledge(deliveries.map(\.receipt))
  /// print("will be delivered again:", stale.count)
  /// ```
  public func receive(max: Int, lease: Duration) async throws -> [QueueDelivery<Value>] {
    try await forward(.receive, of: nil) { try await base.receive(max: max, lease: lease) }
  }

  /// Waits for an item of the base and leases it; see ``DurableQueue/nextDelivery(lease:)``.
  ///
  /// The wait is no part of an operation, so it is not passed to ``forward(_:of:_:)``.
  public func nextDelivery(lease: Duration) async throws -> Result<QueueDelivery<Value>, StoreError> {
    try await base.nextDelivery(lease: lease)
  }

  /// Returns the first items of the base; see ``DurableQueue/peek(max:)``.
  public func peek(max: Int) async throws -> [StoreEntry<Value>] {
    try await forward(.peek, of: nil) { try await base.peek(max: max) }
  }

  /// Returns dead letters of the base; see ``DurableQueue/deadLetters(limit:after:)``.
  public func deadLetters(limit: Int, after sequence: UInt128) async throws -> [DeadLetter<Value>] {
    try await forward(.deadLetters, of: nil) { try await base.deadLetters(limit: limit, after: sequence) }
  }
}
