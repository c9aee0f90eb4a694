import Larder

/// The callers of one object that want the same, such as a lock with a name, in the order of their arrival.
///
/// Each key has a lock for as long as a caller holds it or waits for it.
final class CallerQueues: Sendable {
  private struct Queue: Sendable {
    let gate = WriteGate()
    var callerCount = 0
  }

  private let queues = Locked<[StoreKey: Queue]>([:])

  /// Waits for the turn of a key, which ``leave(_:)`` ends.
  ///
  /// - Throws: `CancellationError`.
  func enter(_ key: StoreKey) async throws {
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
  /// - Returns: Whether the caller has it.
  func tryEnter(_ key: StoreKey) -> Bool {
    queues.withLock { queues in
      var queue = queues[key] ?? Queue()
      guard queue.callerCount == 0, queue.gate.tryEnter(.exclusive) else { return false }
      queue.callerCount = 1
      queues[key] = queue
      return true
    }
  }

  /// Ends the turn of a key.
  func leave(_ key: StoreKey) {
    removeCaller(key)?.leave()
  }

  private func removeCaller(_ key: StoreKey) -> WriteGate? {
    queues.withLock { queues in
      guard var queue = queues.removeValue(forKey: key) else { return nil }
      queue.callerCount -= 1
      if queue.callerCount > 0 { queues[key] = queue }
      return queue.gate
    }
  }
}
