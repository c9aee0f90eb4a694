#if HTTPCache
internal import Larder
internal import Synchronization

/// The uses of responses by this process, in memory.
///
/// This is plain state without any I/O. It remembers a limited number of responses, in two generations: when the younger
/// one is full, it becomes the older one, whose responses are forgotten.
struct ResponseUses: Sendable {
  /// The maximum number of responses in a generation.
  static let generationSize = 20_000

  /// The number of uses that are persisted in one commit.
  static let batchSize = 64

  private struct Use {
    /// Whether the response was used since it got its place in the order of use.
    var isRecent: Bool
    /// The time at which the last use was recorded for persisting, in microseconds since 1970.
    var recorded: Int64
  }

  private let interval: Duration
  private var young: [StoreKey: Use] = [:]
  private var old: [StoreKey: Use] = [:]

  /// The responses whose uses are to be persisted.
  private var pending: [StoreKey] = []

  /// Whether a task persists them.
  private var isPersisting = false

  /// Creates an empty state.
  ///
  /// - Parameter interval: The time after which a further use of a response is persisted.
  init(interval: Duration) {
    self.interval = interval
  }

  /// Returns whether a use is due to be persisted after the last one, or the clock was set back.
  func isDue(at now: Int64, after last: Int64) -> Bool {
    let (difference, overflow) = now.subtractingReportingOverflow(last)
    return overflow || difference < 0 || Duration.microseconds(difference) >= interval
  }

  /// Records a use.
  ///
  /// - Parameters:
  ///   - key: The key of the response.
  ///   - persisted: The time of the last use that was persisted.
  ///   - now: The current time.
  /// - Returns: Whether the caller must start to persist uses.
  mutating func note(_ key: StoreKey, persisted: Int64, at now: Int64) -> Bool {
    let last = young[key] ?? old[key]
    let recorded = last?.recorded ?? persisted
    let isDue = isDue(at: now, after: recorded)
    guard isDue || last?.isRecent != true else { return false }
    if young[key] == nil, young.count >= Self.generationSize { (old, young) = (young, [:]) }
    young[key] = Use(isRecent: true, recorded: isDue ? now : recorded)
    guard isDue else { return false }
    pending.append(key)
    defer { isPersisting = true }
    return !isPersisting
  }

  /// Takes the next batch of responses whose uses are to be persisted.
  ///
  /// An empty batch means that the persisting task must end.
  mutating func takeBatch() -> [StoreKey] {
    let batch = Array(pending.prefix(Self.batchSize))
    pending.removeFirst(batch.count)
    if batch.isEmpty { isPersisting = false }
    return batch
  }

  /// Returns whether a response was used since it got its place in the order of use.
  func isRecent(_ key: StoreKey) -> Bool { (young[key] ?? old[key])?.isRecent == true }

  /// Records that a response has got a new place.
  mutating func settle(_ key: StoreKey) {
    young[key]?.isRecent = false
    old[key]?.isRecent = false
  }

  /// Forgets a response that was removed.
  mutating func forget(_ key: StoreKey) {
    young[key] = nil
    old[key] = nil
  }
}

extension ResponseStorage {
  /// Records that a stored response was used, and persists it in the background if that is due.
  ///
  /// The method never waits for the store.
  func noteUse(of entry: StoredEntry) {
    let now = now
    guard uses.withLock({ $0.note(entry.key, persisted: entry.used, at: now) }) else { return }
    persisting.withLock { task in
      task = Task.detached { [last = task] in
        await last?.value
        while true {
          let keys = self.uses.withLock { $0.takeBatch() }
          if keys.isEmpty { return }
          await self.persistUses(of: keys)
        }
      }
    }
  }

  /// Waits until the uses so far are persisted.
  func settleUses() async {
    await persisting.withLock { $0 }?.value
  }

  private func persistUses(of keys: [StoreKey]) async {
    do {
      let moved = try await committing { commit in
        let now = now
        var moved: [StoreKey] = []
        for (key, old) in zip(keys, try await records(forKeys: keys)) {
          // Another process may have persisted a use in the meantime.
          guard let old, uses.withLock({ $0.isDue(at: now, after: old.record.used) }) else { continue }
          try commit.use(key, old, at: now)
          moved.append(key)
        }
        return moved
      }
      uses.withLock { uses in
        for key in moved { uses.settle(key) }
      }
    } catch {
      // The responses keep their places. Their next uses after the interval are recorded again.
      counted.withLock { $0.failedUses += 1 }
    }
  }
}
#endif
