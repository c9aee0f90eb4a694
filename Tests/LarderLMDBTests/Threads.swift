#if LMDB
import Dispatch
import Larder
import Synchronization

/// Threads that may block, outside of the pool of Swift's tasks.
enum Threads {
  /// Runs a closure on several threads in parallel, and waits for all of them.
  ///
  /// - Parameter body: The closure. It receives the number of its thread.
  /// - Throws: The first error of a thread.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<count {
        group.addTask {
          try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            // Each thread has its own queue. The global queues have no more threads than tasks do, so the tasks would
            // wait.
            DispatchQueue(label: "Threads \(number)").async {
              continuation.resume(with: Result { try body(number) })
            }
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

/// A counter for several threads.
final class Tally: Sendable {
  private let state = Atomic(0)

  var count: Int { state.load(ordering: .acquiring) }

  func add() {
    state.add(1, ordering: .acquiringAndReleasing)
  }
}

/// Runs a closure on its own thread, which stops at a point until it is released.
final class HeldRead: Sendable {
  private let released = DispatchSemaphore(value: 0)
  private let state = Locked((isHeld: false, waiter: nil as CheckedContinuation<Void, Never>?))

  /// The recorded notes, in order.
  var notes: [String] { kept.withLock { $0 } }

  private let kept = Locked<[String]>([])

  func note(_ text: String) {
    kept.withLock { $0.append(text) }
  }

  /// Runs a closure that calls `hold()`.
  func run(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      DispatchQueue(label: "HeldRead").async {
        let result = Result { try body() }
        // If the closure failed before it called `hold()`, waiters still resume.
        self.noteHeld()
        continuation.resume(with: result)
      }
    }
  }

  /// Stops the thread until `release()`, for at most ten minutes, because a busy machine may delay the release.
  func hold() {
    noteHeld()
    _ = released.wait(timeout: .now() + 600)
  }

  /// Waits until the thread has called `hold()`.
  func isHeld() async {
    await withCheckedContinuation { continuation in
      let isHeld = state.withLock { state in
        if !state.isHeld { state.waiter = continuation }
        return state.isHeld
      }
      if isHeld { continuation.resume() }
    }
  }

  func release() {
    released.signal()
  }

  private func noteHeld() {
    let waiter = state.withLock { state in
      defer { state = (true, nil) }
      return state.waiter
    }
    waiter?.resume()
  }
}
#endif
