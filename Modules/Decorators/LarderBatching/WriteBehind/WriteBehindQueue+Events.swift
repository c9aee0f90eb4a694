import Larder

extension WriteBehindQueue {
  /// A request of a caller.
  enum Request: Sendable {
    /// A batch that contains no range removal and fits the limit.
    case write(SizedBatch<Value>)
    case turn
  }

  /// The answer to an arriving caller.
  enum Arrival: Sendable {
    /// The write is accepted, the turn begins, or there is nothing to wait for.
    case begins
    /// The caller waits, under a number by which it can leave.
    case waits(UInt64)
    /// The queue is closed.
    case refused
    /// There is no room for the write, or the base is down.
    case fails(any Error)
  }

  /// The action to take on the flusher.
  enum FlusherCall: Equatable, Sendable {
    case none
    /// The flusher must be started.
    case start
    /// The flusher waits and must be woken.
    case wake
  }

  /// A caller to resume.
  struct Resumption: Sendable {
    let caller: Caller
    let outcome: TurnOutcome
  }

  /// The actions to take after an event.
  struct Consequences: Sendable {
    /// The callers to resume.
    var resumptions: [Resumption] = []
    var flusher = FlusherCall.none
    /// Changes that are no longer needed, to be released outside the lock.
    var released: [PendingChanges<Value>] = []
  }

  /// The next step of the flusher.
  enum FlusherStep: Sendable {
    /// It waits for a duration or until it is woken.
    case wait(Duration)
    /// It writes the batches, besides which others are retained. Joining them takes time and is done outside the lock.
    ///
    /// If retries have not helped for some time, `isolatesErrors` is `true`.
    case flush([SizedBatch<Value>], retained: [SizedBatch<Value>], isolatesErrors: Bool)
    case end
  }

  /// The result of a flush.
  struct FlushResult: Sendable {
    /// The batches that were given up.
    var failures: [WriteBehindFailure<Value>] = []
    /// All batches that must be tried again, including those that the flush did not try.
    var retained = PendingChanges<Value>()
    /// The error of the first batch that was tried and is retained.
    var error: StoreError?
    /// A Boolean value that indicates whether the error may concern every change to the base.
    var isBaseDown = false
  }
}

/// The errors of the callers of a ``WriteBehindQueue``.
struct WriteBehindErrors: Sendable {
  /// The name of the store.
  let store: String

  /// The error of a caller that waited when closing reached its limit.
  let closed: StoreError

  /// The error of a write for which failures leave no room.
  ///
  /// - Parameter first: The error of the first failure.
  func full(_ first: StoreError) -> StoreError {
    StoreError(
      .full, during: .apply, store: store,
      message: "failed changes fill the bounds; call takeFailures() to handle them and free the space",
      underlying: first)
  }

  /// The error of a caller that needs the base while accepted changes cannot be written.
  ///
  /// - Parameter error: The error of the changes.
  func baseDown(_ error: StoreError) -> StoreError {
    StoreError(
      error.code, during: .flush, store: store,
      message: "accepted changes cannot be written yet, and are tried again: \(error.message)", underlying: error,
      isRetryable: true)
  }

  /// The error of changes that closing could not write.
  ///
  /// - Parameters:
  ///   - error: The error with which they failed last, if they did.
  func unwritten(_ error: StoreError?) -> StoreError {
    StoreError(
      .timedOut, during: .close, store: store,
      message: "accepted changes were not written before the limit of closing; call takeFailures() to handle them",
      underlying: error, outcome: error?.outcome ?? .nothingChanged)
  }
}
