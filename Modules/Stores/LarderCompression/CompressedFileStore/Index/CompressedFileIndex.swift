#if Compression
import Larder

/// Which keys a compressed file has and where their lines stand, what was lost to damage included.
struct CompressedFileIndex: Sendable {
  /// Keys of which it is not known which were there, since what stood about them is damaged.
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

  /// The gaps by their lower bounds; none overlaps another.
  private var gaps = SortedMap<Gap>()

  /// How many entries are known to be lost.
  private(set) var lostCount = 0

  /// The bytes of the lines of all entries.
  private(set) var liveTextSize: Int64 = 0

  /// What was written before this place of the file is lost, since later writes are that nobody knows.
  private var horizon: Int64 = 0

  /// Whether anything is lost.
  var isDamaged: Bool { lostCount > 0 || gaps.count > 0 }

  // MARK: Reading

  /// What is known of a key.
  func find(_ key: StoreKey) -> Finding {
    if let place = entries[key] { return finding(of: place) }
    return gap(around: key).map { .lost(block: $0.block) } ?? .missing
  }

  /// What is known of an entry.
  func finding(of place: EntryPlace) -> Finding {
    if place.isLost { return .lost(block: place.block) }
    return place.block < horizon ? .lost(block: horizon) : .found(place)
  }

  /// Returns the first gap that has keys in common with a range.
  ///
  /// - Parameters:
  ///   - range: The range.
  ///   - order: The direction; defaults to that of the keys.
  func gap(in range: KeyRange, order: ScanOrder = .ascending) -> Gap? {
    guard gaps.count > 0, !range.isEmpty else { return nil }
    if order == .ascending, let gap = gap(around: range.lowerBound) { return gap }
    let found = gaps.entries(in: range, limit: 1, order: order).first?.value
    return found ?? (order == .descending ? gap(around: range.lowerBound) : nil)
  }

  /// All gaps, in key order.
  var allGaps: [Gap] { gaps.entries(in: .all, limit: .max, order: .ascending).map(\.value) }

  private func gap(around key: StoreKey) -> Gap? {
    guard gaps.count > 0 else { return nil }
    let before = gaps.entries(in: KeyRange(from: "", upTo: key.successor), limit: 1, order: .descending).first?.value
    return before.flatMap { $0.range.contains(key) ? $0 : nil }
  }

  /// The first entry that is known to be lost, or the first gap and where it begins; `nil` if nothing is lost.
  var firstLost: (key: StoreKey, block: Int64)? {
    var start: StoreKey = ""
    while lostCount > 0 {
      let page = entries.entries(in: start..., limit: 1024, order: .ascending)
      for entry in page {
        if case .lost(let block) = finding(of: entry.value) { return (entry.key, block) }
      }
      guard let last = page.last else { break }
      start = last.key.successor
    }
    return gap(in: .all).map { ($0.range.lowerBound, $0.block) }
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
    if case .lost = finding(of: place) { lostCount += sign }
    liveTextSize += Int64(sign) * Int64(place.length)
  }

  /// Takes note that it is not known which keys of a range are there.
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
    _ = gaps.setValue(Gap(range: range, block: block), forKey: range.lowerBound)
  }

  /// Takes note that it is not known what happened to any key at some place of the file.
  ///
  /// - Parameter block: The place: all entries that were written before it are lost.
  mutating func loseAll(before block: Int64) {
    horizon = block
    lostCount = entries.count
    gaps = SortedMap()
    _ = gaps.setValue(Gap(range: .all, block: block), forKey: "")
  }

  /// Takes a range, whose content is known, out of all gaps.
  private mutating func fillGaps(_ range: KeyRange) {
    while let gap = gap(in: range) {
      _ = gaps.removeValue(forKey: gap.range.lowerBound)
      for part in gap.range.subtracting(range) {
        _ = gaps.setValue(Gap(range: part, block: gap.block), forKey: part.lowerBound)
      }
    }
  }
}

extension KeyRange {
  /// The parts of the range that another one, which has keys in common with it, does not have.
  fileprivate func subtracting(_ other: KeyRange) -> [KeyRange] {
    var parts = [KeyRange(from: lowerBound, upTo: other.lowerBound)]
    if let end = other.upperBound { parts.append(KeyRange(from: max(end, lowerBound), upTo: upperBound)) }
    return parts.filter { !$0.isEmpty }
  }
}
#endif
