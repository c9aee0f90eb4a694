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

  /// What may stand at the path: the file, and a new one whose taking its place has failed, and may have happened.
  private var ownFiles: Set<FileAttributes.Identity> = []

  /// Appends; `nil` as long as there was nothing to append, and the mark of the end of the file stands behind the
  /// blocks.
  private var log: AppendLog?

  /// Why the file must not be written to any more, beside what the log itself says.
  private var replacementFailure: FileError?

  private var failure: FileError? { replacementFailure ?? log?.failure }

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

  /// Opens the file, and removes what a crash has left behind its last batch.
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
      let (path, lock, openedFiles) = try configuration.takeLock()
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
      let file = try fileSystem.open(path, .readWrite)
      try configuration.checkKind(try file.attributes(), of: path)
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
      let identity = try file.attributes().identity
      var opened = CompressedFile(
        configuration: configuration, contents: contents, path: path, lock: lock, opened: openedFiles,
        codec: (codecName, found.format),
        file: file, result: result)
      opened.ownFiles = [identity]
      // What a crash has left must be durable before anybody is shown it, and a torn tail must be gone for good.
      if !result.isClosed { _ = try opened.usableLog(during: .open) }
      return (opened, found)
    }
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
    try configuration.check(opened, during: operation)
    var log = try usableLog(during: operation)
    try checkUnchanged(during: operation)
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

  /// Makes sure that no one else has written to the file, or taken its place.
  private func checkUnchanged(during operation: StoreOperation) throws {
    try configuration.reportingFileErrors(during: operation, message: "\(path) could not be looked at") {
      let attributes = try file.attributes()
      // The mark may be gone without a log: where removing it has failed, and was done.
      let rest = attributes.size - layout.end
      guard attributes.linkCount > 0, rest == 0 || (log == nil && rest == FileScan.endOfFileMarker.count) else {
        throw configuration.error(
          .conflict, during: operation,
          "\(path) was changed, removed or replaced by someone else while it was open; close the store and open it again"
        )
      }
    }
  }

  /// The log, made where there is none, and on a new file where the old one must not be written to.
  private mutating func usableLog(during operation: StoreOperation) throws -> AppendLog {
    try configuration.reportingFileErrors(during: operation, message: "\(path) could not be written to") {
      if failure != nil { try mend(during: operation) }
      if let log { return log }
      // Whoever made the file may have died before its name was durable.
      try configuration.fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
      do throws(FileError) {
        let log = try AppendLog(continuing: file, at: layout.end)
        self.log = log
        return log
      } catch {
        guard error.operation == .synchronize else { throw error }
        replacementFailure = error
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
    try configuration.check(opened, during: operation)
    let existing = try file.attributes()
    let replacement = try FileReplacement(of: path, like: existing, in: configuration.fileSystem)
    var copy = FileCompaction(
      index: index, lines: lines, composer: baseComposer, replacement: replacement, codecName: codecName,
      layout: layout)
    let newFile: any OpenFile
    do {
      try copy.copyAll(of: file, upTo: layout.end, during: operation)
      newFile = try commit(&copy.replacement)
    } catch {
      replacement.abandon()
      throw error
    }
    try goOn(with: newFile, index)
    layout.durableBatch = layout.lastBatch
  }

  /// Puts a new file in the place of the old one.
  ///
  /// - Throws: ``FileError``; ``StoreError`` with `conflict` where something else stands there.
  private mutating func commit(_ replacement: inout FileReplacement) throws -> any OpenFile {
    let fileSystem = configuration.fileSystem
    guard let attributes = try fileSystem.attributes(at: path), ownFiles.contains(attributes.identity) else {
      throw configuration.error(
        .conflict, during: .compact, "something else stands at \(path) now; close the store, and open it again")
    }
    let (old, new) = (try file.attributes().identity, try replacement.identity())
    do throws(FileError) {
      let newFile = try replacement.commit()
      ownFiles = [new]
      return newFile
    } catch {
      if error.operation == .synchronizeDirectory || (error.operation == .rename && !isInPlace(old)) {
        // Both files hold everything, but which one is found after power loss is not known: neither may change.
        replacementFailure = error
        ownFiles.insert(new)
      }
      throw error
    }
  }

  /// Goes on with a new file that has taken the place of the old one.
  private mutating func goOn(with newFile: any OpenFile, _ index: CompressedFileIndex) throws(FileError) {
    contents.replace(index, of: newFile)
    file = newFile
    log = nil
    replacementFailure = nil
    do throws(FileError) {
      log = try AppendLog(continuing: newFile, at: layout.end)
    } catch {
      replacementFailure = error
      throw error
    }
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
    guard layout.durableBatch < layout.lastBatch else { return }
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
      let sealing = Result { try seal() }
      contents.close()
      let closing = Result { try file.close() }
      try lock?.release()
      try sealing.get()
      try closing.get()
    }
  }

  private mutating func seal() throws {
    guard !layout.isSealed || log != nil else { return }
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
    layout.end - layout.baseEnd >= layout.compactionSize && changesSinceCompaction == nil && failure == nil
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
    try configuration.check(opened, during: .compact)
    try checkUnchanged(during: .compact)
    try compaction.copy(of: file, upTo: layout.end, during: .compact)
    let seal = try sealBlock(during: .compact)
    try compaction.replacement.writer.write(seal)
    let newFile = try commit(&compaction.replacement)
    layout.blockCount += compaction.blockCount + 1 - compaction.oldLayout.blockCount
    layout.textSize += compaction.textSize - compaction.oldLayout.textSize
    layout.lastBatch += 1
    layout.durableBatch = layout.lastBatch
    layout.isSealed = true
    layout.end = compaction.replacement.writer.count
    layout.baseEnd = compaction.baseEnd
    layout.baseTextSize = compaction.textSize
    layout.compactionSize = compactionSize(behind: compaction.baseEnd)
    try goOn(with: newFile, compaction.index(with: changes))
  }

  /// Ends a compaction that has failed.
  mutating func abandonCompaction(_ compaction: FileCompaction) {
    changesSinceCompaction = nil
    compaction.replacement.abandon()
  }

  /// Whether a file still stands where it was opened; not where that cannot be found out.
  private func isInPlace(_ identity: FileAttributes.Identity) -> Bool {
    do throws(FileError) {
      return try configuration.fileSystem.attributes(at: path)?.identity == identity
    } catch {
      return false
    }
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
