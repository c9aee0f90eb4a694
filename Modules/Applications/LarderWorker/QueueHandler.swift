public import Larder

/// A queue with the closure that processes its items, for a ``QueueWorker``.
///
/// ```swift
/// let mails = QueueHandler(mailQueue, weight: 3, timeLimit: .seconds(20)) { delivery in
///   try await smtp.send(delivery.value)
/// }
/// ```
///
/// A handler with a batch size passes several items to its closure at the same time, for example to send them in one request:
///
/// ```swift
/// let events = QueueHandler(outbox, batch: 50) { deliveries in
///   try await server.post(deliveries.map(\.value))
/// }
/// ```
///
/// If only some of them can fail, the closure returns their errors by their receipts, and the others are acknowledged:
///
/// ```swift
/// let events = QueueHandler(outbox, partialBatch: 50) { deliveries in
///   let refused = try await server.post(deliveries.map(\.value))  // the errors of refused events, by position
///   return Dictionary(uniqueKeysWithValues: refused.map { (deliveries[$0].receipt, $1) })
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

  /// The valid weights.
  static let weights = 1...1000

  /// The duration of each lease.
  let lease: Duration

  /// The longest time that the closure may run, or `nil` for no limit.
  let timeLimit: Duration?

  /// The delays after failures, or `nil` for those of the queue.
  let retryPolicy: RetryPolicy?

  /// The limiter of all programs, of which each call of the closure has a permit, or `nil`.
  let limiter: StoreLimiter?

  /// The maximum number of items in one call of the closure.
  let batch: Int

  /// The time by the queue's clock, which measures the ages of leases.
  let time: ElapsedTime

  /// Waits for an item, takes a slot for it, and leases further ones that are due if the handler takes batches.
  let next: @Sendable (_ takeSlot: @Sendable () -> Bool) async throws -> Result<AwaitedJobs, StoreError>

  /// Leases items that are due, for a number of calls of the closure.
  let receive: @Sendable (_ count: Int) async throws -> [QueueJob]

  /// Returns whether an item is due.
  let hasItems: @Sendable () async throws -> Bool

  /// Creates a handler whose closure processes one item.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - weight: The share of the worker's slots that this queue gets while other queues of the worker have items too,
  ///     from 1 to 1,000. Defaults to 1. A queue with weight 3 gets three slots for each one of a queue with weight 1.
  ///   - lease: The duration of each lease. It must be greater than zero. Defaults to 30 seconds. The worker renews the
  ///     lease while the closure runs, so it is only the time after which another consumer receives the items of a
  ///     worker that crashed.
  ///   - timeLimit: The longest time that the closure may run, greater than zero, or `nil` for no limit. Defaults to
  ///     `nil`. After this time, the task of the closure is cancelled, and the item counts as failed. The closure must
  ///     end when its task is cancelled. If it does not within ``QueueWorker/cancellationLimit``, the item is released
  ///     nevertheless, and the closure keeps its slot until it ends.
  ///   - retryPolicy: The delays after failures. Defaults to `nil`, for the retry policy of the queue.
  ///   - limiter: A limiter of all programs that share its store. Each call of the closure has a permit of it, with a start for
  ///     each item, which is taken before the item is leased. Defaults to `nil`, for no limit.
  ///   - process: A closure that processes one item. It runs in a task of its own.
  public init<Queue: DurableQueue>(
    _ queue: Queue, weight: Int = 1, lease: Duration = .seconds(30), timeLimit: Duration? = nil,
    retryPolicy: RetryPolicy? = nil, limiter: StoreLimiter? = nil,
    process: @escaping @Sendable (QueueDelivery<Queue.Value>) async throws -> Void
  ) {
    self.init(
      queue, partialBatch: 1, weight: weight, lease: lease, timeLimit: timeLimit, retryPolicy: retryPolicy,
      limiter: limiter
    ) {
      for delivery in $0 { try await process(delivery) }
      return [:]
    }
  }

  /// Creates a handler whose closure processes several items, which are all acknowledged or all released.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - batch: The maximum number of items in one call of the closure, at least 1. The closure gets those that are due,
  ///     and does not wait for more.
  ///   - weight: The share of the worker's slots, from 1 to 1,000. Defaults to 1. A batch takes one slot.
  ///   - lease: The duration of each lease. It must be greater than zero. Defaults to 30 seconds.
  ///   - timeLimit: The longest time that the closure may run, or `nil` for no limit. Defaults to `nil`.
  ///   - retryPolicy: The delays after failures. Defaults to `nil`, for the retry policy of the queue.
  ///   - limiter: A limiter of all programs that share its store. Defaults to `nil`, for no limit. Each call of the
  ///     closure has a permit of it, with a start for each item, so a batch must not be greater than the burst of a
  ///     rate limit.
  ///   - process: A closure that processes at least one item, in the order of delivery. An item that may have crashed its
  ///     consumer comes alone.
  public init<Queue: DurableQueue>(
    _ queue: Queue, batch: Int, weight: Int = 1, lease: Duration = .seconds(30), timeLimit: Duration? = nil,
    retryPolicy: RetryPolicy? = nil, limiter: StoreLimiter? = nil,
    process: @escaping @Sendable ([QueueDelivery<Queue.Value>]) async throws -> Void
  ) {
    self.init(
      queue, partialBatch: batch, weight: weight, lease: lease, timeLimit: timeLimit, retryPolicy: retryPolicy,
      limiter: limiter
    ) {
      try await process($0)
      return [:]
    }
  }

  /// Creates a handler whose closure processes several items, and returns the errors of those that failed.
  ///
  /// - Parameters:
  ///   - queue: The queue.
  ///   - partialBatch: The maximum number of items in one call of the closure, at least 1. The closure gets those that are due,
  ///     and does not wait for more.
  ///   - weight: The share of the worker's slots, from 1 to 1,000. Defaults to 1. A batch takes one slot.
  ///   - lease: The duration of each lease. It must be greater than zero. Defaults to 30 seconds.
  ///   - timeLimit: The longest time that the closure may run, or `nil` for no limit. Defaults to `nil`.
  ///   - retryPolicy: The delays after failures. Defaults to `nil`, for the retry policy of the queue.
  ///   - limiter: A limiter of all programs that share its store. Defaults to `nil`, for no limit. Each call of the
  ///     closure has a permit of it, with a start for each item, so a batch must not be greater than the burst of a
  ///     rate limit.
  ///   - process: A closure that processes at least one item, in the order of delivery, and returns the errors of those
  ///     that failed, by their receipts. These are released, and the others are acknowledged. If it throws, all are
  ///     released.
  public init<Queue: DurableQueue>(
    _ queue: Queue, partialBatch: Int, weight: Int = 1, lease: Duration = .seconds(30), timeLimit: Duration? = nil,
    retryPolicy: RetryPolicy? = nil, limiter: StoreLimiter? = nil,
    process: @escaping @Sendable ([QueueDelivery<Queue.Value>]) async throws -> [DeliveryReceipt: any Error]
  ) {
    let batch = partialBatch
    self.queue = queue
    self.batch = batch
    self.weight = weight
    self.lease = lease
    self.timeLimit = timeLimit
    self.retryPolicy = retryPolicy
    self.limiter = limiter
    let time = ElapsedTime(by: queue.clock)
    self.time = time
    next = { takeSlot in
      switch try await queue.nextDelivery(lease: lease) {
      case .failure(let error): return .failure(error)
      case .success(let first):
        let start = time.duration
        guard takeSlot() else { return .success(.withoutSlot(first.receipt)) }
        guard batch > 1, !first.isSuspect else { return .success(.withSlot([QueueJob([first], at: start, process)])) }
        var others: [QueueDelivery<Queue.Value>] = []
        do {
          others = try await queue.receive(max: batch - 1, lease: lease)
        } catch {
          // The next call reports the error. The first item is leased, and is not held back by it.
        }
        return .success(.withSlot(QueueJob.jobs(of: [first] + others, batch: batch, at: start, process)))
      }
    }
    receive = { count in
      let start = time.duration
      let max = count.multipliedReportingOverflow(by: batch)
      let deliveries = try await queue.receive(max: max.overflow ? .max : max.partialValue, lease: lease)
      return QueueJob.jobs(of: deliveries, batch: batch, at: start, process)
    }
    hasItems = { try await !queue.peek(max: 1).isEmpty }
  }

  /// Returns the leases of a job, which are renewed from now on.
  func hold(_ job: QueueJob) -> HeldLeases {
    queue.hold(job.receipts, lease: lease, age: time.duration - job.start)
  }
}

