public import Larder

/// The events of a ``QueueWorker`` since it was created.
public struct QueueWorkerStatistics: Sendable, Hashable {
  /// The number of items that are being processed now, including those of hung closures.
  public internal(set) var running = 0

  /// The number of items that were processed and acknowledged.
  public internal(set) var processed = 0

  /// The number of times that an item failed, without those whose closure exceeded its time limit.
  public internal(set) var failed = 0

  /// The number of times that an item failed because its closure exceeded its time limit.
  public internal(set) var timedOut = 0

  /// The number of times that the lease of an item ended before the item was processed and acknowledged.
  public internal(set) var leasesLost = 0

  /// The number of items that were given back unprocessed because the worker was stopped, or had no free slot.
  public internal(set) var givenBack = 0

  /// The number of items that became dead letters.
  public internal(set) var dead = 0

  /// The number of errors of the queues themselves, such as a full disk or an item that cannot be decoded.
  public internal(set) var queueErrors = 0
}

/// The health of a ``QueueWorker``, from which you learn whether it can process items.
public struct QueueWorkerHealth: Sendable, Hashable {
  /// A Boolean value that indicates whether ``QueueWorker/run()`` is running.
  public internal(set) var isRunning: Bool

  /// The number of slots: ``QueueWorker/concurrency``.
  public internal(set) var slots: Int

  /// The number of slots whose closures have ignored their cancellation for ``QueueWorker/cancellationLimit``.
  ///
  /// Such a slot is free again when its closure ends.
  public internal(set) var hungSlots: Int

  /// A Boolean value that indicates whether all slots have hung closures, so the worker processes nothing.
  ///
  /// A new process continues the work.
  public var isStalled: Bool { hungSlots >= slots }
}

/// Something that a ``QueueWorker`` reports while it works.
public enum QueueWorkerEvent: Sendable {
  /// Items failed: their closure threw, reported them as failed, or exceeded its time limit. The items were released. The queue
  /// has the given name, and the items the given keys, several only for a closure of batches.
  case failed(queue: String, keys: [StoreKey], attempt: Int, error: any Error)

  /// The leases of items ended before the items were processed and acknowledged, so another consumer may have them.
  ///
  /// If their closure was running, it was cancelled.
  case leaseLost(queue: String, keys: [StoreKey], attempt: Int)

  /// A closure has ignored its cancellation, and keeps its slot until it ends.
  case slotHung(queue: String, health: QueueWorkerHealth)

  /// All slots have hung closures, so the worker processes nothing until one of them ends.
  case stalled(health: QueueWorkerHealth)

  /// An item became a dead letter.
  case dead(queue: String, DeadLetterEvent)

  /// A queue failed: it could not be read or written, or an item could not be decoded. The worker tries again.
  case queueFailed(queue: String, error: any Error)
}

extension QueueWorkerEvent: CustomStringConvertible {
  /// A line for a log.
  ///
  /// It contains neither a key nor a value, unless the error of a closure does.
  public var description: String {
    switch self {
    case .failed(let queue, _, let attempt, let error): "\(queue): attempt \(attempt) failed: \(error)"
    case .leaseLost(let queue, _, let attempt):
      "\(queue): attempt \(attempt): the lease ended before the item was processed and acknowledged"
    case .slotHung(let queue, let health):
      "\(queue): a closure ignores its cancellation and keeps its slot; \(health.hungSlots) of \(health.slots) are hung"
    case .stalled(let health):
      "all \(health.slots) slots have closures that ignore their cancellation; start a new process"
    case .dead(let queue, let deadLetter): "\(queue): \(deadLetter)"
    case .queueFailed(let queue, let error): "\(queue): \(error)"
    }
  }

  /// A line for a log, with the keys of the items.
  ///
  /// Use it only where personal data is allowed. `larder queue dead` takes these keys.
  public var detailedDescription: String {
    let keys: [StoreKey] =
      switch self {
      case .failed(_, let keys, _, _), .leaseLost(_, let keys, _): keys
      case .dead(_, let deadLetter): [deadLetter.key]
      case .slotHung, .stalled, .queueFailed: []
      }
    let text = keys.map(\.description).joined(separator: ", ")
    return keys.isEmpty ? description : "\(description) (key \(text))"
  }
}
