public import Larder

/// The events of a ``QueueWorker`` since it was created.
public struct QueueWorkerStatistics: Sendable, Hashable {
  /// The number of items that are being processed now.
  public internal(set) var running = 0

  /// The number of items that were processed and acknowledged.
  public internal(set) var processed = 0

  /// The number of times that a closure threw, without those that exceeded their time limit.
  public internal(set) var failed = 0

  /// The number of times that a closure exceeded its time limit.
  public internal(set) var timedOut = 0

  /// The number of items that were given back unprocessed because the worker was stopped.
  public internal(set) var givenBack = 0

  /// The number of items that became dead letters.
  public internal(set) var dead = 0

  /// The number of errors of the queues themselves, such as a full disk or an item that cannot be decoded.
  public internal(set) var queueErrors = 0
}

/// Something that a ``QueueWorker`` reports while it works.
public enum QueueWorkerEvent: Sendable {
  /// A closure threw, or exceeded its time limit, and its item was released. The queue has the given name.
  case failed(queue: String, attempt: Int, error: any Error)

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
    case .failed(let queue, let attempt, let error): "\(queue): attempt \(attempt) failed: \(error)"
    case .dead(let queue, let deadLetter): "\(queue): \(deadLetter)"
    case .queueFailed(let queue, let error): "\(queue): \(error)"
    }
  }
}
