import Larder

/// The rewriting of the live data of several segments, in bounded pieces.
struct Cleaning: Sendable {
  /// The records to look at next.
  enum Stage: Sendable {
    /// Live items, beginning with a sequence number.
    case items(from: UInt64)
    /// Dead letters, beginning with a sequence number.
    case deadLetters(from: UInt64)
    case rememberedKeys(ArraySlice<StoreKey>)
    /// The records of the segments about items that are gone.
    case goneItems(ArraySlice<UInt32>)
    case isOver
  }

  let targets: Set<UInt32>
  /// A Boolean value that indicates whether the user requested it.
  ///
  /// If so, the call that compacts performs the steps.
  var isRequested = false
  var stage = Stage.items(from: 1)
  /// The targets that must stay, because their records about gone items are too many to rewrite, or because some of
  /// their items cannot be read.
  var retained: Set<UInt32> = []

  /// A Boolean value that indicates whether nothing is left to rewrite.
  var isOver: Bool { if case .isOver = stage { true } else { false } }
}

extension QueueLedger {
  /// Returns the next records that must be rewritten before the targets of a cleaning can be removed.
  ///
  /// - Parameters:
  ///   - cleaning: The progress of the cleaning.
  ///   - bytes: The approximate maximum size of the records, in bytes. A single record may be longer.
  ///   - looks: The maximum number of items to look at.
  /// - Returns: The records, items with their current locations; and the targets whose records about gone items are all
  ///   included.
  func nextSurvivors(
    of cleaning: inout Cleaning, bytes: Int, looks: Int
  ) -> (records: [QueueRecord], covered: [UInt32]) {
    switch cleaning.stage {
    case .items(let start):
      let (records, next) = survivors(in: items, from: start, cleaning.targets, bytes: bytes, looks: looks)
      cleaning.stage = next.map { .items(from: $0) } ?? .deadLetters(from: 1)
      return (records, [])
    case .deadLetters(let start):
      let (records, next) = survivors(in: deadItems, from: start, cleaning.targets, bytes: bytes, looks: looks)
      cleaning.stage = next.map { .deadLetters(from: $0) } ?? .rememberedKeys(rememberedKeys(in: cleaning.targets))
      return (records, [])
    case .rememberedKeys(let keys):
      let part = keys.prefix(max(bytes / 64, 1))
      let rest = keys.dropFirst(part.count)
      cleaning.stage = rest.isEmpty ? .goneItems(cleaning.targets.sorted()[...]) : .rememberedKeys(rest)
      return (
        part.compactMap { key in
          guard let entry = remembered[key], cleaning.targets.contains(entry.segment) else { return nil }
          return .remember(key: key, sequence: entry.sequence, deadline: entry.deadline)
        }, []
      )
    case .goneItems(let segments):
      cleaning.stage = segments.count > 1 ? .goneItems(segments.dropFirst()) : .isOver
      guard let segment = segments.first, !cleaning.retained.contains(segment) else { break }
      let others = cleaning.targets.subtracting(cleaning.retained)
      guard let ranges = gaps(coveredBy: segment, besides: others, looks: looks, limit: bytes / 16) else {
        cleaning.retained.insert(segment)
        break
      }
      return (ranges.map { .remove($0) }, [segment])
    case .isOver: break
    }
    return ([], [])
  }

  private func survivors(
    in list: ItemList, from start: UInt64, _ targets: Set<UInt32>, bytes: Int, looks: Int
  ) -> (records: [QueueRecord], next: UInt64?) {
    var records: [QueueRecord] = []
    var (size, count) = (0, 0)
    var next: UInt64?
    for item in list.items(from: start) {
      guard count < looks, size < bytes else {
        next = item.sequence
        break
      }
      count += 1
      let isRequeuedThere =
        requeueSegments.isEmpty ? false : requeueSegments[item.sequence].map(targets.contains) ?? false
      if targets.contains(item.place.segment) || isRequeuedThere {
        records.append(.put(state(of: item)))
        size += item.size + 64
      } else if targets.contains(item.stateSegment) {
        let state = state(of: item)
        records.append(.state(sequence: item.sequence, attempts: item.attempts, state.standing))
        size += 40
      }
    }
    return (records, next)
  }

  private func rememberedKeys(in targets: Set<UInt32>) -> ArraySlice<StoreKey> {
    guard targets.contains(where: { uses[$0].count > 0 }) else { return [] }
    return remembered.entries.compactMap { targets.contains($1.segment) ? $0 : nil }[...]
  }

  /// Returns the sequence numbers that records in a segment removed and that no item has now.
  ///
  /// - Parameters:
  ///   - segment: The segment.
  ///   - targets: Segments that are removed together with it, whose items need no record.
  ///   - looks: The maximum number of items to look at.
  ///   - limit: The maximum number of ranges.
  /// - Returns: The ranges, which are empty if no record is needed; `nil` if there are too many.
  private func gaps(
    coveredBy segment: UInt32, besides targets: Set<UInt32>, looks: Int, limit: Int
  ) -> [ClosedRange<UInt64>]? {
    let usage = uses[segment]
    guard let gone = usage.gone, !usage.references.isSubset(of: targets) else { return [] }
    let present = [items, deadItems].flatMap { list in
      list.items(from: gone.lowerBound).prefix(looks + 1).prefix { $0.sequence <= gone.upperBound }.map(\.sequence)
    }
    guard present.count <= looks else { return nil }
    var ranges: [ClosedRange<UInt64>] = []
    var start = gone.lowerBound
    for sequence in present.sorted() {
      if start < sequence { ranges.append(start...(sequence - 1)) }
      start = sequence + 1
    }
    if start <= gone.upperBound { ranges.append(start...gone.upperBound) }
    return ranges.count <= limit ? ranges : nil
  }
}
