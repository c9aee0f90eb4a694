#if Compression
import Larder
import LarderFiles

/// The file of a `CompressedFileStore` on disk, for the one object that has it open.
///
/// It is appended to, and now and then **compacted**: written anew beside, with every entry once and in key order,
/// while appending goes on; what was appended meanwhile is copied behind it, and the new file takes the place of the
/// old one.
///
/// Once the system has failed to make the file durable nobody knows what of it is on the disk, and the system may
/// report success the next time. So the file is never written to again then: the store goes on with a copy of what was
/// acknowledged, in a new file.
///
/// Everything here blocks.
struct CompressedFile: Sendable {
  let configuration: StoreFileConfiguration

  /// What the file holds; whoever writes a batch here shows it there.
  let contents: CompressedFileContents

  let path: String
  let lock: FileLock?

  /// The files that must be at their paths whenever the store writes.
  var opened: OpenedFiles

  /// What the bytes of the codec are.
  let codecFormat: CodecFormat
  let codecName: String

  /// Makes blocks fast, for batches, which are compressed again later; and small, for the base.
  let batchComposer = BlockComposer(level: 1)
  let baseComposer = BlockComposer(level: 6)

  var file: any OpenFile
  var format: FileFormat
  var layout: Layout

  /// The blocks that no notes are about yet, once they were looked at.
  var unnoted: UnnotedBlocks?

  /// Appends; `nil` as long as there was nothing to append, and the file stands as it was opened.
  var log: AppendLog?

  /// Whether it is not known what of the file is on the disk, so that it is written anew before anything is appended.
  ///
  /// It is unknown after a failed synchronization, and when the file was not closed: another process may have met such a
  /// failure, after which the system shows what is not on the disk.
  var isUncertain: Bool

  /// How long the file was when it was opened, with what stands behind its good blocks.
  let sizeAtOpening: Int64

  /// Whether a compaction goes on.
  var isCompacting = false

  /// Whether the file is written anew before anything is appended.
  var mustBeReplaced: Bool { isUncertain || log?.failure != nil || format == .version1 }

  var name: String { configuration.name }

  /// What is where in the file.
  struct Layout: Sendable {
    /// Where the next block goes.
    var end: Int64
    /// Where the blocks begin that were appended to this file since it was opened or made.
    var appendStart: Int64
    var baseEnd: Int64
    var blockCount: Int
    var textSize: Int64
    /// The bytes of text up to the end of the base.
    var baseTextSize: Int64
    /// The bytes of the lines that are changes, with those that later changes have made useless.
    var changeSize: Int64
    var lastBatch: UInt64
    var durableBatch: UInt64
    /// The bytes that were removed when the file was first written to.
    var tornSize: Int64 = 0
    /// The bytes that no store has written.
    var foreignSize: Int64 = 0
    /// From where on no notes are about the blocks, and the blocks with changes there, when the file was opened.
    var notesEnd: Int64 = 0
    var unnoted: ArraySlice<FoundFile.UnnotedBlock> = []
    /// The bytes behind the base, and of useless lines, from which on a write begins a compaction.
    var compactionSize: Int64 = 0
    var deadSize = CompressedFile.leastDeadSize
  }

  /// The least text of a batch that is compressed at once: to compress less costs more time than it is worth.
  static let leastCompressedSize = 4096

  // MARK: Writing

  /// The file, and where its good blocks end: up to there a compaction can copy it.
  var uncopied: (source: BlockReader.Source?, end: Int64) { (contents.snapshot?.lines.source, layout.end) }

