#if Compression
import Larder
import LarderCompression
import LarderFiles

/// The file of a `CompressedFileStore` on disk, for the one object that has it open.
///
/// Writes append to the file. At times it is **compacted**: a new file is written beside it, with every entry once and
/// in key order, while appending continues. Then the batches that were appended in the meantime are copied, and the new
/// file replaces the old one.
///
/// After the system has failed to make the file durable, it is unknown which of its bytes are on disk, and the system
/// may report success the next time. Therefore the file is never written to again. The store continues with a new file,
/// a copy of everything that was acknowledged.
///
/// All methods block.
struct CompressedFile: Sendable {
  let configuration: StoreFileConfiguration

  /// The content of the file as readers see it.
  let contents: SharedContent<CompressedFileContent>
  let inflaters: StreamPool<ZlibInflater>
  let cacheSize: Int

  /// Returns whether no store uses the file any more, so compaction is useless.
  let isAbandoned: @Sendable () -> Bool

  let path: String
  let lock: FileLock?

  /// The files that must be at their paths whenever the store writes.
  var opened: OpenedFiles

  /// The name of the codec of the values.
  var codecName: String

  /// Composers of blocks: a fast one for batches, which are compressed again later, and a thorough one for the base.
  let batchComposer = BlockComposer(level: 1)
  let baseComposer = BlockComposer(level: 6)

  var file: any OpenStoreFile
  var head: FileHead
  /// A Boolean value that indicates whether the header and the end mark are in place.
  ///
  /// If not, the file is never marked as closed.
  var isWhole: Bool
  var layout: FileLayout

  /// The blocks that no notes cover yet.
  var unnoted: UnnotedBlocks

  /// The log that appends to the file, or `nil` if nothing has been appended and the file is as it was opened.
  var log: AppendLog?

  /// A Boolean value that indicates whether it is unknown which bytes of the file are on disk, so it must be replaced
  /// before the next append.
  ///
  /// This is the case after a failed synchronization, and if the file was not closed. Another process may have met such
  /// a failure, after which the system shows bytes that are not on disk.
  var isUncertain: Bool

  /// The size of the file when it was opened, including bytes after its sound blocks.
  let sizeAtOpening: Int64

  /// The sizes, in bytes, that the appended and the obsolete lines must reach after a failed compaction before the next
  /// one, or 0 if none has failed.
  var retryUncompactedSize: Int64 = 0
  var retryDeadSize: Int64 = 0

  /// The changes since a running compaction has copied the file, or `nil` if there isn't one.
  var uncopied: [BatchChange<EntryLocation>]?

  /// The running compaction, and the thread that writes the new file.
  var compaction: Task<Void, any Error>?
  let compactionExecutor = DispatchQueueExecutor(label: "Larder.CompressedFileStore.compaction")

  /// A Boolean value that indicates whether the file must be replaced before the next append.
  var mustBeReplaced: Bool { isUncertain || log?.failure != nil }

  var name: String { configuration.name }

  /// The minimum size of a batch that is compressed immediately, in bytes.
  ///
  /// Compressing a smaller batch takes more time than it is worth.
  static let leastCompressedSize = 4096

  // MARK: Content

  /// The index and the reader of its lines, or `nil` if the file is closed.
  var snapshot: (index: CompressedFileIndex, lines: LineReader)? {
    let content = contents.snapshot
    return content.lines.map { (content.index, $0) }
  }

  /// Shows an index and its file to readers.
  func show(_ index: CompressedFileIndex, of file: any OpenStoreFile, with head: FileHead) {
    let blocks = BlockReader(file, head, inflaters: inflaters, cacheSize: cacheSize)
    contents.replace(
      CompressedFileContent(index: index, lines: LineReader(blocks: blocks, store: name, unknownBlock: index.horizon)))
  }

  /// Returns the lines of the keys of an update.
  func lines(forKeys keys: [StoreKey]) throws -> [ArraySlice<UInt8>?] {
    guard let (index, lines) = snapshot else { return keys.map { _ in nil } }
    return try lines.read(keys.map { ($0, index.find($0)) }, during: .update, isKept: true) { _, line in line }
  }

  // MARK: Writing

  /// Returns whether a batch can be appended now, without waiting for the disk or replacing the file.
  ///
  /// - Parameters:
  ///   - changes: The batch, with the JSON text of each value.
  ///   - codecName: The name of the codec of its values.
  func canAppend(_ changes: [BatchChange<ArraySlice<UInt8>>], codecName: String) -> Bool {
    guard configuration.durability == .buffered, codecName == self.codecName, !mustBeReplaced, let log,
      log.failure == nil,
      changes.count <= BulkWork.entryLimit, changes.allSatisfy({ $0.key != nil })
    else { return false }
    var size = 0
    for case .set(_, let text) in changes { size += text.count }
    return size <= BulkWork.byteLimit
  }

