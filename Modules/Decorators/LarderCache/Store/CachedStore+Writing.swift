public import Larder
import Synchronization

extension CachedStore {
  /// Applies several changes to the base atomically; see `DataStore`.
  ///
  /// The new values are cached.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try ownInformation.check(changes)
    let written = WrittenKeys(changes, box: box)
    try await writing(written.keys, written.ranges, .apply) { entries in
      try await base.apply(changes)
      entries = makeEntries(of: written.values, forKeys: written.keys)
    }
  }

  /// Reads and writes several values of the base as one atomic step; see `DataStore`.
  ///
  /// The values that `body` leaves are cached.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try ownInformation.check(updateOf: keys)
    // The values of every run are kept until the end. Values of a discarded run must not be released during the next
    // one, inside the base.
    let runs = RecordedSlots<Value>()
    return try await writing(keys, [], .update) { entries in
      let result = try await base.update(keys) { slots in
        let result = try body(&slots)
        runs.append(slots)
        return result
      }
      entries = runs.last.map { makeEntries(of: $0.map { $0.map(box) }, forKeys: keys) }
      return result
    }
  }

  /// Performs a write on the base while its keys are busy, and caches the new values.
  ///
  /// - Parameters:
  ///   - keys: The keys, each once.
  ///   - ranges: The ranges.
  ///   - operation: The operation.
  ///   - body: A closure that writes, and sets its argument to the new entry of each key if that is known.
  func writing<Result>(
    _ keys: [StoreKey], _ ranges: [KeyRange], _ operation: StoreOperation,
    _ body: (inout [CachedEntry?]?) async throws -> Result
  ) async throws -> Result {
    try await running(operation) {
      let write = cache.beginWrite(keys, ranges)
      var entries: [CachedEntry?]?
      do {
        let result = try await body(&entries)
        cache.end(write, keeping: entries)
        return result
      } catch {
        // The state of the keys is known only to the base.
        cache.end(write, keeping: nil)
        throw error
      }
    }
  }

  private func makeEntries(of boxes: [(any CachedValue)?], forKeys keys: [StoreKey]) -> [CachedEntry?] {
    zip(keys, boxes).map { key, box in makeEntry(of: box, forKey: key) }
  }
}

/// The values that each run of the body of an update left.
private final class RecordedSlots<Value: Sendable>: Sendable {
  private let runs = Mutex<[[Value?]]>([])

  /// Adds the values of a run.
  func append(_ slots: [Value?]) {
    runs.withLock { $0.append(slots) }
  }

  /// The values of the last run, which is the one that counts, or `nil` if there was none.
  var last: [Value?]? {
    runs.withLock { $0.last }
  }
}

/// The keys and ranges that a batch changes, with the new values of its keys.
struct WrittenKeys {
  /// The changed keys, each once.
  private(set) var keys: [StoreKey] = []

  /// The final value of each key, or `nil` if the key is removed.
  private(set) var values: [(any CachedValue)?] = []

  /// The removed ranges, at most ``highestRangeCount``.
  ///
  /// If there are more, the last one covers all the others.
  ///
  /// Every range is recorded in every shard and compared with every key that is written in the meantime. A key that is
  /// wrongly assumed to be removed costs one read.
  private(set) var ranges: [KeyRange] = []

  /// The maximum number of separate ranges.
  static let highestRangeCount = 16

  // The indices of the keys, or `nil` if there is at most one change.
  private var indices: [StoreKey: Int]?

  /// Collects the keys and ranges of a batch.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - box: A closure that returns a box for a value.
  init<Value>(_ changes: ChangeBatch<Value>, box: (Value) -> any CachedValue) {
    indices = changes.count > 1 ? [:] : nil
    for change in changes.changes {
      switch change {
      case .set(let key, let value): set(box(value), forKey: key)
      case .remove(let key): set(nil, forKey: key)
      case .removeAll(let range): removeAll(in: range)
      }
    }
  }

  private mutating func set(_ value: (any CachedValue)?, forKey key: StoreKey) {
    if let index = indices?[key] {
      values[index] = value
      return
    }
    indices?[key] = keys.count
    keys.append(key)
    values.append(value)
  }

  private mutating func removeAll(in range: KeyRange) {
    guard !range.isEmpty else { return }
    for index in keys.indices where range.contains(keys[index]) { values[index] = nil }
    if ranges.count == WrittenKeys.highestRangeCount, let last = ranges.popLast() {
      ranges.append(last.covering(range))
    } else {
      ranges.append(range)
    }
  }
}

extension KeyRange {
  /// Returns the smallest range that contains this range and another one.
  fileprivate func covering(_ other: KeyRange) -> KeyRange {
    var end: StoreKey?
    if let upperBound, let otherBound = other.upperBound { end = max(upperBound, otherBound) }
    return KeyRange(from: min(lowerBound, other.lowerBound), upTo: end)
  }
}
