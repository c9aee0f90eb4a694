/// The live data of each segment of the log, as plain state.
///
/// A segment can be removed if it contains no payload and no last record of any item, and if it has no records about
/// gone items in older segments that remain. Without those records, the items would reappear.
struct SegmentUses: Sendable {
  private(set) var all: [UInt32: SegmentUsage] = [:]

  /// The size of rewriting all live data, in bytes.
  private(set) var totalCost = 0

  /// The size of remembering the ids of all items, in bytes.
  private(set) var totalIDBytes = 0

  /// A Boolean value that indicates whether a segment may have become unneeded since the last check.
  var mayHaveUnneeded = true

  subscript(segment: UInt32) -> SegmentUsage { all[segment] ?? SegmentUsage() }

  private mutating func change(_ segment: UInt32, _ body: (inout SegmentUsage) -> Void) {
    var usage = all[segment] ?? SegmentUsage()
    let (wasLive, cost) = (usage.isLive, usage.cost)
    body(&usage)
    totalCost += usage.cost - cost
    if wasLive, !usage.isLive { mayHaveUnneeded = true }
    all[segment] = usage
  }

  /// Adds live data to a segment, or removes it.
  ///
  /// - Parameters:
  ///   - segment: The segment.
  ///   - count: The number of records, negative to remove them.
  ///   - size: The approximate size of rewriting one of them, in bytes.
  ///   - idBytes: The size of remembering the id of one of them, in bytes. Defaults to 0.
  mutating func use(_ segment: UInt32, count: Int, size: Int, idBytes: Int = 0) {
    totalIDBytes += count * idBytes
    change(segment) { usage in
      usage.count += count
      usage.size += count * size
      usage.idBytes += count * idBytes
    }
  }

  /// Changes the number of items whose last record is in a segment and whose payload is not.
  mutating func useState(_ segment: UInt32, by count: Int) {
    change(segment) { $0.states += count }
  }

  /// Adds a record that removes or replaces an item.
  ///
  /// - Parameters:
  ///   - sequence: The sequence number of the item.
  ///   - place: The segment with its payload.
  ///   - segment: The segment with the record.
  mutating func noteGone(_ sequence: UInt64, of place: UInt32, in segment: UInt32) {
    guard place != segment else { return }
    change(segment) { usage in
      usage.references.insert(place)
      usage.gone = usage.gone.map { min($0.lowerBound, sequence)...max($0.upperBound, sequence) } ?? sequence...sequence
    }
  }

  /// Copies the references to gone items from one segment to another that repeats its records about them.
  ///
  /// - Parameters:
  ///   - other: The segment with the original records.
  ///   - segment: The segment that repeats them.
  mutating func takeOver(goneOf other: UInt32, in segment: UInt32) {
    guard let usage = all[other], other != segment else { return }
    let references = usage.references.subtracting([segment])
    guard !references.isEmpty else { return }
    change(segment) { own in
      own.references.formUnion(references)
      guard let gone = usage.gone else { return }
      own.gone =
        own.gone.map { min($0.lowerBound, gone.lowerBound)...max($0.upperBound, gone.upperBound) } ?? gone
    }
  }

  /// Moves the references to gone items from one segment to another that repeats its records about them, so the first
  /// need not stay.
  mutating func moveGone(of other: UInt32, to segment: UInt32) {
    takeOver(goneOf: other, in: segment)
    change(other) { usage in
      usage.references = []
      usage.gone = nil
    }
    mayHaveUnneeded = true
  }

  /// Prevents the removal of a segment before another one.
  mutating func bind(_ segment: UInt32, to other: UInt32) {
    change(segment) { $0.references.insert(other) }
  }

  /// Returns the unneeded segments.
  ///
  /// - Parameters:
  ///   - older: The existing segments, in order.
  ///   - withheld: The segments that must stay in any case. Defaults to an empty set.
  func unneeded(among older: [UInt32], keeping withheld: Set<UInt32> = []) -> Set<UInt32> {
    var kept: Set<UInt32> = []
    var unneeded: Set<UInt32> = []
    for number in older {
      let usage = self[number]
      if usage.isLive || withheld.contains(number) || !usage.references.isDisjoint(with: kept) {
        kept.insert(number)
      } else {
        unneeded.insert(number)
      }
    }
    return unneeded
  }

  /// Returns the number of items whose last record is in a segment or a later one, and whose payload is not in the same
  /// segment.
  func states(from first: UInt32) -> Int {
    all.reduce(0) { $1.key >= first ? $0 + $1.value.states : $0 }
  }

  /// Removes the data of segments that were removed.
  mutating func remove(_ segments: Set<UInt32>) {
    for number in segments {
      guard let usage = all.removeValue(forKey: number) else { continue }
      totalCost -= usage.cost
      totalIDBytes -= usage.idBytes
    }
    for (number, usage) in all where !usage.references.isDisjoint(with: segments) {
      all[number]?.references.subtract(segments)
      if all[number]?.references.isEmpty == true { all[number]?.gone = nil }
    }
    mayHaveUnneeded = true
  }
}

/// The live data of a segment.
struct SegmentUsage: Sendable, Hashable {
  /// The number of payloads of items and dead letters, remembered keys, and records that requeued a dead letter.
  var count = 0
  /// The approximate size of rewriting them, in bytes.
  var size = 0
  /// The size of remembering the ids of the items, in bytes, after they are acknowledged.
  var idBytes = 0
  /// The number of items whose last record is in this segment and whose payload is not.
  var states = 0
  /// A range that includes all items that records in this segment removed or replaced, and of which an older segment
  /// may still have a record.
  var gone: ClosedRange<UInt64>?
  /// The older segments with those records.
  ///
  /// This segment must not be removed before them.
  var references: Set<UInt32> = []

  /// A Boolean value that indicates whether the segment contains live data.
  var isLive: Bool { count > 0 || states > 0 }

  /// The approximate size of rewriting the live data, in bytes, without the records about gone items.
  var cost: Int { size + 40 * states }
}
