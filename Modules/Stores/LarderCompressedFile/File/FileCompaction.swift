#if Compression
import Larder
import LarderCompression
import LarderFiles

/// A compaction of a compressed file, which writes every entry once, in key order, followed by the batches that are
/// appended during the compaction.
///
/// The base can be written while the store is in use; see ``CompressedFile/beginCompaction()``.
struct FileCompaction: Sendable {
  /// The approximate number of bytes of lines that are put into key order at a time, which determines the memory used.
  private static let sliceSize = 32 << 20

  /// The offset in the old file up to which appended batches have been copied.
  private(set) var copiedEnd: Int64

  /// The index and the layout of the new file so far.
  private(set) var made: CompressedFile.NewFile

  /// The new file.
  var replacement: FileReplacement

  private let head: FileHead
  private let oldIndex: CompressedFileIndex
  private let lines: LineReader
  private let baseComposer: BlockComposer
  private let batchComposer: BlockComposer

  /// The batch that is being copied, and its incomplete line.
  private var batch: (start: BlockStart, sequence: BlockSequence)?
  private var openLine: [UInt8] = []

  /// Creates a compaction.
  ///
  /// - Parameters:
  ///   - index: The index of the old file.
  ///   - lines: The reader of the old file.
  ///   - composers: The composers of the base's blocks and of the batches' blocks.
  ///   - replacement: The new file.
  ///   - codecName: The name of the codec of the values.
  ///   - layout: The layout of the old file.
  init(
    index: CompressedFileIndex, lines: LineReader, composers: (base: BlockComposer, batch: BlockComposer),
    replacement: FileReplacement, codecName: String, layout: CompressedFile.Layout
  ) {
    oldIndex = index
    self.lines = lines
    (baseComposer, batchComposer) = composers
    self.replacement = replacement
    head = FileHead(codecName: codecName, batch: layout.lastBatch, hasBase: index.entries.count > 0)
    copiedEnd = layout.end
    let newLayout = CompressedFile.Layout(
      end: head.end, appendStart: head.end, baseEnd: head.end, blockCount: 2,
      textSize: Int64(head.line.count + head.line(of: .open).count), baseTextSize: 0, changeSize: 0,
      lastBatch: layout.lastBatch,
      durableBatch: layout.lastBatch)
    made = CompressedFile.NewFile(
      index: CompressedFileIndex(), layout: newLayout, format: .version2(head: head, isWhole: true),
      unnoted: UnnotedBlocks(from: 0))
  }

  // MARK: The base

  /// Writes the header and the base.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - isAbandoned: A closure that returns whether to stop.
  /// - Throws: ``StoreError``; ``FileError``; `CancellationError` if it was stopped.
  mutating func writeBase(during operation: StoreOperation, unless isAbandoned: () -> Bool) throws {
    try replacement.writer.write(head.block + head.block(of: .open))
    if head.hasBase {
      var sequence = BlockSequence(
        BlockStart(part: .base, batch: head.batch), at: head.end, of: head, after: UnnotedBlocks(from: 0),
        by: baseComposer, isCompressed: true)
      try writeEntries(to: &sequence, during: operation, unless: isAbandoned)
      try reportingZlibErrors(during: operation) { try sequence.finish() }
      try flush(&sequence)
      take(sequence)
    }
    made.layout.baseEnd = replacement.writer.count
    made.layout.baseTextSize = made.layout.textSize
    made.layout.compactionSize = CompressedFile.compactionSize(behind: made.layout.baseEnd)
    setEnd()
  }

