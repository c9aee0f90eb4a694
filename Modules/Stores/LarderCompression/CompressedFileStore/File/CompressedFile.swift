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
  private let lock: FileLock?

  /// The files that must be at their paths whenever the store writes.
  private var opened: OpenedFiles

  /// What the bytes of the codec are.
  private let format: CodecFormat
  private let codecName: String

  /// Makes blocks fast, for batches, which are compressed again later; and small, for the base.
  private let batchComposer = BlockComposer(level: 1)
  private let baseComposer = BlockComposer(level: 6)

  private var file: any OpenFile

  /// Appends; `nil` as long as there was nothing to append, and the mark of the end of the file stands behind the
  /// blocks.
  private var log: AppendLog?

  /// Whether it is not known what of the file is on the disk, so that it is written anew before anything is appended.
  ///
  /// It is unknown after a failed synchronization, and when the file was not closed: another process may have met such a
  /// failure, after which the system shows what is not on the disk.
  private var isUncertain: Bool

  /// How long the file was when it was opened, with what stands behind its good blocks.
  private let sizeAtOpening: Int64

  private var mustBeReplaced: Bool { isUncertain || log?.failure != nil }

  private var layout: Layout

  /// What is where in the file.
  struct Layout: Sendable {
    /// Where the good blocks end.
    var end: Int64
    var baseEnd: Int64
    var blockCount: Int
    var textSize: Int64
    /// The bytes of text up to the end of the base.
    var baseTextSize: Int64
    var lastBatch: UInt64
    var durableBatch: UInt64
    /// Whether the last block says that all before it is durable.
    var isSealed: Bool
    /// The bytes that were removed when the file was opened.
    var tornSize: Int64
    /// The bytes behind the base from which on a write begins a compaction.
    var compactionSize: Int64
  }

  /// What was changed since a compaction began; `nil` while there is none.
  private var changesSinceCompaction: [Change<EntryPlace>]?

  private var name: String { configuration.name }

  /// The least text of a batch that is compressed at once: to compress less costs more time than it is worth.
  private static let leastCompressedSize = 4096

  // MARK: Opening

  /// Opens the file, and creates a missing one; an existing one is only read.
  ///
  /// - Parameters:
  ///   - configuration: How.
  ///   - cacheSize: The most bytes that the texts of blocks may take in memory.
  ///   - codec: Gives the codec, by the name of the one that the file states or that suits a new one.
  /// - Throws: ``StoreError``; what `codec` throws.
  static func open<Value>(
    _ configuration: StoreFileConfiguration, cacheSize: Int,
    choosing codec: (_ name: String) throws -> any Codec<Value>
  ) throws -> (file: CompressedFile, codec: any Codec<Value>) {
    try configuration.reportingFileErrors(during: .open, message: "the store could not be opened") {
      try refuseForeignFile(configuration)
      var (path, lock, openedFiles) = try configuration.takeLock()
      let contents = CompressedFileContents(store: configuration.name, cacheSize: cacheSize)
      let fileSystem = configuration.fileSystem
      var newCodec: (any Codec<Value>)?
      if try fileSystem.attributes(at: path) == nil {
        let codec = try codec("json")
        newCodec = codec
        let head = try configuration.reportingZlibErrors(during: .open) {
          try BlockComposer(level: 6).head(codecName: codec.name, batch: 0, hasBase: false)
        }
        // Not in place: a crash halfway would leave a damaged file where there was none.
        try fileSystem.replaceFile(at: path) { try $0.write(head + FileScan.endOfFileMarker) }
      }
      let isWritten = configuration.access == .readWrite
      let file = try fileSystem.open(path, isWritten ? .readWrite : .read)
      let attributes = try file.attributes()
      try configuration.checkKind(attributes, of: path, isWritten: isWritten)
      openedFiles.note(attributes.identity, at: path, as: .data)
      let result = try scan(file, of: path, configuration, contents.blocks.inflaters, during: .open)
      let recovery = result.recovery
      guard let codecName = recovery.codecName else {
        throw configuration.error(
          .corrupted, during: .open,
          "\(path) is damaged at byte 0, so that the codec of its values is not known; it was left as it is")
      }
      let found = try newCodec ?? codec(codecName)
      try configuration.checkCodec(codecName, of: path, is: found.name)
      contents.replace(recovery.index, of: file)
      let opened = CompressedFile(
        configuration: configuration, contents: contents, path: path, lock: lock, opened: openedFiles,
        codec: (codecName, found.format),
        file: file, result: result)
      return (opened, found)
    }
  }

  /// Refuses a file of another program before a lock file is made beside it.
  ///
  /// What does not begin as a store does is read to its end, since it may be a store whose beginning is damaged.
  private static func refuseForeignFile(_ configuration: StoreFileConfiguration) throws {
    let fileSystem = configuration.fileSystem
    guard configuration.access == .readWrite, let attributes = try fileSystem.attributes(at: configuration.path)
    else { return }
    let path = try fileSystem.canonicalPath(of: configuration.path)
    guard try fileSystem.attributes(at: path + ".lock") == nil else { return }
    try configuration.checkKind(attributes, of: path)
    let file = try fileSystem.open(path, .read)
    let start = try file.readAll(from: 0, upTo: min(attributes.size, Int64(BlockHeader.maximumBlockSize)))
    guard FileScan.foreignFile(beginning: start) != nil else { return }
    let inflaters = StreamPool { () throws(ZlibError) in try Inflater() }
    _ = try scan(file, of: path, configuration, inflaters, during: .open)
  }

  private init(
    configuration: StoreFileConfiguration, contents: CompressedFileContents, path: String, lock: FileLock?,
    opened: OpenedFiles,
    codec: (name: String, format: CodecFormat), file: any OpenFile, result: FileScan.Result
  ) {
    self.configuration = configuration
    self.contents = contents
    self.path = path
    self.lock = lock
    self.opened = opened
    codecName = codec.name
    format = codec.format
    self.file = file
    let recovery = result.recovery
    layout = Layout(
      end: recovery.completeEnd, baseEnd: recovery.baseEnd, blockCount: recovery.blockCount,
      textSize: recovery.textSize, baseTextSize: recovery.baseTextSize, lastBatch: recovery.lastBatch,
      durableBatch: recovery.lastBatch,
      isSealed: result.isClosed, tornSize: result.tornSize, compactionSize: 0)
    isUncertain = !result.isClosed
    sizeAtOpening = recovery.completeEnd + (result.isClosed ? Int64(FileScan.endOfFileMarker.count) : result.tornSize)
    layout.compactionSize = compactionSize(behind: recovery.baseEnd)
  }

  /// Reads all of a file.
  private static func scan(
    _ file: any OpenFile, of path: String, upTo end: Int64? = nil, _ configuration: StoreFileConfiguration,
    _ inflaters: StreamPool<Inflater>, during operation: StoreOperation
  ) throws -> FileScan.Result {
    do {
      let size = try end ?? file.attributes().size
      return try FileScan.scan(size: size, inflaters: inflaters) { range in
        try file.readAll(from: range.lowerBound, upTo: range.upperBound)
      }
    } catch let problem as FileScan.Problem {
      throw error(of: problem, path, configuration, during: operation)
    }
  }

  private static func error(
    of problem: FileScan.Problem, _ path: String, _ configuration: StoreFileConfiguration,
    during operation: StoreOperation
  ) -> StoreError {
    switch problem {
    case .notGzip:
      return configuration.error(.unrecognizedFormat, during: operation, "\(path) is no gzip file, so it is no store")
    case .plainGzip:
      return configuration.error(
        .unrecognizedFormat, during: operation,
        "\(path) is a gzip file of another program; what it holds can be imported into a new store")
    case .foreignBlocks(let name):
      return configuration.error(
        .unrecognizedFormat, during: operation,
        "\(path) is \(name ?? "a gzip file in blocks (BGZF)") of another program, and no store")
    case .newerVersion(let version):
      return configuration.error(
        .versionMismatch, during: operation,
        "\(path) is in version \(version) of the format; this program knows up to \(StoreLine.version), so use a newer one"
      )
    case .damaged(let offset, let reason):
      return configuration.error(
        .corrupted, during: operation, "\(path) is damaged at byte \(offset): \(reason); it was left as it is")
    }
  }

  // MARK: Writing

  /// The file, and where its good blocks end: up to there a compaction can copy it.
  var uncopied: (file: any OpenFile, end: Int64) { (file, layout.end) }

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
    let lines = changes.map { StoreLine.bytes(of: $0, format: format) }
    for (change, line) in zip(changes, lines) where line.count > EntryPlace.maximumLength {
      throw StoreError(
        .valueTooLarge, during: operation, store: name, key: change.key,
        message: "the line of an entry has at most \(EntryPlace.maximumLength) bytes")
    }
    let size = lines.reduce(0) { $0 + $1.count }
    var sequence = BlockSequence(
      .batch, batch: layout.lastBatch + 1, durableBatch: layout.durableBatch, at: layout.end, by: batchComposer,
      isCompressed: size >= CompressedFile.leastCompressedSize)
    try configuration.reportingZlibErrors(during: operation) {
      for (change, line) in zip(changes, lines) { try sequence.add(line[...], change.mapValue { _, _ in }) }
      try sequence.finish()
    }
    try append(sequence.takeBytes(), isDurable: configuration.durability == .synced, during: operation)
    layout.lastBatch += 1
    if configuration.durability == .synced { layout.durableBatch = layout.lastBatch }
    layout.blockCount += sequence.blockCount
    layout.textSize += sequence.textSize
    layout.isSealed = false
    let placed = sequence.takePlaced()
    changesSinceCompaction?.append(contentsOf: placed)
    contents.apply(placed)
  }

  /// Appends bytes behind the good ones.
  private mutating func append(_ bytes: [UInt8], isDurable: Bool, during operation: StoreOperation) throws {
    var log = try usableLog(during: operation)
    do {
      try log.append(bytes)
      if isDurable { try log.synchronize() }
      self.log = log
    } catch {
      self.log = log
      // A copy without these bytes makes certain that they will not turn up.
      let isCertain = log.failure == nil || mendIfPossible()
      throw StoreError(
        error, during: operation, store: name, message: "the change could not be written to \(path)",
        outcome: isCertain ? .nothingChanged : .unknown)
    }
    layout.end = log.size
  }

  /// Makes sure that the files are where they were opened, and that no other program has written to the data file.
  private func checkFiles(during operation: StoreOperation) throws {
    try configuration.check(opened, during: operation)
    // What a failed log has left on the disk is unknown, so it is replaced.
    guard log?.failure == nil else { return }
    let size = try configuration.reportingFileErrors(during: operation, message: "\(path) could not be looked at") {
      try file.attributes().size
    }
    // The mark of the end may be gone without a log: where removing it has failed, and was done.
    guard size == layout.end || log == nil && size == sizeAtOpening else {
      throw configuration.error(
        .conflict, during: operation,
        "\(path) was changed by another program while the store was open; close the store and open it again")
    }
  }

  /// Returns the log, made if there is none, and on a new file if the old one must not be written to.
  private mutating func usableLog(during operation: StoreOperation) throws -> AppendLog {
    try checkFiles(during: operation)
    return try configuration.reportingFileErrors(during: operation, message: "\(path) could not be written to") {
      if mustBeReplaced { try mend(during: operation) }
      if let log { return log }
      // Whoever made the file may have died before its name was durable.
      try configuration.fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
      do throws(FileError) {
        let log = try AppendLog(continuing: file, at: layout.end)
        self.log = log
        return log
      } catch {
        guard error.operation == .synchronize else { throw error }
        isUncertain = true
        guard mendIfPossible(), let log else { throw error }
        return log
      }
    }
  }

  /// Goes on with a copy of the file, without anything that was not acknowledged.
  ///
  /// - Throws: ``FileError``; ``StoreError``. It is not gone on then.
  private mutating func mend(during operation: StoreOperation) throws {
    guard let (index, lines) = contents.snapshot else { return }
    let replacement = try FileReplacement(of: path, like: file.attributes(), in: configuration.fileSystem)
    var copy = FileCompaction(
      index: index, lines: lines, composer: baseComposer, replacement: replacement, codecName: codecName,
      layout: layout)
    do {
      try copy.copyAll(of: file, upTo: layout.end, during: operation)
    } catch {
      replacement.abandon()
      throw error
    }
    var newLayout = layout
    newLayout.durableBatch = layout.lastBatch
    try putInPlace(&copy.replacement, index, newLayout, during: operation)
  }

  /// Gives a new file the place of the old one, and goes on with it.
  ///
  /// - Parameters:
  ///   - replacement: The new file.
  ///   - index: What it holds.
  ///   - newLayout: What is where in it.
  ///   - operation: The operation.
  /// - Throws: ``FileError``; ``StoreError``. The old file is gone on with then, unless the new one is in its place.
  private mutating func putInPlace(
    _ replacement: inout FileReplacement, _ index: CompressedFileIndex, _ newLayout: Layout,
    during operation: StoreOperation
  ) throws {
    try configuration.check(opened, during: operation)
    let identity = try replacement.identity()
    var failure: FileError?
    do throws(FileError) {
      try replacement.commit()
    } catch {
      guard [.rename, .synchronizeDirectory].contains(error.operation) else { throw error }
      // Both files hold everything, but which one is found after power loss is not known: neither may change.
      isUncertain = isUncertain || error.operation == .synchronizeDirectory
      guard try configuration.fileSystem.attributes(at: path)?.identity == identity else { throw error }
      failure = error
    }
    opened.note(identity, at: path, as: .data)
    contents.replace(index, of: replacement.file)
    file = replacement.file
    layout = newLayout
    log = nil
    isUncertain = true
    if let failure { throw failure }
    log = try AppendLog(continuing: file, at: layout.end)
    isUncertain = false
  }

  /// Goes on with a copy of the file; see ``mend(during:)``.
  ///
  /// - Returns: Whether it went well; else it is tried again before the next write.
  private mutating func mendIfPossible() -> Bool {
    do {
      try mend(during: .apply)
      return true
    } catch {
      // What went wrong first is what the caller hears of.
      return false
    }
  }

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
      _ = mendIfPossible()
      throw StoreError(
        error, during: .synchronize, store: name, message: "\(path) could not be made durable", outcome: .unknown)
    }
    layout.durableBatch = layout.lastBatch
  }

  /// Gives the file an end that says that all of it is durable, closes it, and gives the lock back.
  ///
  /// - Throws: ``StoreError``; the lock is given back all the same.
  mutating func close() throws {
    try configuration.reportingFileErrors(during: .close, message: "the store could not be closed cleanly") {
      let sealing = Result { try configuration.access == .readWrite ? seal() : () }
      contents.close()
      let closing = Result { try file.close() }
      try lock?.release()
      try sealing.get()
      try closing.get()
    }
  }

  private mutating func seal() throws {
    guard !layout.isSealed || log != nil || isUncertain else { return try configuration.check(opened, during: .close) }
    try synchronize()
    let mark = try layout.isSealed ? FileScan.endOfFileMarker : sealBlock(during: .close) + FileScan.endOfFileMarker
    try append(mark, isDurable: true, during: .close)
  }

  /// An empty batch, whose only purpose is to say that all before it is durable.
  private func sealBlock(during operation: StoreOperation) throws -> [UInt8] {
    var sequence = BlockSequence(
      .batch, batch: layout.lastBatch + 1, durableBatch: layout.lastBatch, at: 0, by: batchComposer,
      isCompressed: false)
    try configuration.reportingZlibErrors(during: operation) { try sequence.finish() }
    return sequence.takeBytes()
  }

  // MARK: Compaction

  /// Whether so much was appended that it is worth to write the file anew.
  var isCompactionDue: Bool {
    layout.end - layout.baseEnd >= layout.compactionSize && changesSinceCompaction == nil && !mustBeReplaced
  }

  /// The size of what is appended from which on it is worth to write the file anew, for a base that ends at a place.
  private func compactionSize(behind baseEnd: Int64) -> Int64 {
    max(1 << 20, baseEnd)
  }

  /// Takes note that a compaction has failed: it is tried again when twice as much was appended.
  mutating func postponeCompaction() {
    layout.compactionSize = 2 * max(layout.compactionSize, layout.end - layout.baseEnd)
  }

  /// Begins to write the file anew.
  ///
  /// - Returns: What writes the base, and need not be done here; `nil` where there is nothing to gain.
  /// - Throws: ``StoreError``: `corrupted` where something is lost to damage, which would be lost for good.
  mutating func beginCompaction() throws -> FileCompaction? {
    guard let (index, lines) = contents.snapshot else { return nil }
    try checkSound(index, during: .compact)
    guard layout.textSize > layout.baseTextSize else { return nil }
    _ = try usableLog(during: .compact)
    return try configuration.reportingFileErrors(during: .compact, message: "\(path) could not be written anew") {
      let existing = try file.attributes()
      let replacement = try FileReplacement(of: path, like: existing, in: configuration.fileSystem)
      changesSinceCompaction = []
      return FileCompaction(
        index: index, lines: lines, composer: baseComposer, replacement: replacement, codecName: codecName,
        layout: layout)
    }
  }

  /// Copies the rest of what was appended, and puts the new file in the place of the old one.
  ///
  /// - Throws: ``StoreError``; ``FileError``. The old file is gone on with then, unless nobody knows which one is in
  ///   place.
  mutating func finishCompaction(_ compaction: inout FileCompaction) throws {
    let changes = changesSinceCompaction ?? []
    changesSinceCompaction = nil
    try checkFiles(during: .compact)
    try compaction.copy(of: file, upTo: layout.end, during: .compact)
    let seal = try sealBlock(during: .compact)
    try compaction.replacement.writer.write(seal)
    var newLayout = layout
    newLayout.blockCount += compaction.blockCount + 1 - compaction.oldLayout.blockCount
    newLayout.textSize += compaction.textSize - compaction.oldLayout.textSize
    newLayout.lastBatch += 1
    newLayout.durableBatch = newLayout.lastBatch
    newLayout.isSealed = true
    newLayout.end = compaction.replacement.writer.count
    newLayout.baseEnd = compaction.baseEnd
    newLayout.baseTextSize = compaction.textSize
    newLayout.compactionSize = compactionSize(behind: compaction.baseEnd)
    try putInPlace(&compaction.replacement, compaction.index(with: changes), newLayout, during: .compact)
  }

  /// Ends a compaction that has failed.
  mutating func abandonCompaction(_ compaction: FileCompaction) {
    changesSinceCompaction = nil
    compaction.replacement.abandon()
  }

  private func checkSound(_ index: CompressedFileIndex, during operation: StoreOperation) throws {
    guard index.isDamaged else { return }
    let lost = index.firstLost
    throw configuration.error(
      .corrupted, during: operation, key: lost?.key,
      "\(path) is damaged at byte \(lost?.block ?? 0), and that would be lost for good; set or remove what is lost first"
    )
  }

  // MARK: Maintenance

  /// Measures the file.
  func statistics() -> StoreStatistics {
    let index = contents.snapshot?.index
    let live = index?.liveTextSize ?? 0
    let size = layout.end + (log == nil ? Int64(FileScan.endOfFileMarker.count) : 0)
    let details: [(String, Int64)] = [
      ("blocks", Int64(layout.blockCount)), ("textBytes", layout.textSize), ("liveTextBytes", live),
      ("deadTextBytes", layout.textSize - live), ("percentOfText", size * 100 / max(1, layout.textSize)),
      ("uncompactedBytes", layout.end - layout.baseEnd), ("cachedBytes", Int64(contents.blocks.cachedSize)),
      ("tornBytes", layout.tornSize),
    ]
    return StoreStatistics(
      entryCount: index?.entries.count ?? 0, bytesOnDisk: size,
      details: details.map { StoreStatistics.Detail(name: $0.0, value: $0.1) })
  }

  /// Reads everything anew from the disk.
  ///
  /// - Throws: ``StoreError``: `corrupted` and the like where it cannot be read as a store.
  func rescan() throws -> FileRecovery {
    try configuration.reportingFileErrors(during: .verify, message: "the store could not be read") {
      try CompressedFile.scan(
        file, of: path, upTo: layout.end, configuration, contents.blocks.inflaters, during: .verify
      ).recovery
    }
  }

  /// Writes a copy that can be opened as a store.
  ///
  /// - Parameters:
  ///   - destination: Where it goes.
  ///   - isCompacted: Whether it is written as by a compaction; else it is a copy byte for byte, damage included.
  /// - Throws: ``StoreError``.
  func backup(to destination: String, compacting isCompacted: Bool) throws {
    try configuration.reportingFileErrors(during: .backup, message: "the copy \(destination) could not be written") {
      let fileSystem = configuration.fileSystem
      let destination = try fileSystem.canonicalPath(of: destination)
      guard try fileSystem.attributes(at: destination) == nil else {
        throw configuration.error(.invalidArgument, during: .backup, "something is at \(destination) already")
      }
      guard !(path + ".lock").utf8.elementsEqual(destination.utf8), let (index, lines) = contents.snapshot else {
        throw configuration.error(.invalidArgument, during: .backup, "\(destination) belongs to the store itself")
      }
      if isCompacted { try checkSound(index, during: .backup) }
      let end = try sealBlock(during: .backup)
      let replacement = try FileReplacement(of: destination, like: nil, in: fileSystem)
      var copy = FileCompaction(
        index: index, lines: lines, composer: baseComposer, replacement: replacement, codecName: codecName,
        layout: layout)
      do {
        if isCompacted {
          try copy.writeBase(during: .backup, unless: { false })
        } else {
          try copy.copyAll(of: file, upTo: layout.end, during: .backup)
        }
        try copy.replacement.writer.write(end + FileScan.endOfFileMarker)
      } catch {
        replacement.abandon()
        throw error
      }
      try copy.replacement.commit { file throws(FileError) in try file.close() }
    }
  }
}
#endif