  /// Writes a batch, as durably as the configuration says, and shows it to the readers.
  ///
  /// - Parameters:
  ///   - changes: The batch, with the JSON text of each value.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError``.
  mutating func append(_ changes: [Change<ArraySlice<UInt8>>], during operation: StoreOperation) throws {
    let changes = changes.map { change -> Change<ArraySlice<UInt8>> in
      if case .removeAll(let range) = change { .removeAll(range.withShortBounds) } else { change }
    }
    let lines = changes.map { StoreLine.bytes(of: $0, format: codecFormat) }
    for (change, line) in zip(changes, lines) where line.count > EntryPlace.maximumLength {
      throw StoreError(
        .valueTooLarge, during: operation, store: name, key: change.key,
        message: "the line of an entry has at most \(EntryPlace.maximumLength) bytes")
    }
    guard layout.lastBatch < BlockStart.maximumBatch else {
      throw configuration.error(
        .unsupported, during: operation, "\(path) says that it has had \(layout.lastBatch) writes, and can have no more"
      )
    }
    let size = lines.reduce(0) { $0 + $1.count }
    // The place of the blocks is known only once the file is fit to be written to.
    let (head, unnoted) = try prepareToAppend(during: operation)
    var sequence = BlockSequence(
      BlockStart(part: .batch, batch: layout.lastBatch + 1, durableBatch: layout.durableBatch), at: layout.end,
      of: head,
      after: unnoted, by: batchComposer, isCompressed: size >= CompressedFile.leastCompressedSize)
    try configuration.reportingZlibErrors(during: operation) {
      for (change, line) in zip(changes, lines) { try sequence.add(line[...], change.mapValue { _, _ in }) }
      try sequence.finish()
    }
    try append(sequence.takeBytes(), isDurable: configuration.durability == .synced, during: operation)
    layout.lastBatch += 1
    if configuration.durability == .synced { layout.durableBatch = layout.lastBatch }
    layout.blockCount += sequence.blockCount
    layout.textSize += sequence.textSize
    layout.changeSize += sequence.changeSize
    self.unnoted = sequence.unnoted
    contents.apply(sequence.takePlaced())
  }

  /// Makes the file fit to be written to.
  ///
  /// - Returns: Its head, and the blocks that no notes are about yet.
  private mutating func prepareToAppend(
    during operation: StoreOperation
  ) throws -> (head: FileHead, unnoted: UnnotedBlocks) {
    _ = try usableLog(during: operation)
    guard case .version2(let head, _) = format, let unnoted else {
      throw configuration.error(.ioFailed, during: operation, "\(path) could not be written to")
    }
    return (head, unnoted)
  }

  /// Appends bytes behind the good ones.
  private mutating func append(_ bytes: [UInt8], isDurable: Bool, during operation: StoreOperation) throws {
    guard var log else { throw configuration.error(.ioFailed, during: operation, "\(path) could not be written to") }
    do {
      try log.append(bytes)
      if isDurable { try log.synchronize() }
      self.log = log
    } catch {
      self.log = log
      // A copy without these bytes makes certain that they will not turn up.
      let isCertain = log.failure == nil || replaceIfPossible()
      throw StoreError(
        error, during: operation, store: name, message: "the change could not be written to \(path)",
        outcome: isCertain ? .nothingChanged : .unknown)
    }
    layout.end = log.size
  }

  /// Makes sure that the files are where they were opened, and that no other program has written to the data file.
  func checkFiles(during operation: StoreOperation) throws {
    try configuration.check(opened, during: operation)
    // What a failed log has left on the disk is unknown, so it is replaced.
    guard log?.failure == nil else { return }
    let size = try configuration.reportingFileErrors(during: operation, message: "\(path) could not be looked at") {
      try file.attributes().size
    }
    // The end of the file may be gone without a log: if removing it has failed, and was done.
    guard size == layout.end || log == nil && size == sizeAtOpening else {
      throw configuration.error(
        .conflict, during: operation,
        "\(path) was changed by another program while the store was open; close the store and open it again")
    }
  }

  /// Returns the log, made if there is none, and on a new file if the old one must not be written to.
  mutating func usableLog(during operation: StoreOperation) throws -> AppendLog {
    try checkFiles(during: operation)
    return try configuration.reportingFileErrors(during: operation, message: "\(path) could not be written to") {
      try configuration.reportingZlibErrors(during: operation) {
        if mustBeReplaced { try replace(during: operation) }
        try readUnnoted(during: operation)
      }
      if let log { return log }
      // Whoever made the file may have died before its name was durable.
      try configuration.fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
      do throws(FileError) {
        try write(.open)
        // A power cut must not leave a file without the ending that its mark speaks of.
        try file.synchronizeThroughInterruptions()
        let log = try AppendLog(continuing: file, at: layout.end)
        self.log = log
        return log
      } catch {
        guard error.operation == .synchronize else { throw error }
        isUncertain = true
        guard replaceIfPossible(), let log else { throw error }
        return log
      }
    }
  }

