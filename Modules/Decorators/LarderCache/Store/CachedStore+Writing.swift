public import Larder
import Synchronization

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
      let writes = begin(keys, ranges)
      let written: (result: Result, values: [Value?]?)
      do {
        written = try await body()
      } catch {
        // Nothing is known of the keys but what the base has.
        end(writes, keys, keeping: nil)
        throw error
      }
      end(writes, keys, keeping: written.values)
      return written.result
    }
  }

  // MARK: Making keys busy

  /// The part of a write that touches one shard.
  private struct ShardWrite: Sendable {
    let shard: Int
    /// The places of its keys among those of the write.
    var places: [Int]
    var keys: [BusyKeys<SharedLoad<Value>>.KeyWrite] = []
    var ranges: [BusyKeys<SharedLoad<Value>>.RangeWrite] = []
  }

  /// Makes all keys of a write busy, and then removes their copies.
  private func begin(_ keys: [StoreKey], _ ranges: [KeyRange]) -> [ShardWrite] {
    var writes = parts(of: keys, inAllShards: !ranges.isEmpty)
    for index in writes.indices {
      let write = writes[index]
      writes[index] = shards[write.shard].withLock { state in
        var write = write
        write.ranges = ranges.map { state.busy.beginWrite(in: $0) }
        write.keys = write.places.map { state.busy.beginWrite(of: keys[$0], besides: write.ranges) }
        return write
      }
    }
    for key in keys { copies.removeValue(forKey: key) }
    for range in ranges { copies.removeAll { range.contains($0) } }
    return writes
  }

  private func parts(of keys: [StoreKey], inAllShards: Bool) -> [ShardWrite] {
    if keys.count == 1, !inAllShards { return [ShardWrite(shard: shardIndex(of: keys[0]), places: [0])] }
    var places: [[Int]] = shards.map { _ in [] }
    for (place, key) in keys.enumerated() { places[shardIndex(of: key)].append(place) }
    return places.enumerated().compactMap { shard, places in
      places.isEmpty && !inAllShards ? nil : ShardWrite(shard: shard, places: places)
    }
  }

  /// Ends a write, and keeps what it wrote where it may.
  private func end(_ writes: [ShardWrite], _ keys: [StoreKey], keeping values: [Value?]?) {
    let copies = values.map { zip(keys, $0).map { key, value in makeCopy(of: value, forKey: key) } }
    for write in writes {
      LateRelease.after {
        shards[write.shard].withLock { state in
          for (place, keyWrite) in zip(write.places, write.keys) where state.busy.end(keyWrite) {
            if let copies { keep(copies[place], forKey: keys[place], in: &state) }
          }
          for rangeWrite in write.ranges { state.busy.end(rangeWrite) }
        }
      }
    }
    // What the cache refuses is released here, not under the lock.
    withExtendedLifetime(copies) {}
  }
}
