public import Foundation

/// Single forms of the requirements, and forms with defaults.
extension DurableQueue {
  /// Appends an item to the queue.
  ///
  /// With an id, enqueuing is idempotent: it is a no-op while an item with that id is in the queue, and for some time
  /// after that item was acknowledged or became a dead letter.
  ///
  /// ```swift
  /// try await queue.enqueue(event, id: "order:17", after: .seconds(60))
  /// ```
  ///
  /// - Parameters:
  ///   - value: The item.
  ///   - id: The key of the item. Defaults to `nil`, for a generated key.
  ///   - delay: The delay until the item can be received. Defaults to zero.
  ///   - priority: The priority of the item, in ``QueueInput/priorities``. Defaults to 0. Higher ones come first.
  ///   - group: The group of the item, of 1 to ``QueueInput/maximumGroupLength`` bytes. Defaults to `nil`.
  /// - Returns: The key and position of the item, and whether it is a duplicate.
  /// - Throws: The same errors as ``enqueue(_:)``.
  @discardableResult
  public func enqueue(
    _ value: Value, id: StoreKey? = nil, after delay: Duration = .zero, priority: Int = 0, group: StoreKey? = nil
  ) async throws -> EnqueuedItem {
    try await enqueue([QueueInput(value, id: id, after: delay, priority: priority, group: group)])[0]
  }

  /// Appends an item to the queue that can be received from a date on.
  ///
  /// ```swift
  /// try await queue.enqueue(reminder, at: appointment.addingTimeInterval(-86_400), id: "reminder:17")
  /// ```
  ///
  /// - Parameters:
  ///   - value: The item.
  ///   - date: The date. If it has passed, the item can be received immediately.
  ///   - id: The key of the item. Defaults to `nil`, for a generated key.
  ///   - priority: The priority of the item, in ``QueueInput/priorities``. Defaults to 0. Higher ones come first.
  ///   - group: The group of the item, of 1 to ``QueueInput/maximumGroupLength`` bytes. Defaults to `nil`.
  ///   - now: The present time. Defaults to the system's.
  /// - Returns: The key and position of the item, and whether it is a duplicate.
  /// - Throws: The same errors as ``enqueue(_:)``.
  @discardableResult
  public func enqueue(
    _ value: Value, at date: Date, id: StoreKey? = nil, priority: Int = 0, group: StoreKey? = nil, now: Date = Date.now
  ) async throws -> EnqueuedItem {
    let delay = Duration.microseconds(max(0, date.microsecondsSince1970.addingSaturating(-now.microsecondsSince1970)))
    return try await enqueue(value, id: id, after: delay, priority: priority, group: group)
  }

  /// Leases and returns the first item that is due, without waiting for it; see ``receive(max:lease:)``.
  ///
  /// ```swift
  /// while let delivery = try await queue.receive(lease: .seconds(30)) {
  ///   try await send(delivery.value)
  ///   try await queue.acknowledge(delivery.receipt)
  /// }
  /// ```
  ///
  /// - Parameter lease: The duration of the lease. It must be greater than zero.
  /// - Returns: The item, or `nil` if no item is due.
  /// - Throws: The same errors as ``receive(max:lease:)``.
  public func receive(lease: Duration) async throws -> QueueDelivery<Value>? {
    try await receive(max: 1, lease: lease).first
  }

  /// Acknowledges a delivery and permanently removes its item.
  ///
  /// Acknowledging ignores cancellation.
  ///
  /// ```swift
  /// do {
  ///   try await queue.acknowledge(delivery.receipt)
  /// } catch StoreError.Code.staleReceipt {
  ///   // The lease has ended, and another consumer may have the item.
  /// }
  /// ```
  ///
  /// - Parameter receipt: The receipt of the delivery.
  /// - Throws: ``StoreError`` with `staleReceipt`, `closed`, `full` or `ioFailed`.
  public func acknowledge(_ receipt: DeliveryReceipt) async throws {
    try information.check(stale: try await acknowledge([receipt]), for: .acknowledge)
  }

  /// Releases an item for another delivery, at its old position.
  ///
  /// If the delivery counts, an item that was delivered too often becomes a dead letter. Releasing ignores cancellation.
  ///
  /// ```swift
  /// try await queue.release(delivery.receipt, after: .seconds(60))
  /// ```
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery.
  ///   - delay: The delay until the item can be received again. Defaults to that of the queue's retry policy.
  ///   - countsAsAttempt: A Boolean value that indicates whether the delivery counts. Defaults to `true`. If it does
  ///     not, the number of attempts is as it was before.
  /// - Throws: ``StoreError`` with `staleReceipt`; `invalidArgument` if the delay is negative; `closed`; `full`;
  ///   `ioFailed`.
  public func release(
    _ receipt: DeliveryReceipt, after delay: Duration? = nil, countsAsAttempt: Bool = true
  ) async throws {
    try information.check(
      stale: try await release([receipt], after: delay, countsAsAttempt: countsAsAttempt), for: .release)
  }

