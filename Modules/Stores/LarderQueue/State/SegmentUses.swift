/// The needed parts of each segment of the log: plain state.
///
/// A segment can go when no item has its payload or its last record there, and when no older one is left whose items it
/// takes out: those would come back.
struct SegmentUses: Sendable {
  private(set) var all: [UInt32: SegmentUsage] = [:]

  /// The bytes that writing everything needed anew takes.
  private(set) var totalCost = 0

  /// The bytes that remembering the ids of all items takes.
  private(set) var totalIDBytes = 0

  /// Whether a segment may have become unneeded since it was last looked.
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

  /// Notes that things come to a segment, or go.
  ///
  /// - Parameters:
  ///   - segment: The segment.
  ///   - count: How many.
  ///   - size: About how many bytes it takes to write one of them anew.
  ///   - idBytes: How many bytes it takes to remember the id of one of them; defaults to 0.
  mutating func use(_ segment: UInt32, count: Int, size: Int, idBytes: Int = 0) {
    totalIDBytes += count * idBytes
    change(segment) { usage in
      usage.count += count
      usage.size += count * size
      usage.idBytes += count * idBytes
    }
  }

  /// Notes that last records of items come to a segment, or lose that rank.
  mutating func useState(_ segment: UInt32, by count: Int) {
    change(segment) { $0.states += count }
  }

  /// Notes that a record takes out or replaces an item.
  ///
  /// - Parameters:
  ///   - sequence: The item.
  ///   - place: The segment with its payload.
  ///   - segment: The segment with the record.
  mutating func noteGone(_ sequence: UInt64, of place: UInt32, in segment: UInt32) {
    guard place != segment else { return }
    change(segment) { usage in
      usage.references.insert(place)
      usage.gone = usage.gone.map { min($0.lowerBound, sequence)...max($0.upperBound, sequence) } ?? sequence...sequence
    }
  }

  /// Notes that a segment says all that another says of items which are gone.
  ///
  /// - Parameters:
  ///   - other: The other segment.
  ///   - segment: The segment that says so too.
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

  /// Notes that a segment says all that another says of items which are gone, so that the other need not stay for it.
  mutating func moveGone(of other: UInt32, to segment: UInt32) {
    takeOver(goneOf: other, in: segment)
    change(other) { usage in
      usage.references = []
      usage.gone = nil
    }
    mayHaveUnneeded = true
  }

  /// Notes that a segment must not go before another.
  mutating func bind(_ segment: UInt32, to other: UInt32) {
    change(segment) { $0.references.insert(other) }
  }

  /// The segments that are not needed.
  ///
  /// - Parameters:
  ///   - older: Those that there are, in order.
  ///   - withheld: Those that stay all the same; defaults to none.
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

  /// How many items have their last record in a segment or a later one, and their payload elsewhere.
  func states(from first: UInt32) -> Int {
    all.reduce(0) { $1.key >= first ? $0 + $1.value.states : $0 }
  }

  /// Forgets segments that are gone for good.
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
