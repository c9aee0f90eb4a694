#if Compression
import Larder

/// The content of a `CompressedFileStore` as its readers see it.
struct CompressedFileContent: Sendable {
  var index = CompressedFileIndex()
  /// The reader of the file that the index describes, or `nil` before it is read and after it is closed.
  var lines: LineReader?
}

/// The keys of a compressed file and the locations of their lines, including what was lost to damage.
struct CompressedFileIndex: Sendable {
  /// A range where it is unknown which keys exist, because their changes are damaged.
  struct Gap: Equatable, Sendable {
    var range: KeyRange
    /// The offset of the damage in the file.
    var block: Int64
  }

  /// The state of a key.
  enum Finding: Equatable {
    case missing
    case found(EntryLocation)
    /// The key exists or may exist, but its change is damaged at the given offset.
    case lost(block: Int64)
  }

  private(set) var entries = SortedEntries<EntryLocation>()

  /// The gaps by their lower bounds, without overlaps.
  private var gaps = SortedEntries<Gap>()

  /// The number of entries that are known to be lost.
  private(set) var lostCount = 0

  /// The total size of the lines of all entries, in bytes.
  private(set) var liveTextSize: Int64 = 0

  /// The offset before which every entry is lost, because unknown later changes may have overwritten it; 0 if there
  /// isn't one.
  private(set) var horizon: Int64 = 0

  /// A Boolean value that indicates whether any entry is lost.
  var isDamaged: Bool { lostCount > 0 || gaps.count > 0 }

  // MARK: Reading

  /// Returns the state of a key.
  func find(_ key: StoreKey) -> Finding {
    if let location = entries[key] { return finding(of: location) }
    return gap(around: key).map { .lost(block: $0.block) } ?? .missing
  }

  /// Returns the state of an entry.
  func finding(of location: EntryLocation) -> Finding {
    if location.isLost { return .lost(block: location.block) }
    return location.block < horizon ? .lost(block: horizon) : .found(location)
  }

  /// Returns the first gap that overlaps a range.
  ///
  /// - Parameters:
  ///   - range: The range.
  ///   - order: The direction of the search. Defaults to ascending.
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

  /// The first entry that is known to be lost, or else the lower bound of the first gap; `nil` if nothing is lost.
  var firstLost: (key: StoreKey, block: Int64)? {
    var first: (key: StoreKey, block: Int64)?
    if lostCount > 0 {
      entries.forEach { key, location in
        if first == nil, case .lost(let block) = finding(of: location) { first = (key, block) }
      }
    }
    if let first { return first }
    return gap(in: .all).map { ($0.range.lowerBound, $0.block) }
  }

  // MARK: Changing

  /// Applies one change of a batch.
  mutating func apply(_ change: BatchChange<EntryLocation>) {
    var displaced: [EntryLocation] = []
    entries.apply(change, displacing: &displaced)
    for location in displaced { count(location, -1) }
    switch change {
    case .set(let key, let location):
      count(location, 1)
      fillGaps(.only(key))
    case .remove(let key): fillGaps(.only(key))
    case .removeAll(let range): fillGaps(range)
    }
  }

  private mutating func count(_ location: EntryLocation, _ sign: Int) {
    if case .lost = finding(of: location) { lostCount += sign }
    liveTextSize += Int64(sign) * Int64(location.length)
  }

  /// Marks a range as one in which it is unknown which keys exist.
  ///
  /// - Parameters:
  ///   - range: The range. Its entries count as lost.
  ///   - block: The offset of the damage in the file.
  mutating func lose(_ range: KeyRange, in block: Int64) {
    guard !range.isEmpty else { return }
    for key in entries.keys(in: range, limit: .max, order: .ascending) {
      apply(.set(key, .lost(in: block)))
    }
    fillGaps(range)
    _ = gaps.setValue(Gap(range: range, block: block), forKey: range.lowerBound)
  }

