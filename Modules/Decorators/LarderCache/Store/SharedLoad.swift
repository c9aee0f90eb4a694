import Larder

/// A read of some keys of the base that any number of readers wait for.
///
/// It does not belong to any of them. A reader that is cancelled stops waiting, and the load continues.
final class SharedLoad: Sendable {
  typealias Values = [(any CachedValue)?]
  private typealias Waiter = CheckedContinuation<Values, any Error>

  /// The part of a load that concerns one key.
  struct Part: Sendable {
    let load: SharedLoad
    /// The index of the key among those of the load.
    let index: Int

    /// Waits for the value; see ``SharedLoad/values()``.
    func value() async throws -> (any CachedValue)? { try await load.values()[index] }
  }

  private struct State {
    var result: Result<Values, any Error>?
    var keys: [StoreKey] = []
    var waiters: [UInt64: Waiter] = [:]
    var nextID: UInt64 = 0
    var task: Task<Void, Never>?
    // The priority of the task, or the one that it will get.
    var priority = TaskPriority.background
  }

  private let state = Locked(State())

  /// The keys that were read, once there is a result.
  var keys: [StoreKey] { state.withLock { $0.keys } }

  /// Records the task that performs the load, and raises its priority to that of the most urgent reader.
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
  /// - Throws: The error of the base; `CancellationError` if the task is cancelled before there is a result.
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
        // A cancellation before this point is noticed here. A later one finds the waiter.
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

  /// Passes the result to all waiters, including those that arrive later.
  ///
  /// - Parameters:
  ///   - result: The values, one for each key, or the error of the base.
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

/// The running background loads, and the keys that are left alone for a while because a load has failed.
struct Refreshes: Sendable {
  /// The maximum number of background loads at a time.
  ///
  /// Beyond it, a reader that finds an entry due leaves it to the next reader.
  private static var highestCount: Int { 4 }

  /// The maximum number of keys that are paused individually.
  private static var highestPausedKeyCount: Int { 64 }

  /// The number of running loads.
  private(set) var count = 0

  /// The time when nothing is loaded.
  ///
  /// It has a beginning, too, because a wall clock can be set back.
  private var pause: Range<Duration>?

  /// The times in which keys that could not be read are not loaded.
  private var keyPauses: [StoreKey: Range<Duration>] = [:]

  /// Begins a load, unless too many others are running or one has failed a short time ago.
  ///
  /// - Parameters:
  ///   - keys: The keys whose entries are due.
  ///   - time: The current time.
  /// - Returns: The keys that may be loaded, or `nil` if there isn't one, in which case nothing has begun.
  mutating func begin(_ keys: [StoreKey], at time: Duration) -> Set<StoreKey>? {
    guard count < Refreshes.highestCount, pause?.contains(time) != true else { return nil }
    let allowed = Set(keys.filter { keyPauses[$0]?.contains(time) != true })
    guard !allowed.isEmpty else { return nil }
    count += 1
    return allowed
  }

  /// Ends a load.
  ///
  /// If the failure concerns some keys, only those are paused. If there are many of them, all loads are.
  ///
  /// - Parameters:
  ///   - keys: The keys that were read.
  ///   - failure: The error of the base, or `nil` if the read succeeded.
  ///   - time: The current time.
  ///   - end: The time until which the load is not repeated after a failure.
  mutating func end(_ keys: [StoreKey], failure: (any Error)?, at time: Duration, pauseEnd end: Duration) {
    count -= 1
    guard let failure else { return }
    let newPause = time..<max(time, end)
    keyPauses = keyPauses.filter { $0.value.contains(time) }
    let faulty = (failure as? StoreError)?.keysAtFault(among: keys) ?? []
    guard !faulty.isEmpty, keyPauses.count + faulty.count <= Refreshes.highestPausedKeyCount else {
      pause = newPause
      return
    }
    for key in faulty { keyPauses[key] = newPause }
  }
}

extension StoreError {
  /// Returns the keys of a load that this error concerns, or an empty array if it may concern the whole base.
  fileprivate func keysAtFault(among keys: [StoreKey]) -> [StoreKey] {
    // A failing base may name the key that it was asked for. A missing encryption key concerns one entry.
    guard !isRetryable || code == .keyUnavailable, ![.ioFailed, .timedOut, .locked, .conflict, .closed].contains(code)
    else { return [] }
    let lost = (underlying as? any UnreadableKeysError)?.keys
    return keys.filter { $0 == key || lost?.contains($0) == true }
  }
}