  private mutating func writeEntries(
    to sequence: inout BlockSequence, during operation: StoreOperation, unless isAbandoned: () -> Bool
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
        try write(slice, to: &sequence, during: operation, unless: isAbandoned)
        slice.removeAll(keepingCapacity: true)
        size = 0
      }
    }
    try write(slice, to: &sequence, during: operation, unless: isAbandoned)
  }

  private mutating func write(
    _ slice: [(key: StoreKey, location: EntryLocation)], to sequence: inout BlockSequence,
    during operation: StoreOperation,
    unless isAbandoned: () -> Bool
  ) throws {
    let findings = slice.map { (key: $0.key, finding: CompressedFileIndex.Finding.found($0.location)) }
    var count = 0
    let texts = try lines.read(findings, during: operation, isKept: false) { _, line in
      count += 1
      if count.isMultiple(of: 256), isAbandoned() { throw CancellationError() }
      // A copy, because a slice would keep its whole block in memory.
      return Array(line)
    }
    for (entry, line) in zip(slice, texts) {
      guard let line else { continue }
      if isAbandoned() { throw CancellationError() }
      try reportingZlibErrors(during: operation) { try sequence.add(line[...], .set(entry.key, ())) }
      try flush(&sequence)
    }
  }

  // MARK: Appended batches

  /// Copies appended batches.
  ///
  /// Their blocks are composed again, because a block is valid only at its own offset in its own file.
  ///
  /// - Parameters:
  ///   - source: The old file.
  ///   - end: The end of the last batch to copy.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with `corrupted` if a block is damaged; ``FileError``.
  mutating func copy(of source: BlockReader.Source, upTo end: Int64, during operation: StoreOperation) throws {
    while copiedEnd < end {
      do {
        let block = try lines.blocks.readBlock(at: copiedEnd, of: source)
        if block.isContinuation { try copyContinuation(block) } else { try copyStart(block) }
        copiedEnd = block.end
      } catch let error as ZlibError {
        throw StoreError(error, during: operation, store: lines.store)
      } catch let error where error is BlockReader.Damage || error is StoreLine.Problem {
        throw lines.damageError("", BlockReader.Damage(block: copiedEnd), during: operation)
      }
    }
    setEnd()
  }

  private mutating func copyStart(_ block: BlockCache.Block) throws {
    guard let (start, startEnd) = BlockStart.read(block.text), start.part == .batch, openLine.isEmpty else {
      throw BlockReader.Damage(block: copiedEnd)
    }
    var batch =
      batch
      ?? (
        start,
        BlockSequence(
          BlockStart(part: .batch, batch: start.batch, durableBatch: start.batch - 1), at: replacement.writer.count,
          of: head, after: made.unnoted ?? UnnotedBlocks(from: replacement.writer.count), by: batchComposer,
          // The condition under which it was compressed when it was written.
          isCompressed: block.text.count >= CompressedFile.leastCompressedSize)
      )
    // Releases the second reference, which would cause a copy.
    self.batch = nil
    batch.start = start
    let text = block.text
    var open: [UInt8] = []
    try StoreText.forEachChange(in: text, from: StoreText.changesStart(in: text, after: startEnd)) {
      change, range, isWhole in
      if isWhole { try batch.sequence.add(text[range], change) } else { open = Array(text[range]) }
    }
    openLine = open
    try continueBatch(batch)
  }

  private mutating func copyContinuation(_ block: BlockCache.Block) throws {
    guard var batch, !openLine.isEmpty else { throw BlockReader.Damage(block: copiedEnd) }
    openLine += block.text
    guard openLine.last == UInt8(ascii: "\n") else { return }
    self.batch = nil
    try batch.sequence.add(openLine[...], StoreLine.change(openLine[...]))
    openLine = []
    try continueBatch(batch)
  }

  private mutating func continueBatch(_ batch: (start: BlockStart, sequence: BlockSequence)) throws {
    var batch = batch
    let isComplete = batch.start.isLast && openLine.isEmpty
    if isComplete { try batch.sequence.finish() }
    try flush(&batch.sequence)
    self.batch = isComplete ? nil : batch
    guard isComplete else { return }
    take(batch.sequence)
    made.layout.lastBatch = batch.start.batch
    made.layout.durableBatch = batch.start.batch
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

  private func reportingZlibErrors(during operation: StoreOperation, _ body: () throws -> Void) throws {
    do {
      try body()
    } catch let error as ZlibError {
      throw StoreError(error, during: operation, store: lines.store)
    }
  }
}
#endif