  /// Releases items for another delivery that counts; see ``release(_:after:countsAsAttempt:)-([DeliveryReceipt],_,_)``.
  ///
  /// - Parameters:
  ///   - receipts: The receipts of the deliveries.
  ///   - delay: The delay until the items can be received again. Defaults to that of the queue's retry policy.
  /// - Returns: The receipts that are stale. The items of all other receipts are released.
  /// - Throws: ``StoreError`` with `invalidArgument` if the delay is negative; `closed`; `full`; `ioFailed`.
  public func release(
    _ receipts: [DeliveryReceipt], after delay: Duration? = nil
  ) async throws -> [DeliveryReceipt] {
    try await release(receipts, after: delay, countsAsAttempt: true)
  }

  /// Resets a lease so that it expires `lease` from now.
  ///
  /// Extending ignores cancellation.
  ///
  /// ```swift
  /// try await queue.extend(delivery.receipt, lease: .seconds(60))
  /// ```
  ///
  /// - Parameters:
  ///   - receipt: The receipt of the delivery. It stays valid.
  ///   - lease: The new duration of the lease from now. It must be greater than zero.
  /// - Throws: ``StoreError`` with `staleReceipt`, `invalidArgument`, `closed`, `full` or `ioFailed`.
  public func extend(_ receipt: DeliveryReceipt, lease: Duration) async throws {
    try information.check(stale: try await extend([receipt], lease: lease), for: .extend)
  }

  /// Returns the item that would be received first, without leasing it; see ``peek(max:)``.
  ///
  /// - Returns: The item with its key, or `nil` if no item is due.
  /// - Throws: The same errors as ``peek(max:)``.
  public func peek() async throws -> StoreEntry<Value>? {
    try await peek(max: 1).first
  }

  /// Returns the number of items in each state; see ``queueStatistics()``.
  ///
  /// ```swift
  /// let counts = try await queue.counts()
  /// print(counts.waiting, counts.delayed, counts.leased, counts.dead)
  /// ```
  ///
  /// - Throws: ``StoreError`` with `closed`; `ioFailed`.
  public func counts() async throws -> QueueCounts {
    try await queueStatistics().counts
  }

  /// Returns the age of the oldest item that is neither acknowledged nor a dead letter; see ``queueStatistics()``.
  ///
  /// - Returns: The age by the wall clock; `nil` if the queue is empty.
  /// - Throws: ``StoreError`` with `closed`; `ioFailed`.
  public func oldestAge() async throws -> Duration? {
    try await queueStatistics().oldestAge
  }

  /// Returns the dead letters in the order of arrival; see ``deadLetters(limit:after:)``.
  ///
  /// ```swift
  /// var page = try await queue.deadLetters(limit: 100)
  /// while let last = page.last {
  ///   …
  ///   page = try await queue.deadLetters(limit: 100, after: last.sequence)
  /// }
  /// ```
  ///
  /// - Parameter limit: The maximum number of dead letters. Defaults to no limit.
  /// - Throws: The same errors as ``deadLetters(limit:after:)``.
  public func deadLetters(limit: Int = .max) async throws -> [DeadLetter<Value>] {
    try await deadLetters(limit: limit, after: 0)
  }

  // MARK: Consuming

  /// Waits for an item, processes it with a closure, and acknowledges it.
  ///
  /// When `body` returns, the item is acknowledged. When `body` throws, the item is released with the delay of the
  /// queue's retry policy. `body` should throw if its task is cancelled.
  ///
  /// `body` runs on the actor of the caller, in a task of its own. This task is cancelled if the caller's task is, or if a
  /// renewal finds that the lease has ended, for example because the process was suspended. Acknowledging and releasing
  /// are repeated after an error that a retry can mend, until the lease ends; see ``HeldLeases``. If the release fails, the
  /// item waits again when its lease ends.
  ///
  /// If waiting fails with an error that a retry can mend, such as that of a server that restarts, the method waits and
  /// tries again. It throws the eleventh such error in a row, after about a minute of pauses.
  ///
  /// ```swift
  /// while !Task.isCancelled {
  ///   try await queue.withNext(lease: .seconds(30), renewsLease: true) { delivery in
  ///     try await send(delivery.value)
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - lease: The duration of the lease. It must be greater than zero.
  ///   - renewsLease: A Boolean value that indicates whether the lease is renewed while `body` runs and its task is not
  ///     cancelled. Defaults to `false`. If it is not renewed, a `body` that takes longer than the lease must call
  ///     ``extend(_:lease:)-(DeliveryReceipt,_)`` itself.
  ///   - body: A closure that processes the delivery.
  /// - Returns: The result of `body`.
  /// - Throws: The error of `body`. ``StoreError`` with `staleReceipt` if the lease ended before `body` did, so the
  ///   item will be delivered again, with an error of `body` as the underlying one; otherwise the same errors as
  ///   ``receive(max:lease:)`` and ``acknowledge(_:)-(DeliveryReceipt)``. `CancellationError` if the task was cancelled
  ///   while it waited for an item.
  public func withNext<Result>(
    lease: Duration, renewsLease: Bool = false, _ body: (QueueDelivery<Value>) async throws -> Result
  ) async throws -> Result {
    let delivery = try await nextReadable(lease: lease)
    let leases = hold([delivery.receipt], lease: lease, renews: renewsLease)
    defer { leases.end() }
    let result: Result
    do {
      result = try await leases.run { try await body(delivery) }
    } catch {
      do {
        _ = try await leases.release()
      } catch {
        // The item is delivered again when its lease ends. The error of `body` is the more useful one.
      }
      throw error
    }
    try information.check(stale: try await leases.acknowledge(), for: .acknowledge)
    return result
  }

