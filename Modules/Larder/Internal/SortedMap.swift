/// Values by key, in key order, in memory: what the stores that keep everything, or an index of everything, in memory
/// stand on.
///
/// It is a list of chunks of up to 128 neighbouring entries, found by binary search over their first keys: a B+tree of
/// two levels. Looking up costs O(log n), changing O(log n) plus moving at most a chunk and, seldom, the list of chunks,
/// which is a hundredth of the entries.
///
/// It is a value: a copy costs nothing, stays as it was, and afterwards a change copies only the chunk concerned and the
/// list of chunks. So a copy taken under a lock can be read outside.
///
/// Whatever a change displaces is returned, so that a caller who holds a lock can release it outside: releasing a value
/// may run code of the user's.
package struct SortedMap<Value> {
  fileprivate struct Chunk {
    var keys: [StoreKey]
    var values: [Value]

    var count: Int { keys.count }

    /// The first place whose key is not below the given one.
    func lowerBound(of key: StoreKey) -> Int {
      keys.partitionPoint { $0 < key }
    }
  }

  /// The place of an entry, or the place behind the last one: the first of a chunk that is not there.
  private struct Position {
    var chunk: Int
    var offset: Int
  }

  private static var capacity: Int { 128 }

  // No chunk is ever empty, so each has a first key.
  private var chunks: [Chunk] = []
  private var firstKeys: [StoreKey] = []

  /// The number of entries.
  package private(set) var count = 0

  /// Makes an empty map.
  package init() {}

  /// The value of a key, or `nil` where it is missing.
  package subscript(key: StoreKey) -> Value? {
    guard let place = find(key) else { return nil }
    return chunks[place.chunk].values[place.offset]
  }

  /// Whether a key is there.
  package func contains(_ key: StoreKey) -> Bool {
    find(key) != nil
  }

  private func find(_ key: StoreKey) -> Position? {
    let index = chunkIndex(for: key)
    guard index >= 0 else { return nil }
    let offset = chunks[index].lowerBound(of: key)
    guard offset < chunks[index].count, chunks[index].keys[offset] == key else { return nil }
    return Position(chunk: index, offset: offset)
  }

  /// The last chunk that begins at or before a key, or -1.
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

  /// Puts a value under a key.
  ///
  /// - Returns: The value that it displaced.
  package mutating func setValue(_ value: Value, forKey key: StoreKey) -> Value? {
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
    if chunks[index].count >= SortedMap.capacity {
      if index == chunks.count - 1, offset == chunks[index].count {
        // Keys that come in order fill their chunks, instead of leaving each half empty.
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
      // Where keys come in order this is the rule, and it costs half of what inserting does.
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
  /// - Returns: The value that was there.
  package mutating func removeValue(forKey key: StoreKey) -> Value? {
    guard let place = find(key) else { return nil }
    let displaced = chunks[place.chunk].values[place.offset]
    removeEntries(in: place.chunk, place.offset..<place.offset + 1)
    mergeOrRemoveChunk(at: place.chunk)
    return displaced
  }

  /// Removes every key of a range.
  ///
  /// - Returns: The values that were there, in key order.
  package mutating func removeAll(in range: KeyRange) -> [Value] {
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
    // The chunks between the two ends went as a whole, and at once: one by one would move the list each time.
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

  /// Keeps chunks from staying nearly empty: removes one without entries, and joins a small one with a neighbour.
  private mutating func mergeOrRemoveChunk(at index: Int) {
    let size = chunks[index].count
    if size == 0 {
      chunks.remove(at: index)
      firstKeys.remove(at: index)
    } else if size < SortedMap.capacity / 4 {
      for left in [index - 1, index] where left >= 0 && left + 1 < chunks.count {
        guard chunks[left].count + chunks[left + 1].count <= SortedMap.capacity * 3 / 4 else { continue }
        let right = chunks.remove(at: left + 1)
        firstKeys.remove(at: left + 1)
        chunks[left].keys.append(contentsOf: right.keys)
        chunks[left].values.append(contentsOf: right.values)
        firstKeys[left] = chunks[left].keys[0]
        return
      }
    }
  }

  /// Returns a map with the same keys and other values.
  ///
  /// - Parameter transform: Gets the values in key order.
  package func mapValues(_ transform: (Value) throws -> Value) rethrows -> SortedMap {
    var result = self
    for index in chunks.indices { result.chunks[index].values = try chunks[index].values.map(transform) }
    return result
  }

  // MARK: Scanning

  /// Counts the entries of a range.
  package func count(in range: KeyRange) -> Int {
    guard let (lower, upper) = bounds(of: range) else { return 0 }
    guard lower.chunk < upper.chunk else { return upper.offset - lower.offset }
    let whole = chunks[lower.chunk..<upper.chunk].reduce(0) { $0 + $1.count }
    return whole - lower.offset + upper.offset
  }

  /// Calls a closure with entry after entry of a range.
  ///
  /// - Parameters:
  ///   - range: The keys to look at.
  ///   - limit: The most entries to go through; not negative.
  ///   - order: The direction.
  ///   - body: Gets a key and its value.
  package func forEach(
    in range: KeyRange = .all, limit: Int = .max, order: ScanOrder = .ascending,
    _ body: (StoreKey, Value) throws -> Void
  ) rethrows {
    guard limit > 0, let (lower, upper) = bounds(of: range) else { return }
    var remaining = limit
    switch order {
    case .ascending:
      var place = lower
      while place.chunk < chunks.count, place.chunk <= upper.chunk {
        let chunk = chunks[place.chunk]
        let stop = place.chunk == upper.chunk ? upper.offset : chunk.count
        while place.offset < stop {
          guard remaining > 0 else { return }
          remaining -= 1
          try body(chunk.keys[place.offset], chunk.values[place.offset])
          place.offset += 1
        }
        place = Position(chunk: place.chunk + 1, offset: 0)
      }
    case .descending:
      for index in stride(from: min(upper.chunk, chunks.count - 1), through: lower.chunk, by: -1) {
        let chunk = chunks[index]
        let start = index == lower.chunk ? lower.offset : 0
        let stop = index == upper.chunk ? upper.offset : chunk.count
        for offset in stride(from: stop - 1, through: start, by: -1) {
          guard remaining > 0 else { return }
          remaining -= 1
          try body(chunk.keys[offset], chunk.values[offset])
        }
      }
    }
  }

  /// The first keys of a range.
  package func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreKey] {
    var keys: [StoreKey] = []
    forEach(in: range, limit: limit, order: order) { key, _ in keys.append(key) }
    return keys
  }

  /// The first entries of a range.
  package func entries(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreEntry<Value>] {
    var entries: [StoreEntry<Value>] = []
    forEach(in: range, limit: limit, order: order) { entries.append(StoreEntry(key: $0, value: $1)) }
    return entries
  }
}

extension SortedMap: Sendable where Value: Sendable {}
extension SortedMap.Chunk: Sendable where Value: Sendable {}

extension Array {
  /// The first index whose element does not satisfy a condition that holds up to some place and not beyond.
  fileprivate func partitionPoint(where holds: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = low + (high - low) / 2
      if holds(self[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