  /// Writes a batch with the configured durability, and makes it visible to readers.
  ///
  /// - Parameters:
  ///   - changes: The batch, with the JSON text of each value.
  ///   - codec: The name and the format of the codec of its values.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``.
  mutating func append(
    _ changes: [BatchChange<ArraySlice<UInt8>>], codec: (name: String, format: CodecFormat),
    during operation: StoreOperation
  ) throws {
    guard !changes.isEmpty else { return }
    let changes = changes.map { change -> BatchChange<ArraySlice<UInt8>> in
      if case .removeAll(let range) = change { .removeAll(range.withShortBounds) } else { change }
    }
    let lines = changes.map { StoreLine.bytes(of: $0, format: codec.format) }
    for (change, line) in zip(changes, lines) where line.count > EntryLocation.maximumLength {
      throw StoreError(
        .valueTooLarge, during: operation, store: name, key: change.key,
        message: "the entry takes \(line.count) bytes, but can take at most \(EntryLocation.maximumLength)")
    }
    guard layout.lastBatch < BlockStart.maximumBatch else {
      throw configuration.error(
        .unsupported, during: operation,
        "\(path) has reached the maximum number of writes (\(layout.lastBatch)); copy its entries into a new store"
      )
    }
    let size = lines.reduce(0) { $0 + $1.count }
    if codec.name != codecName { try record(codec.name, during: operation) }
    // The offset of the blocks is known only after the file has been prepared.
    var log = try usableLog(during: operation)
    var sequence = BlockSequence(
      BlockStart(part: .batch, batch: layout.lastBatch + 1, durableBatch: layout.durableBatch), at: layout.end,
      of: head,
      after: unnoted, by: batchComposer, isCompressed: size >= CompressedFile.leastCompressedSize)
    try configuration.reportingZlibErrors(during: operation) {
      for (change, line) in zip(changes, lines) { try sequence.add(line[...], change.mapValue { _, _ in }) }
      try sequence.finish()
    }
    do {
      try log.append(sequence.takeBytes())
      if configuration.durability == .synced { try log.synchronize() }
      self.log = log
    } catch {
      self.log = log
      // Only a copy without these bytes ensures that they never reappear.
      let isCertain = log.failure == nil || replaceIfPossible()
      throw StoreError(
        error, during: operation, store: name, message: "the change could not be written to \(path)",
        outcome: isCertain ? .nothingChanged : .unknown)
    }
    layout.end = log.size
    layout.lastBatch += 1
    if configuration.durability == .synced { layout.durableBatch = layout.lastBatch }
    layout.blockCount += sequence.blockCount
    layout.textSize += sequence.textSize
    layout.changeSize += sequence.changeSize
    self.unnoted = sequence.unnoted
    let placed = sequence.takePlaced()
    uncopied?.append(contentsOf: placed)
    contents.change { content in
      for change in placed { content.index.apply(change) }
    }
  }

  /// Checks that the files are where they were opened, and that no other program has written to the data file.
  func checkFiles(during operation: StoreOperation) throws {
    try configuration.check(opened, during: operation)
    // The bytes that a failed log left on disk are unknown, so the file will be replaced.
    guard log?.failure == nil else { return }
    let size = try configuration.reportingFileErrors(during: operation, message: "\(path) could not be inspected") {
      try file.attributes().size
    }
    // Without a log, the end of the file may also be gone: removing it reported a failure but took effect.
    guard size == layout.end || log == nil && size == sizeAtOpening else {
      throw configuration.error(
        .conflict, during: operation,
        "\(path) was changed by another program while the store was open; close the store and open it again")
    }
  }

  /// Returns the log, which it creates if there isn't one, on a new file if the old you must not be written to.
  mutating func usableLog(during operation: StoreOperation) throws -> AppendLog {
    try checkFiles(during: operation)
    return try configuration.reportingFileErrors(during: operation, message: "\(path) could not be written to") {
      if mustBeReplaced {
        try configuration.reportingZlibErrors(during: operation) { try replace(during: operation) }
      }
      if let log { return log }
      // The process that created the file may have crashed before the name of the file was durable.
      try configuration.fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
      do throws(FileError) {
        try write(.open)
        // A power failure must not leave a file without the ending that its mark states.
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

  /// Overwrites the end mark in its place, if the file has one.
  func write(_ mark: EndMark) throws(FileError) {
    guard isWhole else { return }
    try file.writeAll(head.block(of: mark), at: head.markOffset)
  }

  // MARK: Durability

  /// Ensures that all earlier batches are durable.
  ///
  /// - Throws: ``StoreError``.
  mutating func synchronize() throws {
    guard configuration.access == .readWrite else { return }
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

  /// Writes the end of the file, marks it as closed, closes it, and releases the lock.
  ///
  /// - Throws: ``StoreError``. The lock is released nevertheless.
  mutating func close() throws {
    try configuration.reportingFileErrors(during: .close, message: "the store could not be closed cleanly") {
      let ending = Result { try configuration.access == .readWrite ? end() : () }
      contents.replace(CompressedFileContent())
      let closing = Result { try file.close() }
      try lock?.release()
      try ending.get()
      try closing.get()
    }
  }

  private mutating func end() throws {
    guard log != nil || isUncertain else {
      return try configuration.check(opened, during: .close)
    }
    try synchronize()
    var log = try usableLog(during: .close)
    let end = layout.end
    let ending = try configuration.reportingZlibErrors(during: .close) {
      try FileEnding.bytes(at: end, batch: layout.lastBatch, unnoted: unnoted, of: head, by: batchComposer)
    }
    let appending = Result { try log.append(ending) }
    // A missing end mark is worse than missing notes, for which there is no room on a full disk.
    if log.failure != nil { try appending.get() }
    layout.end = log.size
    // The mark states the size of the file, so the bytes must be durable first. Otherwise the file would look truncated
    // after a power failure.
    try log.synchronize()
    try write(.closed(end: end, batch: layout.lastBatch, size: log.size))
    try file.synchronizeThroughInterruptions()
  }
}

extension KeyRange {
  /// A range of the same keys whose bounds have at most ``StoreKey/maximumLength`` + 1 bytes.
  ///
  /// No valid key lies between a longer bound and its prefix of the maximum length followed by a zero byte.
  var withShortBounds: KeyRange {
    func short(_ bound: StoreKey) -> StoreKey {
      guard bound.count > StoreKey.maximumLength else { return bound }
      return StoreKey(bytes: bound.bytes.prefix(StoreKey.maximumLength) + [0])
    }
    return KeyRange(from: short(lowerBound), upTo: upperBound.map(short))
  }
}
#endif
