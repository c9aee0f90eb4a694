import Larder

/// The writing anew of what some segments hold that is needed, a bounded piece at a time.
struct Cleaning: Sendable {
  /// The records that are looked through next.
  enum Stage: Sendable {
    /// Live items, from a sequence number on.
    case items(from: UInt64)
    /// Dead letters, from a sequence number on.
    case deadLetters(from: UInt64)
    case rememberedKeys(ArraySlice<StoreKey>)
    /// The segments' records about items that are gone.
    case goneItems(ArraySlice<UInt32>)
    case isOver
  }

  let targets: Set<UInt32>
  /// Whether an operator asked for it; then the call that compacts does the steps.
  var isAskedFor = false
  var stage = Stage.items(from: 1)
  /// The targets that stay, since too much would have to be said of what they take out, or not all of them can be read.
  var unsaid: Set<UInt32> = []

  /// Whether nothing is left to write.
  var isOver: Bool { if case .isOver = stage { true } else { false } }
}

extension QueueLedger {
  /// The next records that must be written anew so that the targets of a cleaning can go.
  ///
  /// - Parameters:
  ///   - cleaning: How far it has come.
  ///   - bytes: About how many bytes of records to give at most; one record may be longer.
  ///   - looks: How many items to look at, at most.
  /// - Returns: The records, items with the places where they are now; and the targets about whose gone items they say all.
  func nextSurvivors(
    of cleaning: inout Cleaning, bytes: Int, looks: Int
  ) -> (records: [QueueRecord], said: [UInt32]) {
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
      guard let segment = segments.first, !cleaning.unsaid.contains(segment) else { break }
      let others = cleaning.targets.subtracting(cleaning.unsaid)
      guard let ranges = gaps(saidBy: segment, besides: others, looks: looks, limit: bytes / 16) else {
        cleaning.unsaid.insert(segment)
        break
      }
      return (ranges.map { .remove($0) }, [segment])
    case .isOver: break
    }
    return ([], [])
  }

  private func survivors(
    in line: ItemLine, from start: UInt64, _ targets: Set<UInt32>, bytes: Int, looks: Int
  ) -> (records: [QueueRecord], next: UInt64?) {
    var records: [QueueRecord] = []
    var (size, count) = (0, 0)
    var next: UInt64?
    line.forEach(from: start) { item in
      guard count < looks, size < bytes else {
        next = item.sequence
        return false
      }
      count += 1
      let isRevivedThere = revivals.isEmpty ? false : revivals[item.sequence].map(targets.contains) ?? false
      if targets.contains(item.place.segment) || isRevivedThere {
        records.append(.put(state(of: item)))
        size += item.size + 64
      } else if targets.contains(item.stateSegment) {
        let state = state(of: item)
        records.append(.state(sequence: item.sequence, attempts: item.attempts, state.standing))
        size += 40
      }
      return true
    }
    return (records, next)
  }

  private func rememberedKeys(in targets: Set<UInt32>) -> ArraySlice<StoreKey> {
    guard targets.contains(where: { uses[$0].count > 0 }) else { return [] }
    return remembered.entries.compactMap { targets.contains($1.segment) ? $0 : nil }[...]
  }

  /// The numbers that no item has, of those that records in a segment take out.
  ///
  /// - Parameters:
  ///   - segment: The segment.
  ///   - targets: Segments that go with it, whose items need not be taken out.
  ///   - looks: How many items to look at, at most.
  ///   - limit: The most ranges to give.
  /// - Returns: The ranges, none where nothing must be said; `nil` if there are too many.
  private func gaps(
    saidBy segment: UInt32, besides targets: Set<UInt32>, looks: Int, limit: Int
  ) -> [ClosedRange<UInt64>]? {
    let usage = uses[segment]
    guard let gone = usage.gone, !usage.references.isSubset(of: targets) else { return [] }
    var present: [UInt64] = []
    for line in [items, deadItems] {
      line.forEach(from: gone.lowerBound) { item in
        guard item.sequence <= gone.upperBound, present.count <= looks else { return false }
        present.append(item.sequence)
        return true
      }
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
