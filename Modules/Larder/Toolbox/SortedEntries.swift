/// An in-memory map in key order, for stores that keep all entries, or an index of all entries, in memory.
///
/// The map is a list of chunks of up to 128 consecutive entries, which it finds by binary search over their first keys.
/// It is in effect a B+tree of two levels. A lookup takes O(log n). A change takes O(log n), moves at most one chunk
/// and, rarely, the list of chunks, whose length is about a hundredth of the number of entries.
///
/// The map is a value type. Copying it is free, and a later change copies only the affected chunk and the list of
/// chunks. A copy that is taken under a lock can therefore be read outside the lock.
///
/// A change returns the values that it displaces, so a caller that holds a lock can release them outside the lock. The
/// release of a value may run user code.
///
/// ```swift
/// var places = SortedEntries<Int>()
/// places.setValue(12, forKey: "user:1")
/// places.forEach(in: .prefix("user:"), order: .descending) { key, place in print(key, place) }
/// ```
public struct SortedEntries<Value> {
  fileprivate struct Chunk {
    var keys: [StoreKey]
    var values: [Value]

    var count: Int { keys.count }

    /// Returns the offset of the first entry whose key is not less than the given key.
    func lowerBound(of key: StoreKey) -> Int {
      keys.partitionPoint { $0 < key }
    }
  }

  /// The position of an entry, or the end position, which is the start of a chunk that does not exist.
  private struct Position {
    var chunk: Int
    var offset: Int
  }

  private static var capacity: Int { 128 }

  // No chunk is empty, so each has a first key.
  private var chunks: [Chunk] = []
  private var firstKeys: [StoreKey] = []

  /// The number of entries.
  public private(set) var count = 0

  /// Creates an empty map.
  public init() {}

  /// The value of a key, or `nil` if the key is missing.
  public subscript(key: StoreKey) -> Value? {
    guard let position = find(key) else { return nil }
    return chunks[position.chunk].values[position.offset]
  }

  /// Returns whether a key exists.
  public func contains(_ key: StoreKey) -> Bool {
    find(key) != nil
  }

  private func find(_ key: StoreKey) -> Position? {
    let index = chunkIndex(for: key)
    guard index >= 0 else { return nil }
    let offset = chunks[index].lowerBound(of: key)
    guard offset < chunks[index].count, chunks[index].keys[offset] == key else { return nil }
    return Position(chunk: index, offset: offset)
  }

  /// Returns the index of the last chunk that begins at or before a key, or -1 if there isn't one.
  private func chunkIndex(for key: StoreKey) -> Int {
    firstKeys.partitionPoint { $0 <= key } - 1
  }

  private func lowerBound(of key: StoreKey) -> Position {
    let index = max(chunkIndex(for: key), 0)
    guard index < chunks.count else { return end }
    let offset = chunks[index].lowerBound(of: key)
    return offset < chunks[index].count ? Position(chunk: index, offset: offset) : Position(chunk: index + 1, offset: 0)
  }

  private var end: Position { Position(chunk: chunks.count, offset: 0) }

  private func bounds(of range: KeyRange) -> (lower: Position, upper: Position)? {
    guard !range.isEmpty else { return nil }
    return (lowerBound(of: range.lowerBound), range.upperBound.map(lowerBound(of:)) ?? end)
  }

  // MARK: Changing

  /// Stores a value under a key.
  ///
  /// - Returns: The displaced value, if any.
  public mutating func setValue(_ value: Value, forKey key: StoreKey) -> Value? {
    let index = max(chunkIndex(for: key), 0)
    guard index < chunks.count else {
      insertChunk(Chunk(keys: [key], values: [value]), at: 0)
      count += 1
      return nil
    }
    let offset = chunks[index].lowerBound(of: key)
    if offset < chunks[index].count, chunks[index].keys[offset] == key {
      var displaced = value
      swap(&chunks[index].values[offset], &displaced)
      return displaced
    }
    count += 1
    insert(key, value, chunk: index, offset: offset)
    return nil
  }

