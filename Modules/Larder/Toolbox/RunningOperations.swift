import Synchronization

/// A counter of the running operations of a store or decorator, for which closing waits.
///
/// Each operation runs through the counter, and ``DataStore/close()`` ends it:
///
/// ```swift
/// private let operations = RunningOperations()
///
/// func value(forKey key: StoreKey) async throws -> User? {
///   try await operations.run(.value, of: information) { try await fetch(key) }
/// }
///
/// func close() async {
///   await operations.close()
///   releaseFiles()
/// }
/// ```
///
/// `close()` may be called more than once, and each call waits. An operation must not close the counter that it runs in,
/// because the call would wait for itself.
///
/// An operation takes no lock, because decorators count every call.
public final class RunningOperations: Sendable {
  /// Twice the number of running operations, plus 1 if closing has begun.
  private let state = Atomic<Int>(0)

  /// The callers of ``close()`` that wait until no operation is running.
  private let waiters = Locked<[CheckedContinuation<Void, Never>]>([])

  /// Creates a counter without running operations.
  public init() {}

  /// Records the start of an operation, unless closing has begun.
  ///
  /// Call ``end()`` when the operation ends.
  ///
  /// - Returns: A Boolean value that indicates whether the operation may run. It is `false` once closing has begun.
  public func begin() -> Bool {
    guard state.add(2, ordering: .acquiring).oldValue & 1 == 0 else {
      end()
      return false
    }
    return true
  }

  /// Records the end of an operation.
  public func end() {
    guard state.subtract(2, ordering: .acquiringAndReleasing).newValue == 1 else { return }
    // This was the last one, and closing has begun.
    let ended = waiters.withLock { waiters in
      defer { waiters = [] }
      return waiters
    }
    for continuation in ended { continuation.resume() }
  }

  /// Runs an operation, for which closing waits.
  ///
  /// - Parameters:
  ///   - operation: The operation, for the error.
  ///   - information: The information of the store, for the error.
  ///   - body: A closure that performs the operation.
  /// - Throws: ``StoreError`` with `closed` if closing has begun; the error that `body` throws.
  public func run<Result>(
    _ operation: StoreOperation, of information: @autoclosure () -> StoreInformation,
    _ body: () async throws -> Result
  ) async throws -> Result {
    guard begin() else { throw information().closedError(for: operation) }
    defer { end() }
    return try await body()
  }

  /// A Boolean value that indicates whether closing has begun, so no further operation may start.
  public var isClosing: Bool {
    state.load(ordering: .acquiring) & 1 == 1
  }

  /// Prevents further operations from starting, and waits for the running ones to end.
  public func close() async {
    await withCheckedContinuation { continuation in
      // Under the lock, so that the last operation finds the continuation.
      let isQuiet = waiters.withLock { waiters in
        let isQuiet = state.bitwiseOr(1, ordering: .acquiringAndReleasing).oldValue < 2
        if !isQuiet { waiters.append(continuation) }
        return isQuiet
      }
      if isQuiet { continuation.resume() }
    }
  }
}
