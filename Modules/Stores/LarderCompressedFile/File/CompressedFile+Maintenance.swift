#if Compression
import Larder
import LarderCompression
import LarderFiles

extension CompressedFile {
  /// Returns the statistics of the file.
  func statistics() -> StoreStatistics {
    let index = snapshot?.index
    let live = index?.liveTextSize ?? 0
    let size = log == nil ? sizeAtOpening : layout.end
    let details: [(String, Int64)] = [
      ("blocks", Int64(layout.blockCount)), ("textBytes", layout.textSize), ("liveTextBytes", live),
      ("deadTextBytes", max(0, layout.changeSize - live)), ("percentOfText", size * 100 / max(1, layout.textSize)),
      ("uncompactedBytes", max(0, layout.end - layout.baseEnd)),
      ("cachedBytes", Int64(snapshot?.lines.blocks.cachedSize ?? 0)),
      ("tornBytes", layout.tornSize), ("foreignBytes", layout.foreignSize),
    ]
    return StoreStatistics(
      entryCount: index?.entries.count ?? 0, bytesOnDisk: size,
      details: details.map { StoreStatistics.Detail(name: $0.0, value: $0.1) })
  }

  /// Reads the whole file from disk again.
  ///
  /// - Throws: ``StoreError``, for example `corrupted`, if the file cannot be read as a store.
  private func rescan() throws -> FoundFile {
    try configuration.reportingFileErrors(during: .verify, message: "the store could not be read") {
      try CompressedFile.scan(
        file, of: path, size: log == nil ? file.attributes().size : layout.end,
        upTo: log == nil ? nil : (layout.end, layout.lastBatch), configuration, inflaters,
        during: .verify)
    }
  }

  /// Writes a copy that can be opened as a store.
  ///
  /// - Parameters:
  ///   - destination: The path of the copy.
  ///   - isCompacted: A Boolean value that indicates whether to compact the copy. Otherwise it is a byte-for-byte copy,
  ///     including damage.
  /// - Throws: ``StoreError``.
  mutating func backup(to destination: String, compacting isCompacted: Bool) throws {
    guard let (index, lines) = snapshot else { return }
    if isCompacted { try checkSound(index, during: .backup) }
    let store = try StoreCopy(
      CompressedFile.files(at: destination), of: CompressedFile.files(at: path), store: configuration.name,
      in: configuration.fileSystem)
    try store.write { temporaryPath in
      let replacement = try FileReplacement(of: temporaryPath, like: nil, in: configuration.fileSystem)
      var copy = FileCompaction(of: self, index, lines, to: replacement)
      do {
        if isCompacted {
          try copy.writeBase(during: .backup)
          try end(&copy.replacement, as: copy.made)
        } else {
          try copyBytes(to: &copy.replacement.writer)
          try end(
            &copy.replacement, as: NewFile(index: index, layout: layout, head: head, isWhole: isWhole, unnoted: unnoted)
          )
        }
      } catch {
        copy.replacement.abandon()
        throw error
      }
      try copy.replacement.commit { file throws(FileError) in try file.close() }
    }
  }

  /// Returns all files of a store.
  static func files(at path: String) -> StoreFileSet {
    StoreFileSet(
      at: path,
      companions: [
        StoreFileSet.Companion(
          suffix: StoreFileSet.lockSuffix, role: .lock, summary: "the lock file of a store")
      ])
  }

  /// Writes the end of a copy, and marks the copy as closed.
  private func end(_ replacement: inout FileReplacement, as new: NewFile) throws {
    let end = replacement.writer.count
    let batch = new.layout.lastBatch
    let ending = try configuration.reportingZlibErrors(during: .backup) {
      try FileEnding.bytes(at: end, batch: batch, unnoted: new.unnoted, of: new.head, by: batchComposer)
    }
    try replacement.writer.write(ending)
    guard new.isWhole else { return }
    let mark = new.head.block(of: .closed(end: end, batch: batch, size: replacement.writer.count))
    // Bytes that the writer still buffers would overwrite the mark.
    try replacement.synchronize()
    try replacement.file.writeAll(mark, at: new.head.markOffset)
  }