  private mutating func insert(_ key: StoreKey, _ value: Value, chunk index: Int, offset: Int) {
    var target = Position(chunk: index, offset: offset)
    if chunks[index].count >= SortedEntries.capacity {
      if index == chunks.count - 1, offset == chunks[index].count {
        // With keys in ascending order, a new chunk keeps the preceding chunks full instead of half empty.
        insertChunk(Chunk(keys: [key], values: [value]), at: index + 1)
        return
      }
      let half = chunks[index].count / 2
      let upper = Chunk(keys: Array(chunks[index].keys[half...]), values: Array(chunks[index].values[half...]))
      chunks[index].keys.removeSubrange(half...)
      chunks[index].values.removeSubrange(half...)
      insertChunk(upper, at: index + 1)
      if offset > half { target = Position(chunk: index + 1, offset: offset - half) }
    }
    if target.offset == chunks[target.chunk].count {
      // This is the usual case for keys in ascending order, and takes half the time of an insertion.
      chunks[target.chunk].keys.append(key)
      chunks[target.chunk].values.append(value)
    } else {
      chunks[target.chunk].keys.insert(key, at: target.offset)
      chunks[target.chunk].values.insert(value, at: target.offset)
    }
    if target.offset == 0 { firstKeys[target.chunk] = key }
  }

  private mutating func insertChunk(_ chunk: Chunk, at index: Int) {
    firstKeys.insert(chunk.keys[0], at: index)
    chunks.insert(chunk, at: index)
  }

  /// Removes a key.
  ///
  /// - Returns: The removed value, if any.
  public mutating func removeValue(forKey key: StoreKey) -> Value? {
    guard let position = find(key) else { return nil }
    let displaced = chunks[position.chunk].values[position.offset]
    removeEntries(in: position.chunk, position.offset..<position.offset + 1)
    mergeOrRemoveChunk(at: position.chunk)
    return displaced
  }

  /// Removes every key of a range.
  ///
  /// - Returns: The removed values, in key order.
  public mutating func removeAll(in range: KeyRange) -> [Value] {
    guard let (lower, upper) = bounds(of: range), lower.chunk < chunks.count else { return [] }
    var displaced: [Value] = []
    for index in stride(from: min(upper.chunk, chunks.count - 1), through: lower.chunk, by: -1) {
      let start = index == lower.chunk ? lower.offset : 0
      let stop = index == upper.chunk ? upper.offset : chunks[index].count
      guard start < stop else { continue }
      displaced.append(contentsOf: chunks[index].values[start..<stop].reversed())
      if index > lower.chunk, stop == chunks[index].count {
        count -= stop
      } else {
        removeEntries(in: index, start..<stop)
      }
    }
    // Remove the chunks between the two ends together, because removing them one by one would move the list each time.
    let whole = lower.chunk + 1..<max(lower.chunk + 1, upper.chunk)
    chunks.removeSubrange(whole)
    firstKeys.removeSubrange(whole)
    for index in [lower.chunk + 1, lower.chunk] where index < chunks.count {
      mergeOrRemoveChunk(at: index)
    }
    displaced.reverse()
    return displaced
  }

  private mutating func removeEntries(in chunk: Int, _ offsets: Range<Int>) {
    chunks[chunk].keys.removeSubrange(offsets)
    chunks[chunk].values.removeSubrange(offsets)
    count -= offsets.count
    if offsets.lowerBound == 0, let first = chunks[chunk].keys.first { firstKeys[chunk] = first }
  }

