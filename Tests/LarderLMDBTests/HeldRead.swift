import Dispatch
import Synchronization

/// Runs something on a thread of its own that stops at a point until it is released.
final class HeldRead: Sendable {
  private let released = DispatchSemaphore(value: 0)
  private let state = Mutex((isHeld: false, waiter: nil as CheckedContinuation<Void, Never>?))

  /// What was noted, in order.
  var notes: [String] { kept.withLock { $0 } }

  private let kept = Mutex<[String]>([])

  func note(_ text: String) {
    kept.withLock { $0.append(text) }
  }

  /// Runs a closure, which calls `hold()`.
  func run(_ body: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      DispatchQueue(label: "HeldRead").async {
        let result = Result { try body() }
        // Where it failed before it held, nobody waits for that for ever.
        self.noteHeld()
        continuation.resume(with: result)
      }
    }
  }

  /// Stops the thread until `release()`, ten minutes at most: a busy machine may let the one that releases wait.
  func hold() {
    noteHeld()
    _ = released.wait(timeout: .now() + 600)
  }

  /// Waits until the thread has come to `hold()`.
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
