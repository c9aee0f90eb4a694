import Larder

/// The locks of the keys that running writes change, so writes of the same key run one after another.
///
/// Writes of different keys run at the same time. The locks are given in the order of arrival, so no write waits forever.
final class KeyLocks: Sendable {
  private struct State: Sendable {
    var order = LockOrder()
    var waiters: [Int: CheckedContinuation<Bool, Never>] = [:]
  }

  private let state = Locked(State())

  /// Runs a closure while it holds the locks of some keys.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before it has the locks; the error that `body` throws.
  func withLock<Result>(of keys: LockedKeys, _ body: () async throws -> Result) async throws -> Result {
    let (number, hasLocks) = state.withLock { $0.order.begin(keys) }
    if !hasLocks { try await wait(for: number) }
    defer { end(number) }
    return try await body()
  }

  private func wait(for number: Int) async throws {
    let hasLocks = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let result: Bool? = state.withLock { state in
          // The locks, or a cancellation, may have arrived before the continuation.
          if state.order.isRunning(number) { return true }
          if Task.isCancelled { return false }
          state.waiters[number] = continuation
          return nil
        }
        if let result { continuation.resume(returning: result) }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: number) }?.resume(returning: false)
    }
    guard hasLocks else {
      end(number)
      throw CancellationError()
    }
  }

  private func end(_ number: Int) {
    let next = state.withLock { state in
      state.order.end(number).compactMap { state.waiters.removeValue(forKey: $0) }
    }
    for waiter in next { waiter.resume(returning: true) }
  }
}

/// The keys and ranges that a write changes.
struct LockedKeys: Sendable {
  private let keys: Set<StoreKey>
  private let ranges: [KeyRange]

  init(_ keys: [StoreKey]) {
    self.keys = Set(keys)
    ranges = []
  }

  init(_ range: KeyRange) {
    keys = []
    ranges = [range]
  }

  init(_ changes: ChangeBatch<some Any>) {
    var keys: Set<StoreKey> = []
    var ranges: [KeyRange] = []
    for change in changes.changes {
      switch change {
      case .set(let key, _), .remove(let key): keys.insert(key)
      case .removeAll(let range): ranges.append(range)
      }
    }
    self.keys = keys
    self.ranges = ranges
  }

  /// Returns whether two writes have a key in common.
  func meets(_ other: LockedKeys) -> Bool {
    let (few, many) = keys.count < other.keys.count ? (keys, other.keys) : (other.keys, keys)
    return few.contains { many.contains($0) }
      || ranges.contains { range in other.keys.contains { range.contains($0) } }
      || other.ranges.contains { range in keys.contains { range.contains($0) } }
      || ranges.contains { range in other.ranges.contains { range.overlaps($0) } }
  }
}

/// The order of the writes that hold or wait for locks.
struct LockOrder: Sendable {
  private struct Write: Sendable {
    let number: Int
    let keys: LockedKeys
    var isRunning: Bool
  }

  /// The writes in the order of arrival.
  private var writes: [Write] = []
  private var nextNumber = 0

  /// Adds a write.
  ///
  /// - Returns: The number of the write, and whether it may run now.
  mutating func begin(_ keys: LockedKeys) -> (number: Int, mayRun: Bool) {
    let mayRun = !writes.contains { $0.keys.meets(keys) }
    writes.append(Write(number: nextNumber, keys: keys, isRunning: mayRun))
    nextNumber += 1
    return (nextNumber - 1, mayRun)
  }

  /// Returns whether a write has its locks.
  func isRunning(_ number: Int) -> Bool {
    writes.contains { $0.number == number && $0.isRunning }
  }

  /// Removes a write that runs or waits.
  ///
  /// - Returns: The writes that may run now.
  mutating func end(_ number: Int) -> [Int] {
    guard let index = writes.firstIndex(where: { $0.number == number }) else { return [] }
    let ended = writes.remove(at: index)
    var started: [Int] = []
    for index in index..<writes.count where !writes[index].isRunning && writes[index].keys.meets(ended.keys) {
      guard !writes[..<index].contains(where: { $0.keys.meets(writes[index].keys) }) else { continue }
      writes[index].isRunning = true
      started.append(writes[index].number)
    }
    return started
  }
}