  /// Removes a chunk that is empty, or merges a small chunk with a neighbor.
  private mutating func mergeOrRemoveChunk(at index: Int) {
    let size = chunks[index].count
    if size == 0 {
      chunks.remove(at: index)
      firstKeys.remove(at: index)
    } else if size < SortedEntries.capacity / 4 {
      for left in [index - 1, index] where left >= 0 && left + 1 < chunks.count {
        guard chunks[left].count + chunks[left + 1].count <= SortedEntries.capacity * 3 / 4 else { continue }
        let right = chunks.remove(at: left + 1)
        firstKeys.remove(at: left + 1)
        chunks[left].keys.append(contentsOf: right.keys)
        chunks[left].values.append(contentsOf: right.values)
        firstKeys[left] = chunks[left].keys[0]
        return
      }
    }
  }

  /// Returns a map with the same keys and transformed values.
  ///
  /// - Parameter transform: A closure that receives the values in key order.
  public func mapValues(_ transform: (Value) throws -> Value) rethrows -> SortedEntries {
    var result = self
    for index in chunks.indices { result.chunks[index].values = try chunks[index].values.map(transform) }
    return result
  }

  // MARK: Scanning

  /// Returns the number of entries in a range.
  public func count(in range: KeyRange) -> Int {
    guard range != .all else { return count }
    guard let (lower, upper) = bounds(of: range) else { return 0 }
    guard lower.chunk < upper.chunk else { return upper.offset - lower.offset }
    let whole = chunks[lower.chunk..<upper.chunk].reduce(0) { $0 + $1.count }
    return whole - lower.offset + upper.offset
  }

  /// Calls a closure with each entry of a range, in order.
  ///
  /// - Parameters:
  ///   - range: The range of keys. Defaults to all keys.
  ///   - limit: The maximum number of entries. It must not be negative. Defaults to all entries.
  ///   - order: The order of the scan. Defaults to ascending keys.
  ///   - body: A closure that receives a key and its value.
  public func forEach(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending,
    _ body: (StoreKey, Value) throws -> Void
  ) rethrows {
    guard limit > 0, let (lower, upper) = bounds(of: range) else { return }
    var remaining = limit
    let last = min(upper.chunk, chunks.count - 1)
    let isAscending = order == .ascending
    let step = isAscending ? 1 : -1
    for index in stride(from: isAscending ? lower.chunk : last, through: isAscending ? last : lower.chunk, by: step) {
      let chunk = chunks[index]
      let start = index == lower.chunk ? lower.offset : 0
      let end = (index == upper.chunk ? upper.offset : chunk.count) - 1
      for offset in stride(from: isAscending ? start : end, through: isAscending ? end : start, by: step) {
        guard remaining > 0 else { return }
        remaining -= 1
        try body(chunk.keys[offset], chunk.values[offset])
      }
    }
  }

  /// Returns the first keys of a range.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreKey] {
    var keys: [StoreKey] = []
    forEach(in: range, limit: limit, order: order) { key, _ in keys.append(key) }
    return keys
  }

  /// Returns the first entries of a range.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreEntry<Value>] {
    var entries: [StoreEntry<Value>] = []
    forEach(in: range, limit: limit, order: order) { entries.append(StoreEntry(key: $0, value: $1)) }
    return entries
  }
}

extension SortedEntries {
  /// Applies one change of a batch.
  ///
  /// - Parameters:
  ///   - change: The change.
  ///   - displaced: The array that the displaced values are appended to, so the caller can release them outside a
  ///     lock.
  public mutating func apply(_ change: BatchChange<Value>, displacing displaced: inout [Value]) {
    switch change {
    case .set(let key, let value):
      if let old = setValue(value, forKey: key) { displaced.append(old) }
    case .remove(let key):
      if let old = removeValue(forKey: key) { displaced.append(old) }
    case .removeAll(let range):
      displaced.append(contentsOf: removeAll(in: range))
    }
  }
}

extension SortedEntries: Sendable where Value: Sendable {}
extension SortedEntries.Chunk: Sendable where Value: Sendable {}

extension Array {
  /// Returns the first index whose element does not satisfy a condition.
  ///
  /// The condition must hold for exactly the elements before that index.
  @inlinable
  public func partitionPoint(where holds: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = low + (high - low) / 2
      if holds(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
