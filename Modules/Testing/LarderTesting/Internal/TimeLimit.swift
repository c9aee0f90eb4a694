import Dispatch
import Foundation
import Synchronization

/// Runs an operation for no longer than a certain time, whether it can be cancelled or not.
struct TimeLimit: Sendable {
  /// One queue for all: it has a thread even if operations that hang block all those that tasks share.
  private static let queue = DispatchQueue(label: "LarderTesting.TimeLimit")

  private let duration: Duration
  private let what: String

  init(_ duration: Duration, of what: String) {
    self.duration = duration
    self.what = what
  }

  /// Runs an operation in a task of its own, which is cancelled when the time is over, and then left to itself.
  ///
  /// - Throws: What the operation throws; a ``Mismatch`` if the time is over first.
  func run(_ operation: @escaping @Sendable () async throws -> Void) async throws {
    let race = Race()
    let task = Task {
      do {
        try await operation()
        race.end(with: .success(()))
      } catch {
        race.end(with: .failure(error))
      }
    }
    let timer = DispatchSource.makeTimerSource(queue: TimeLimit.queue)
    timer.setEventHandler { [what, duration] in
      let mismatch = Mismatch(
        subject: "whether the case ends", expected: "an end within \(duration)",
        got: "it goes on, or waits for something", place: "")
      guard race.end(with: .failure(mismatch)) else { return }
      // At once: if every thread of the tasks is blocked, no test can say so any more.
      FileHandle.standardError.write(Data("LarderTesting: \(what) has not ended within \(duration).\n".utf8))
      task.cancel()
    }
    timer.schedule(deadline: .now() + duration / .seconds(1))
    timer.activate()
    defer { timer.cancel() }
    try await withTaskCancellationHandler {
      await race.winner()
    } onCancel: {
      task.cancel()
    }.get()
  }
}

/// What comes first, for one who waits for it.
private final class Race: Sendable {
  private struct State {
    var first: Result<Void, any Error>?
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  /// Ends the race, unless it has ended.
  ///
  /// - Returns: Whether this was the first to end it.
  @discardableResult
  func end(with result: Result<Void, any Error>) -> Bool {
    let (isFirst, waiter) = state.withLock { state in
      guard state.first == nil else { return (false, nil as CheckedContinuation<Void, Never>?) }
      state.first = result
      return (true, state.waiter)
    }
    waiter?.resume()
    return isFirst
  }

  /// The first result, once there is one.
  func winner() async -> Result<Void, any Error> {
    while true {
      if let first = state.withLock({ $0.first }) { return first }
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.first == nil { state.waiter = continuation }
          return state.first != nil
        }
        if isOver { continuation.resume() }
      }
    }
  }
}
