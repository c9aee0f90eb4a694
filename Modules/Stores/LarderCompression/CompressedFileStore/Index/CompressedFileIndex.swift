#if Compression
import Larder

/// Which keys a compressed file has and where their lines stand, what was lost to damage included.
struct CompressedFileIndex: Sendable {
  /// Keys of which nobody knows which were there, since what stood about them is damaged.
  struct Gap: Equatable, Sendable {
    var range: KeyRange
    /// Where in the file the damage begins.
    var block: Int64
  }

  /// What is known of a key.
  enum Finding: Equatable {
    case missing
    case found(EntryPlace)
    /// It was there, or may have been, but what was written is damaged; with the place of the damage.
    case lost(block: Int64)
  }

  private(set) var entries = SortedMap<EntryPlace>()
  private(set) var gaps: [Gap] = []

  /// How many entries are known to be lost.
  private(set) var lostCount = 0

  /// The bytes of the lines of all entries.
  private(set) var liveTextSize: Int64 = 0

  /// Whether anything is lost.
  var isDamaged: Bool { lostCount > 0 || !gaps.isEmpty }

  // MARK: Reading

  /// What is known of a key.
  func find(_ key: StoreKey) -> Finding {
    if let place = entries[key] { return place.isLost ? .lost(block: place.block) : .found(place) }
    return gaps.first { $0.range.contains(key) }.map { .lost(block: $0.block) } ?? .missing
  }

  /// The first gap that has keys in common with a range.
  func gap(in range: KeyRange) -> Gap? {
    gaps.first { !$0.range.intersection(with: range).isEmpty }
  }

  /// The first entry that is known to be lost, or the first gap and where it begins; `nil` where nothing is lost.
  var firstLost: (key: StoreKey, block: Int64)? {
    if lostCount > 0 {
      for key in entries.keys(in: .all, limit: .max, order: .ascending) {
        if let place = entries[key], place.isLost { return (key, place.block) }
      }
    }
    return gaps.first.map { ($0.range.lowerBound, $0.block) }
  }

  // MARK: Changing

  /// Makes one change of a batch.
  mutating func apply(_ change: Change<EntryPlace>) {
    var displaced: [EntryPlace] = []
    entries.apply(change, displacing: &displaced)
    for place in displaced { count(place, -1) }
    switch change {
    case .set(let key, let place):
      count(place, 1)
      fillGaps(.only(key))
    case .remove(let key): fillGaps(.only(key))
    case .removeAll(let range): fillGaps(range)
    }
  }

  private mutating func count(_ place: EntryPlace, _ sign: Int) {
    if place.isLost { lostCount += sign }
    liveTextSize += Int64(sign) * Int64(place.length)
  }

  /// Takes note that nobody knows which keys of a range are there.
  ///
  /// - Parameters:
  ///   - range: The range; of the entries that it has nothing is known any more.
  ///   - block: Where in the file the damage begins.
  mutating func lose(_ range: KeyRange, in block: Int64) {
    guard !range.isEmpty else { return }
    for key in entries.keys(in: range, limit: .max, order: .ascending) {
      apply(.set(key, .lost(in: block)))
    }
    fillGaps(range)
    gaps.append(Gap(range: range, block: block))
  }

  /// Takes a range, whose content is known, out of all gaps.
  private mutating func fillGaps(_ range: KeyRange) {
    guard !gaps.isEmpty else { return }
    gaps = gaps.flatMap { gap in
      gap.range.subtracting(range).map { Gap(range: $0, block: gap.block) }
    }
  }
}

extension KeyRange {
  /// The keys that two ranges have in common.
  fileprivate func intersection(with other: KeyRange) -> KeyRange {
    let upperBounds = [upperBound, other.upperBound].compactMap { $0 }
    return KeyRange(from: max(lowerBound, other.lowerBound), upTo: upperBounds.min())
  }

  /// The parts of the range that another has no key of.
  fileprivate func subtracting(_ other: KeyRange) -> [KeyRange] {
    guard !intersection(with: other).isEmpty else { return [self] }
    var parts = [KeyRange(from: lowerBound, upTo: other.lowerBound)]
    if let end = other.upperBound { parts.append(KeyRange(from: end, upTo: upperBound)) }
    return parts.filter { !$0.isEmpty }
  }
}
#endif
