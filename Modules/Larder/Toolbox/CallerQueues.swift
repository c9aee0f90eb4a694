/// The callers of one process that want the same, such as a lock with a name, in the order of their arrival.
///
/// Each key has a ``WriteGate`` for as long as a caller holds it or waits for it.
///
/// ```swift
/// let imports = CallerQueues<String>()
/// try await imports.withTurn(of: "users.csv") { print("no other task of the process imports this file") }
/// ```
public final class CallerQueues<Key: Hashable & Sendable>: Sendable {
  private struct Queue: Sendable {
    let gate = WriteGate()
    var callerCount = 0
  }

  private let queues = Locked<[Key: Queue]>([:])

  /// Creates queues without callers.
  public init() {}

  /// Waits for the turn of a key, which ``leave(_:)`` ends.
  ///
  /// - Parameter key: The key.
  /// - Throws: `CancellationError`, with the caller not in the queue.
  public func enter(_ key: Key) async throws {
    let gate = queues.withLock { queues in
      queues[key, default: Queue()].callerCount += 1
      return queues[key]?.gate
    }
    do {
      try await gate?.enter(.exclusive)
    } catch {
      _ = removeCaller(key)
      throw error
    }
  }

  /// Takes the turn of a key if no other caller has it or waits for it.
  ///
  /// - Parameter key: The key.
  /// - Returns: A Boolean value that indicates whether the caller has the turn.
  public func tryEnter(_ key: Key) -> Bool {
    queues.withLock { queues in
      var queue = queues[key] ?? Queue()
      guard queue.callerCount == 0, queue.gate.tryEnter(.exclusive) else { return false }
      queue.callerCount = 1
      queues[key] = queue
      return true
    }
  }

  /// Ends the turn of a key.
  ///
  /// - Parameter key: The key, of which the caller has the turn.
  public func leave(_ key: Key) {
    removeCaller(key)?.leave()
  }

  /// Runs a closure in the turn of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - body: The closure.
  /// - Returns: The result of `body`.
  /// - Throws: `CancellationError` while the caller waits; the error that `body` throws.
  public func withTurn<Result>(of key: Key, _ body: () async throws -> Result) async throws -> Result {
    try await enter(key)
    defer { leave(key) }
    return try await body()
  }

  private func removeCaller(_ key: Key) -> WriteGate? {
    queues.withLock { queues in
      guard var queue = queues.removeValue(forKey: key) else { return nil }
      queue.callerCount -= 1
      if queue.callerCount > 0 { queues[key] = queue }
      return queue.gate
    }
  }
}
