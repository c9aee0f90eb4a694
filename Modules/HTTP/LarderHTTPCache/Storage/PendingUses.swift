#if HTTPCache
internal import Larder

/// The uses of responses by this process, and those of them that are to be persisted.
///
/// This is plain state without any I/O.
struct PendingUses: Sendable {
  /// The number of uses that are persisted in one commit.
  static let batchSize = 64

  /// The responses that were used.
  var recent: RecentUses

  /// The responses whose uses are to be persisted.
  private var pending: [StoreKey] = []

  /// Whether a task persists them.
  private var isPersisting = false

  /// Creates an empty state.
  ///
  /// - Parameter interval: The time after which a further use of a response is persisted.
  init(interval: Duration) {
    recent = RecentUses(interval: interval)
  }

  /// Records a use.
  ///
  /// - Parameters:
  ///   - key: The key of the response.
  ///   - persisted: The time of the last use that was persisted, in microseconds since 1970.
  ///   - now: The current time.
  /// - Returns: Whether the caller must start to persist uses.
  mutating func note(_ key: StoreKey, persisted: Int64, at now: Int64) -> Bool {
    guard recent.note(key, persisted: persisted, at: now) else { return false }
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
        for case let old? in try await entries(forKeys: keys) {
          // Another process may have persisted a use in the meantime.
          guard uses.withLock({ $0.recent.isDue(at: now, after: old.used) }) else { continue }
          try commit.use(old, at: now)
          moved.append(old.key)
        }
        return moved
      }
      uses.withLock { uses in
        for key in moved { uses.recent.settle(key) }
      }
    } catch {
      // The responses keep their places. Their next uses after the interval are recorded again.
      counted.withLock { $0.failedUses += 1 }
    }
  }
}
#endif
