#if Compression
import Larder

/// The first keys of a range, and what the index knows of each.
struct IndexPage: Sendable {
  /// The keys, in the order that was asked for.
  let findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)]

  /// Something that lies between them or behind them where nobody knows which keys there are, if it could have keys
  /// that belong here.
  let gap: CompressedFileIndex.Gap?

  /// Looks them up.
  ///
  /// - Parameters:
  ///   - index: The index.
  ///   - range: The keys to look at.
  ///   - limit: The most keys; not negative.
  ///   - order: The direction.
  init(of index: CompressedFileIndex, in range: KeyRange, limit: Int, order: ScanOrder) {
    findings = index.entries.entries(in: range, limit: limit, order: order).map { entry in
      (entry.key, index.finding(of: entry.value))
    }
    guard limit > 0 else {
      gap = nil
      return
    }
    guard findings.count == limit, let last = findings.last?.key else {
      gap = index.gap(in: range, order: order)
      return
    }
    switch order {
    case .ascending: gap = index.gap(in: KeyRange(from: range.lowerBound, upTo: last))
    case .descending: gap = index.gap(in: range.after(last), order: order)
    }
  }
}
#endif
