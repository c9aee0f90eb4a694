import Larder
import Synchronization

/// A base read of some keys, for which any number of readers wait.
///
/// It belongs to none of them: who is cancelled stops waiting, and it goes on.
final class SharedLoad: Sendable {
  typealias Values = [(any CachedValue)?]
  private typealias Waiter = CheckedContinuation<Values, any Error>

  /// What one key gets of a load.
  struct Part: Sendable {
    let load: SharedLoad
    /// The place of the key among those of the load.
    let place: Int

    /// Waits for the value; see ``SharedLoad/values()``.
    func value() async throws -> (any CachedValue)? { try await load.values()[place] }
  }

  private struct State {
    var result: Result<Values, any Error>?
    var keys: [StoreKey] = []
    var waiters: [UInt64: Waiter] = [:]
    var nextID: UInt64 = 0
    var task: Task<Void, Never>?
    // The priority of the task, or what it is to become.
    var priority = TaskPriority.background
  }

  private let state = Mutex(State())

  /// The keys that were read, once there is a result.
  var keys: [StoreKey] { state.withLock { $0.keys } }

  /// Takes note of the task that makes the load, whose priority becomes that of the most urgent reader.
  func begin(in task: Task<Void, Never>) {
    let priority: TaskPriority? = state.withLock { state in
      guard state.result == nil else { return nil }
      state.task = task
      return state.priority
    }
    if let priority { SharedLoad.raise(task, to: priority) }
  }

  private static func raise(_ task: Task<Void, Never>, to priority: TaskPriority) {
    if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) { task.escalatePriority(to: priority) }
  }

  /// Waits for the result.
  ///
  /// - Throws: What the base threw; `CancellationError` where the task is cancelled before there is a result.
  func values() async throws -> Values {
    if let result = state.withLock({ $0.result }) { return try result.get() }
    let priority = Task.currentPriority
    let (id, task) = state.withLock { state in
      state.nextID += 1
      guard priority > state.priority else { return (state.nextID, nil as Task<Void, Never>?) }
      state.priority = priority
      return (state.nextID, state.task)
    }
    if let task { SharedLoad.raise(task, to: priority) }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiter in
        // A cancellation that came before this is seen here; one that comes after it finds the waiter.
        let result: Result<Values, any Error>? = state.withLock { state in
          if let result = state.result { return result }
          if Task.isCancelled { return .failure(CancellationError()) }
          state.waiters[id] = waiter
          return nil
        }
        if let result { waiter.resume(with: result) }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }
  }

  /// Gives all who wait, and all who still come, the result.
  ///
  /// - Parameters:
  ///   - result: The values, one for each key, or what the base threw.
  ///   - keys: The keys that were read.
  func finish(_ result: Result<Values, any Error>, of keys: [StoreKey]) {
    let waiters = state.withLock { state in
      state.result = result
      state.keys = keys
      state.task = nil
      defer { state.waiters = [:] }
      return state.waiters
    }
    for waiter in waiters.values { waiter.resume(with: result) }
  }
}
