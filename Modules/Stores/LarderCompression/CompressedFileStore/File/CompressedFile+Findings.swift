#if Compression
import Larder
import LarderFiles

extension CompressedFile {
  /// What verification has to report.
  ///
  /// - Parameters:
  ///   - recovery: What was found on the disk.
  ///   - index: What the store shows.
  ///   - reader: Reads the lines of the index.
  ///   - check: Says what is wrong with the line of a key, or `nil`.
  func findings(
    of recovery: FileRecovery, comparedWith index: CompressedFileIndex, _ reader: LineReader,
    _ check: (StoreKey, ArraySlice<UInt8>) -> String?
  ) -> [VerificationReport.Finding] {
    var findings: [VerificationReport.Finding] = []
    func report(_ key: StoreKey?, _ block: Int64?, _ message: String) {
      let place = block.map { "\(path), byte \($0)" } ?? path
      findings.append(VerificationReport.Finding(key: key, place: place, message: message))
    }
    var named: Set<Int64> = []
    var last: (offset: Int64, block: BlockCache.Block)?
    recovery.index.entries.forEach { key, place in
      guard !place.isLost else {
        named.insert(place.block)
        report(key, place.block, "the block of the entry is damaged")
        return
      }
      do {
        let line = try reader.line(at: place, &last, isKept: false)
        if let message = check(key, line) { report(key, place.block, message) }
      } catch {
        report(key, place.block, "the entry cannot be read")
      }
      if index.entries[key] != place { report(key, place.block, "the entry on disk is not the one that was written") }
    }
    index.entries.forEach { key, _ in
      if !recovery.index.entries.contains(key) { report(key, nil, "the entry is not on the disk") }
    }
    for gap in recovery.index.gaps {
      named.insert(gap.block)
      report(gap.range.lowerBound, gap.block, "a block is damaged, and with it the entries from this key on")
    }
    for block in recovery.damage where !named.contains(block) {
      report(nil, block, "a block is damaged that holds no entry any more")
    }
    return findings.sorted { ($0.key ?? "") < ($1.key ?? "") }
  }
}
#endif