/// The result of waiting for an item.
enum AwaitedJobs: Sendable {
  /// Jobs, and one slot was taken.
  case withSlot([QueueJob])
  /// An item that came while no slot was free.
  case withoutSlot(DeliveryReceipt)
}

/// Leased items with the closure that processes them together.
struct QueueJob: Sendable {
  let receipts: [DeliveryReceipt]
  private let keys: [StoreKey]
  let isSuspect: Bool
  /// A time that is not later than the beginning of the leases, by ``QueueHandler/time``.
  let start: Duration
  let process: @Sendable () async throws -> [DeliveryReceipt: any Error]

  init<Value>(
    _ deliveries: [QueueDelivery<Value>], at start: Duration,
    _ process: @escaping @Sendable ([QueueDelivery<Value>]) async throws -> [DeliveryReceipt: any Error]
  ) {
    // An item that was released in the meantime may be older than one that was received before.
    let deliveries = deliveries.sorted { ($1.priority, $0.receipt.sequence) < ($0.priority, $1.receipt.sequence) }
    receipts = deliveries.map(\.receipt)
    keys = deliveries.map(\.key)
    isSuspect = deliveries.contains(where: \.isSuspect)
    self.start = start
    self.process = { try await process(deliveries) }
  }

  /// Returns the keys of some of the job's items.
  func keys(of receipts: some Sequence<DeliveryReceipt>) -> [StoreKey] {
    let receipts = Set(receipts)
    return zip(self.receipts, keys).filter { receipts.contains($0.0) }.map { $0.1 }
  }

  /// Divides deliveries into jobs, with each suspect item in a job of its own, after all others.
  static func jobs<Value>(
    of deliveries: [QueueDelivery<Value>], batch: Int, at time: Duration,
    _ process: @escaping @Sendable ([QueueDelivery<Value>]) async throws -> [DeliveryReceipt: any Error]
  ) -> [QueueJob] {
    let suspects = deliveries.filter(\.isSuspect)
    let others = deliveries.filter { !$0.isSuspect }
    return stride(from: 0, to: others.count, by: batch).map { start in
      QueueJob(Array(others[start..<min(start + batch, others.count)]), at: time, process)
    } + suspects.map { QueueJob([$0], at: time, process) }
  }

  /// The largest number of deliveries of an item.
  var attempt: Int { receipts.map { Int($0.attempt) }.max() ?? 1 }
}