  /// Marks all earlier entries as lost, because unknown changes may have affected any key.
  ///
  /// - Parameter block: The offset of the damage. Entries that were written before it are lost.
  mutating func loseAll(before block: Int64) {
    horizon = block
    lostCount = entries.count
    gaps = SortedEntries()
    _ = gaps.setValue(Gap(range: .all, block: block), forKey: "")
  }

  /// The number of entries that are lost only because unknown changes may have replaced or removed them.
  var possiblyOlderCount: Int {
    var count = 0
    if horizon > 0 { entries.forEach { count += !$1.isLost && $1.block < horizon ? 1 : 0 } }
    return count
  }

  /// Finds entries that unknown changes may have replaced or removed, as if there were no such changes.
  mutating func findPossiblyOlder() {
    for gap in allGaps where gap.block == horizon { _ = gaps.removeValue(forKey: gap.range.lowerBound) }
    lostCount -= possiblyOlderCount
    horizon = 0
  }

  /// Removes a range, whose content is known, from all gaps.
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
  /// Returns the parts of the range that are outside another range that overlaps it.
  fileprivate func subtracting(_ other: KeyRange) -> [KeyRange] {
    var parts = [KeyRange(from: lowerBound, upTo: other.lowerBound)]
    if let end = other.upperBound { parts.append(KeyRange(from: max(end, lowerBound), upTo: upperBound)) }
    return parts.filter { !$0.isEmpty }
  }
}

/// The location of the line of an entry, in 12 bytes, because the index has one for each entry.
struct EntryLocation: Equatable, Sendable {
  private var blockLow: UInt32
  private var blockHigh: UInt16
  private var offset: UInt16

  /// The size of the line including its newline, in bytes; 0 if the line is lost.
  private(set) var length: UInt32

  /// The maximum size of a line, in bytes.
  static let maximumLength = Int(UInt32.max)

  /// Creates a location.
  ///
  /// - Parameters:
  ///   - block: The offset, in the file, of the block in which the line begins. It must be below 2 to the 48th.
  ///   - offset: The offset of the line in the text of that block.
  ///   - length: The size of the line including its newline, in bytes, at most ``maximumLength``. A line that does not
  ///     fit into its block continues in the next ones.
  init(block: Int64, offset: Int, length: Int) {
    blockLow = UInt32(truncatingIfNeeded: block)
    blockHigh = UInt16(truncatingIfNeeded: block >> 32)
    self.offset = UInt16(truncatingIfNeeded: offset)
    self.length = UInt32(clamping: length)
  }

  /// Returns the location of a line that was lost with a damaged block.
  ///
  /// - Parameter block: The offset of the damage in the file.
  static func lost(in block: Int64) -> EntryLocation {
    EntryLocation(block: block, offset: 0, length: 0)
  }

  /// The offset, in the file, of the block in which the line begins.
  var block: Int64 { Int64(blockHigh) << 32 | Int64(blockLow) }

  /// The offset of the line in the text of that block.
  var textOffset: Int { Int(offset) }

  /// A Boolean value that indicates whether the line is lost.
  var isLost: Bool { length == 0 }
}

/// The first keys of a range, each with its state.
struct IndexPage: Sendable {
  /// The keys, in the requested order.
  let findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)]

  /// A gap that may contain keys which belong on this page, if there is one.
  let gap: CompressedFileIndex.Gap?

  /// Looks up the keys of a page.
  ///
  /// - Parameters:
  ///   - index: The index.
  ///   - range: The range of the keys.
  ///   - limit: The maximum number of keys. It must not be negative.
  ///   - order: The order of the keys.
  init(of index: CompressedFileIndex, in range: KeyRange, limit: Int, order: ScanOrder) {
    findings = index.entries.entries(in: range, limit: limit, order: order).map { entry in
      (entry.key, index.finding(of: entry.value))
    }
    var scanned = range
    if findings.count == limit, let last = findings.last?.key {
      scanned = order == .ascending ? range.before(last) : range.after(last)
    }
    gap = limit > 0 ? index.gap(in: scanned, order: order) : nil
  }
}
#endif