  /// Writes the mark of the end in its place, if the file has one.
  func write(_ mark: EndMark) throws(FileError) {
    guard case .version2(let head, isWhole: true) = format else { return }
    let block = head.block(of: mark)
    var failure: FileError?
    block.withUnsafeBytes { bytes in
      do throws(FileError) { try file.writeAll(bytes, at: head.markOffset) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Reads the blocks that no notes are about yet.
  mutating func readUnnoted(during operation: StoreOperation) throws {
    guard unnoted == nil, let lines = contents.snapshot?.lines else { return }
    var blocks = UnnotedBlocks(from: layout.notesEnd)
    let unnotedBlocks = layout.unnoted.filter { $0.offset < layout.end }
    for (index, found) in unnotedBlocks.enumerated() {
      let offset = found.offset
      var notes = ChangeNotes()
      if let (end, changes) = found.lost {
        for change in changes { notes.add(change) }
        blocks.append(offset..<end, notes)
        continue
      }
      do {
        let block = try lines.blocks.block(at: offset, of: lines.source, isKept: false)
        if let startEnd = BlockStart.read(block.text)?.end {
          let start = StoreText.changesStart(in: block.text, after: startEnd)
          try StoreText.forEachChange(in: block.text, from: start) { change, _, _ in notes.add(change) }
        }
        blocks.append(offset..<block.end, notes)
        // Up to the next one stand the blocks that its last line goes on in.
        let next = index + 1 < unnotedBlocks.count ? unnotedBlocks[index + 1].offset : layout.end
        if next > block.end { blocks.append(block.end..<next, ChangeNotes()) }
      } catch let error where !(error is FileError || error is ZlibError) {
        // The block was damaged after the file was opened. Its changes cannot be read, so no notes are made of them.
        blocks = UnnotedBlocks(from: min(layout.end, offset + 1))
      }
    }
    unnoted = blocks
  }

  // MARK: Durability

  /// Makes every batch so far durable.
  ///
  /// - Throws: ``StoreError``.
  mutating func synchronize() throws {
    guard layout.durableBatch < layout.lastBatch || isUncertain else {
      return try configuration.check(opened, during: .synchronize)
    }
    var log = try usableLog(during: .synchronize)
    do {
      try log.synchronize()
      self.log = log
    } catch {
      self.log = log
      _ = replaceIfPossible()
      throw StoreError(
        error, during: .synchronize, store: name, message: "\(path) could not be made durable", outcome: .unknown)
    }
    layout.durableBatch = layout.lastBatch
  }

  /// Gives the file an end, marks it as closed, closes it, and gives the lock back.
  ///
  /// - Throws: ``StoreError``; the lock is given back all the same.
  mutating func close() throws {
    try configuration.reportingFileErrors(during: .close, message: "the store could not be closed cleanly") {
      let ending = Result { try configuration.access == .readWrite ? end() : () }
      contents.close()
      let closing = Result { try file.close() }
      try lock?.release()
      try ending.get()
      try closing.get()
    }
  }

  private mutating func end() throws {
    // A file of version 1 that nothing was written to stays as it is.
    guard log != nil || isUncertain && format != .version1 else {
      return try configuration.check(opened, during: .close)
    }
    try synchronize()
    var log = try usableLog(during: .close)
    guard case .version2(let head, _) = format, let unnoted else { return }
    let end = layout.end
    let ending = try configuration.reportingZlibErrors(during: .close) {
      try FileEnding.bytes(at: end, batch: layout.lastBatch, unnoted: unnoted, of: head, by: batchComposer)
    }
    let appending = Result { try log.append(ending) }
    // Notes are not worth a file that is not closed, and on a full disk there is no room for them.
    if log.failure != nil { try appending.get() }
    layout.end = log.size
    // Before the mark that says how long the file is: after a power cut it would look as if it had been cut.
    try log.synchronize()
    try write(.closed(end: end, batch: layout.lastBatch, size: log.size))
    try file.synchronizeThroughInterruptions()
  }
}

extension KeyRange {
  /// A range of the same keys whose bounds have at most ``StoreKey/maximumLength`` bytes and one.
  ///
  /// Between a longer bound and its beginning with a zero byte behind there is no key that could be stored.
  var withShortBounds: KeyRange {
    func short(_ bound: StoreKey) -> StoreKey {
      guard bound.count > StoreKey.maximumLength else { return bound }
      return StoreKey(bytes: bound.bytes.prefix(StoreKey.maximumLength) + [0])
    }
    return KeyRange(from: short(lowerBound), upTo: upperBound.map(short))
  }
}
#endif