  private func nextReadable(lease: Duration) async throws -> QueueDelivery<Value> {
    while true {
      if case .success(let delivery) = try await nextOutlastingErrors(lease: lease) { return delivery }
    }
  }

  /// Waits for an item, and tries again after an error of the queue that a retry can mend.
  private func nextOutlastingErrors(lease: Duration) async throws -> Result<QueueDelivery<Value>, StoreError> {
    var failures = 0
    while true {
      do {
        return try await nextDelivery(lease: lease)
      } catch let error as StoreError where error.isRetryable && error.key == nil && failures < 10 {
        // An error with a key concerns an item, whose retries the queue controls.
        failures += 1
        try await clock.sleep(for: RetryPolicy.ofConsumers.delay(afterAttempt: failures))
      }
    }
  }

  /// Returns the items as they become due, each leased when the iterator requests it.
  ///
  /// ```swift
  /// for try await result in queue.deliveries(lease: .seconds(30)) {
  ///   switch result {
  ///   case .success(let delivery):
  ///     try await send(delivery.value)
  ///     try await queue.acknowledge(delivery.receipt)
  ///   case .failure(let error):
  ///     logger.error("\(error)")
  ///   }
  /// }
  /// ```
  ///
  /// An item that cannot be decoded is an element too, with its error. It is delivered again with the delay of the
  /// queue's retry policy, up to its last delivery. If your program lacks something to decode an item, the iterator
  /// throws; see ``receive(max:lease:)``. Several consumers share the items. The sequence ends when the queue is closed.
  ///
  /// If waiting fails with an error that a retry can mend, such as that of a server that restarts, the iterator waits and
  /// tries again. It throws the eleventh such error in a row, after about a minute of pauses. A `QueueWorker` reports each
  /// error and never gives up.
  ///
  /// - Parameter lease: The duration of each lease. It must be greater than zero.
  public func deliveries(lease: Duration) -> QueueDeliveries<Value> {
    QueueDeliveries { try await nextOutlastingErrors(lease: lease) }
  }
}

/// An asynchronous sequence of a queue's items as they become due; see ``DurableQueue/deliveries(lease:)``.
public struct QueueDeliveries<Item: Sendable>: AsyncSequence, Sendable {
  /// A delivery, or an error if an item cannot be read or decoded.
  public typealias Element = Result<QueueDelivery<Item>, StoreError>

  private let receive: @Sendable () async throws -> Element

  init(_ receive: @escaping @Sendable () async throws -> Element) {
    self.receive = receive
  }

  /// Creates an iterator.
  ///
  /// Several iterators share the items.
  public func makeAsyncIterator() -> Iterator {
    Iterator(receive)
  }

  /// An iterator that leases one item at a time.
  public struct Iterator: AsyncIteratorProtocol {
    private let receive: @Sendable () async throws -> Element
    private var isOver = false

    init(_ receive: @escaping @Sendable () async throws -> Element) {
      self.receive = receive
    }

    /// Waits for an item and leases it.
    ///
    /// - Returns: The item, or an error if it cannot be read or decoded; `nil` after the queue is closed.
    /// - Throws: The errors of ``DurableQueue/nextDelivery(lease:)``, of which those that a retry can mend only if ten
    ///   retries in a row have failed. The next call tries again. `CancellationError` if
    ///   the task is cancelled while it waits.
    public mutating func next() async throws -> Element? {
      guard !isOver else { return nil }
      do {
        return try await receive()
      } catch StoreError.Code.closed {
        isOver = true
        return nil
      }
    }
  }
}
