public import Larder
import Synchronization

extension CachedStore {
  /// Makes several changes, all or none of them, in the base; see `DataStore`.
  ///
  /// What they leave is kept in the cache.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try ownInformation.check(changes)
    let written = WrittenKeys(changes, box: box)
    try await writing(written.keys, written.ranges, .apply) { copies in
      try await base.apply(changes)
      copies = makeCopies(of: written.values, forKeys: written.keys)
    }
  }

  /// Reads, changes and writes back the values of some keys as one step, in the base; see `DataStore`.
  ///
  /// What the body leaves is kept in the cache.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try ownInformation.check(updateOf: keys)
    // Every run is held on to until the end: values of one that does not count must not be released in the midst of the
    // next, inside the base.
    let runs = RecordedSlots<Value>()
    return try await writing(keys, [], .update) { copies in
      let result = try await base.update(keys) { slots in
        let result = try body(&slots)
        runs.append(slots)
        return result
      }
      copies = runs.last.map { makeCopies(of: $0.map { $0.map(box) }, forKeys: keys) }
      return result
    }
  }

  /// Writes in the base while keys are busy, and keeps in the cache what was written.
  ///
  /// - Parameters:
  ///   - keys: The keys, each once.
  ///   - ranges: The ranges.
  ///   - operation: What is done.
  ///   - body: Writes, and tells in its argument what each key has then, unless that is not known.
  func writing<Result>(
    _ keys: [StoreKey], _ ranges: [KeyRange], _ operation: StoreOperation,
    _ body: (inout [CachedCopy?]?) async throws -> Result
  ) async throws -> Result {
    try await running(operation) {
      let write = cache.beginWrite(keys, ranges)
      var copies: [CachedCopy?]?
      do {
        let result = try await body(&copies)
        cache.end(write, keeping: copies)
        return result
      } catch {
        // Nothing is known of the keys but what the base has.
        cache.end(write, keeping: nil)
        throw error
      }
    }
  }

  private func makeCopies(of boxes: [(any CachedValue)?], forKeys keys: [StoreKey]) -> [CachedCopy?] {
    zip(keys, boxes).map { key, box in makeCopy(of: box, forKey: key) }
  }
}

/// What each run of the body of an update left in its slots.
private final class RecordedSlots<Value: Sendable>: Sendable {
  private let runs = Mutex<[[Value?]]>([])

  /// Adds what a run left.
  func append(_ slots: [Value?]) {
    runs.withLock { $0.append(slots) }
  }

  /// What the last run left, the one that counts; `nil` where there was none.
  var last: [Value?]? {
    runs.withLock { $0.last }
  }
}
