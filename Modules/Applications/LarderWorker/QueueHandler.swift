public import Larder

/// A queue with the closure that processes its items, for a ``QueueWorker``.
///
/// ```swift
/// let mails = QueueHandler(mailQueue, weight: 3, timeLimit: .seconds(20)) { delivery in
///   try await smtp.send(delivery.value)
/// }
/// ```
///
/// When the closure returns, the item is acknowledged. When it throws, the item is released, delivered again after a
/// delay, and becomes a dead letter after its last delivery, as the queue's configuration says. An item is delivered at
/// least once, so the closure must have the same effect if it runs twice.
public struct QueueHandler: Sendable {
  /// The queue.
  let queue: any DurableQueue

  /// The share of the worker's slots that the queue gets if other queues have items too.
  let weight: Int

  /// The duration of each lease.
  let lease: Duration

  /// The longest time for which the closure may run, or `nil` for no limit.
  let timeLimit: Duration?

  /// The delays after failures, or `nil` for those of the queue.
  let retryPolicy: RetryPolicy?

  /// Waits for an item; see `DurableQueue/nextDelivery(lease:)`.
  let next: @Sendable () async throws -> Result<QueueJob, StoreError>

  /// Leases items that are due; see `DurableQueue/receive(max:lease:)`.
  let receive: @Sendable (_ max: Int) async throws -> [QueueJob]

  /// Creates a handler.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - weight: The share of the worker's slots that this queue gets while other queues of the worker have items too,
  ///     at least 1; defaults to 1. A queue with weight 3 gets three slots for each one of a queue with weight 1.
  ///   - lease: The duration of each lease, which must be greater than zero; defaults to 30 seconds. The worker renews
  ///     the lease while the closure runs, so it is only the time after which another consumer receives the items of a
  ///     worker that crashed.
  ///   - timeLimit: The longest time for which the closure may run, greater than zero, or `nil` for no limit. Defaults
  ///     to `nil`. After this time, the task of the closure is cancelled, and the item counts as failed. The closure
  ///     must end when its task is cancelled: it keeps its slot until it does, but not its lease.
  ///   - retryPolicy: The delays after failures. Defaults to `nil`, for the retry policy of the queue.
  ///   - process: A closure that processes one item. It runs in a task of its own.
  public init<Queue: DurableQueue>(
    _ queue: Queue, weight: Int = 1, lease: Duration = .seconds(30), timeLimit: Duration? = nil,
    retryPolicy: RetryPolicy? = nil, process: @escaping @Sendable (Delivery<Queue.Value>) async throws -> Void
  ) {
    self.queue = queue
    self.weight = weight
    self.lease = lease
    self.timeLimit = timeLimit
    self.retryPolicy = retryPolicy
    next = { try await queue.nextDelivery(lease: lease).map { QueueJob($0, process) } }
    receive = { max in try await queue.receive(max: max, lease: lease).map { QueueJob($0, process) } }
  }
}

/// A leased item with the closure that processes it.
struct QueueJob: Sendable {
  let receipt: DeliveryReceipt
  let isSuspect: Bool
  let process: @Sendable () async throws -> Void

  init<Value>(_ delivery: Delivery<Value>, _ process: @escaping @Sendable (Delivery<Value>) async throws -> Void) {
    receipt = delivery.receipt
    isSuspect = delivery.isSuspect
    self.process = { try await process(delivery) }
  }
}
