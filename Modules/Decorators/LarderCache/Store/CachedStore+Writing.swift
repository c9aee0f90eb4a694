public import Larder

extension CachedStore {
  /// Makes several changes, all or none of them, in the base; see `DataStore`.
  ///
  /// What they leave is kept in the cache.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try ownInformation.check(changes)
    let written = WrittenKeys(changes)
    try await writing(written.keys, written.ranges, .apply) {
      try await base.apply(changes)
      return ((), written.values)
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
    return try await writing(keys, [], .update) {
      let result = try await base.update(keys) { slots in
        let result = try body(&slots)
        runs.append(slots)
        return result
      }
      return (result, runs.last)
    }
  }

  /// Writes in the base while keys are busy, and keeps in the cache what was written.
  ///
  /// - Parameters:
  ///   - keys: The keys, each once.
  ///   - ranges: The ranges.
  ///   - operation: What is done.
  ///   - body: Writes; what it returns beside its result is what each key has now, or `nil` where that is not known.
  func writing<Result>(
    _ keys: [StoreKey], _ ranges: [KeyRange], _ operation: StoreOperation,
    _ body: () async throws -> (result: Result, values: [Value?]?)
  ) async throws -> Result {
    try await running(operation) {
      let write = cache.beginWrite(keys, ranges)
      let written: (result: Result, values: [Value?]?)
      do {
        written = try await body()
      } catch {
        // Nothing is known of the keys but what the base has.
        cache.end(write, keeping: nil)
        throw error
      }
      cache.end(
        write,
        keeping: written.values.map { values in
          zip(keys, values).map { key, value in makeCopy(of: value.map(box), forKey: key) }
        })
      return written.result
    }
  }
}