  // MARK: Verification

  /// Reads and checks the whole file.
  ///
  /// - Parameter check: A closure that returns the problem with the line of a key, or `nil`.
  func verify(_ check: (StoreKey, ArraySlice<UInt8>) -> String?) throws -> VerificationReport {
    guard let (index, reader) = snapshot else { return VerificationReport(entryCount: 0) }
    var report = VerificationReport(entryCount: index.entries.count)
    do {
      let found = try rescan()
      report.findings = try configuration.reportingZlibErrors(during: .verify) {
        try findings(of: found, comparedWith: index, reader, check)
      }
    } catch let error as StoreError where error.code != .ioFailed && error.code != .notPermitted {
      report.findings.append(VerificationReport.Finding(key: error.key, place: path, message: error.message))
    }
    return report
  }

  /// Returns the findings of verification.
  ///
  /// - Parameters:
  ///   - found: The content of the file on disk.
  ///   - index: The index of the open store.
  ///   - reader: The reader of the index's lines.
  ///   - check: A closure that returns the problem with the line of a key, or `nil`.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  private func findings(
    of found: FoundFile, comparedWith index: CompressedFileIndex, _ reader: LineReader,
    _ check: (StoreKey, ArraySlice<UInt8>) -> String?
  ) throws -> [VerificationReport.Finding] {
    var findings: [VerificationReport.Finding] = []
    func report(_ key: StoreKey?, _ block: Int64?, _ message: String) {
      let place = block.map { "\(path), byte \($0)" } ?? path
      findings.append(VerificationReport.Finding(key: key, place: place, message: message))
    }
    var named: Set<Int64> = []
    var last: Block?
    let unknownBlock = found.index.horizon
    if unknownBlock > 0 {
      // One finding, because thousands of entries can be older than the block.
      named.insert(unknownBlock)
      report(nil, unknownBlock, CompressedFile.messageOfUnknownChanges(olderCount: found.index.possiblyOlderCount))
    }
    try found.index.entries.forEach { key, location in
      if !location.isLost, location.block < unknownBlock { return }
      if case .lost(let block) = found.index.finding(of: location) {
        named.insert(block)
        report(key, block, "the block of the entry is damaged")
        return
      }
      do {
        let line = try reader.line(at: location, &last, isKept: false)
        if let message = check(key, line) { report(key, location.block, message) }
      } catch let error as ZlibError {
        // A lack of memory says nothing about the entry.
        throw error
      } catch {
        report(key, location.block, "the entry cannot be read")
      }
      if index.entries[key] != location {
        report(key, location.block, "the entry on disk is not the one that was written")
      }
    }
    index.entries.forEach { key, _ in
      if !found.index.entries.contains(key) { report(key, nil, "the entry is not on disk") }
    }
    for gap in found.index.allGaps where unknownBlock == 0 || gap.block != unknownBlock {
      named.insert(gap.block)
      report(gap.range.lowerBound, gap.block, CompressedFile.message(of: gap))
    }
    for block in found.damage where !named.contains(block) {
      report(nil, block, "a part of the file without current entries is damaged")
    }
    for remark in found.remarks { report(nil, remark.offset, remark.message) }
    if found.layout.foreignSize > 0, found.remarks.isEmpty {
      report(nil, nil, "the file contains \(found.layout.foreignSize) bytes that no store has written")
    }
    return findings.sorted { ($0.key ?? "") < ($1.key ?? "") }
  }

  private static func messageOfUnknownChanges(olderCount: Int) -> String {
    let entries = olderCount == 1 ? "1 entry" : "\(olderCount) entries"
    return
      "a part of the file is damaged, and its changes are unknown, so they may have replaced or removed \(entries) "
      + "before it, and set other keys"
  }

  private static func message(of gap: CompressedFileIndex.Gap) -> String {
    gap.range.upperBound == nil
      ? "a part of the file is damaged, with an unknown number of entries from this key on"
      : "a part of the file is damaged, with an unknown number of entries between this key and the next one"
  }
}
#endif
