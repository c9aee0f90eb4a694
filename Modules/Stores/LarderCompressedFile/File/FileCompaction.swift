#if Compression
import Larder
import LarderCompression
import LarderFiles

/// A compaction of a compressed file, which writes every entry once, in key order, followed by the changes that are made
/// during the compaction.
///
/// The base can be written while the store is in use; see ``CompressedFile/beginCompaction()``.
struct FileCompaction: Sendable {
  /// The approximate number of bytes of lines that are put into key order at a time, which determines the memory used.
  private static let sliceSize = 32 << 20

  /// The index and the layout of the new file so far.
  private(set) var made: CompressedFile.NewFile

  /// The new file.
  var replacement: FileReplacement

  private let head: FileHead
  private let oldIndex: CompressedFileIndex
  private let lines: LineReader
  /// The old file.
  private let file: CompressedFile

  /// Creates a compaction.
  ///
  /// - Parameters:
  ///   - file: The old file.
  ///   - index: The index of the old file.
  ///   - lines: The reader of the old file.
  ///   - replacement: The new file.
  init(of file: CompressedFile, _ index: CompressedFileIndex, _ lines: LineReader, to replacement: FileReplacement) {
    self.file = file
    oldIndex = index
    self.lines = lines
    self.replacement = replacement
    let layout = file.layout
    head = FileHead(codecName: file.codecName, batch: layout.lastBatch, hasBase: index.entries.count > 0)
    let newLayout = FileLayout(
      end: head.end, appendStart: head.end, baseEnd: head.end, blockCount: 2,
      textSize: Int64(head.line.count + head.line(of: .open).count), lastBatch: layout.lastBatch,
      durableBatch: layout.lastBatch)
    made = CompressedFile.NewFile(
      index: CompressedFileIndex(), layout: newLayout, head: head, isWhole: true,
      unnoted: UnnotedBlocks(from: 0))
  }

  // MARK: The base

  /// Writes the header and the base.
  ///
  /// - Parameter operation: The operation, for errors.
  /// - Throws: ``StoreError``; ``FileError``; `CancellationError` if no store uses the file any more.
  mutating func writeBase(during operation: StoreOperation) throws {
    try replacement.writer.write(head.block + head.block(of: .open))
    if head.hasBase {
      var sequence = BlockSequence(
        BlockStart(part: .base, batch: head.batch), at: head.end, of: head, after: UnnotedBlocks(from: 0),
        by: file.baseComposer, isCompressed: true)
      try writeEntries(to: &sequence, during: operation)
      try file.configuration.reportingZlibErrors(during: operation) { try sequence.finish() }
      try flush(&sequence)
      take(sequence)
    }
    made.layout.baseEnd = replacement.writer.count
    made.layout.baseTextSize = made.layout.textSize
    setEnd()
  }

  private mutating func writeEntries(
    to sequence: inout BlockSequence, during operation: StoreOperation
  ) throws {
    var slice: [(key: StoreKey, location: EntryLocation)] = []
    var size = 0
    var start: StoreKey = ""
    while true {
      // The index is read in pages, so that no caller waits for a walk over all of it.
      let page = oldIndex.entries.entries(in: start..., limit: 4096, order: .ascending)
      guard let last = page.last else { break }
      start = last.key.successor
      for entry in page {
        slice.append((entry.key, entry.value))
        size += Int(entry.value.length)
        guard size >= FileCompaction.sliceSize else { continue }
        try write(slice, to: &sequence, during: operation)
        slice.removeAll(keepingCapacity: true)
        size = 0
      }
    }
    try write(slice, to: &sequence, during: operation)
  }

  private mutating func write(
    _ slice: [(key: StoreKey, location: EntryLocation)], to sequence: inout BlockSequence,
    during operation: StoreOperation
  ) throws {
    let findings = slice.map { (key: $0.key, finding: CompressedFileIndex.Finding.found($0.location)) }
    var count = 0
    let texts = try lines.read(findings, during: operation, isKept: false) { _, line in
      count += 1
      if count.isMultiple(of: 256), file.isAbandoned() { throw CancellationError() }
      // A copy, because a slice would keep its whole block in memory.
      return Array(line)
    }
    for (entry, line) in zip(slice, texts) {
      guard let line else { continue }
      if file.isAbandoned() { throw CancellationError() }
      try file.configuration.reportingZlibErrors(during: operation) { try sequence.add(line[...], .set(entry.key, ())) }
      try flush(&sequence)
    }
  }

  // MARK: Changes during the compaction

  /// Copies the changes that were made during the compaction, as one batch.
  ///
  /// - Parameters:
  ///   - changes: The changes, with the locations of their lines in the old file.
  ///   - lines: The reader of the old file. It may have been replaced by a copy since the compaction began.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with `corrupted` if a block is damaged; ``FileError``.
  mutating func copy(
    _ changes: [BatchChange<EntryLocation>], by lines: LineReader, during operation: StoreOperation
  ) throws {
    guard !changes.isEmpty else { return }
    let batch = made.layout.lastBatch + 1
    var sequence = BlockSequence(
      BlockStart(part: .batch, batch: batch, durableBatch: batch - 1), at: replacement.writer.count, of: head,
      after: made.unnoted, by: file.batchComposer, isCompressed: true)
    var last: Block?
    for change in changes {
      do {
        let line: ArraySlice<UInt8>
        switch change {
        case .set(_, let location): line = try lines.line(at: location, &last, isKept: false)
        case .remove(let key): line = StoreLine.bytes(of: .remove(key), format: .json)[...]
        case .removeAll(let range): line = StoreLine.bytes(of: .removeAll(range), format: .json)[...]
        }
        try file.configuration.reportingZlibErrors(during: operation) {
          try sequence.add(line, change.mapValue { _, _ in })
        }
      } catch let damage as BlockReader.Damage {
        throw lines.damageError(.only(change.key ?? ""), at: damage.block, during: operation)
      }
      try flush(&sequence)
    }
    try file.configuration.reportingZlibErrors(during: operation) { try sequence.finish() }
    try flush(&sequence)
    take(sequence)
    made.layout.lastBatch = batch
    made.layout.durableBatch = batch
    setEnd()
  }

  // MARK: The new file

  private mutating func flush(_ sequence: inout BlockSequence) throws(FileError) {
    for change in sequence.takePlaced() { made.index.apply(change) }
    try replacement.writer.write(sequence.takeBytes())
  }

  private mutating func take(_ sequence: BlockSequence) {
    made.unnoted = sequence.unnoted
    made.layout.blockCount += sequence.blockCount
    made.layout.textSize += sequence.textSize
    made.layout.changeSize += sequence.changeSize
  }

  private mutating func setEnd() {
    made.layout.end = replacement.writer.count
    made.layout.appendStart = made.layout.end
  }
}
#endif
