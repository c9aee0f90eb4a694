#if Compression
import Larder
import LarderFiles

extension CompressedFile {
  // MARK: When it is due

  /// The fewest bytes of useless lines for which a write begins a compaction.
  static let leastDeadSize: Int64 = 1 << 20

  /// The fewest bytes of useless lines, and the most bytes of others, for which closing compacts the file.
  private static let leastDeadSizeAtClose: Int64 = 64 << 10
  private static let mostLiveSizeAtClose: Int64 = 1 << 20

  /// The bytes of lines that later changes have made useless.
  private var deadSize: Int64 { max(0, layout.changeSize - contents.liveTextSize) }

  /// Whether so much was appended, or has become useless, that it is worth to write the file anew.
  var isCompactionDue: Bool {
    guard !isCompacting, !mustBeReplaced else { return false }
    let live = contents.liveTextSize
    return layout.end - layout.baseEnd >= layout.compactionSize || deadSize >= max(live, layout.deadSize)
  }

  /// Whether it takes so little to write the file anew that it is worth it before the file is closed.
  var isCompactionCheap: Bool {
    guard !isCompacting, !mustBeReplaced, log != nil else { return false }
    let live = contents.liveTextSize
    return live <= CompressedFile.mostLiveSizeAtClose && deadSize >= max(live, CompressedFile.leastDeadSizeAtClose)
  }

  /// The size of what is appended from which on it is worth to write the file anew, for a base that ends at a place.
  static func compactionSize(behind baseEnd: Int64) -> Int64 {
    max(1 << 20, baseEnd)
  }

  /// Takes note that a compaction has failed: it is tried again when twice as much was appended or has become useless.
  mutating func postponeCompaction() {
    layout.compactionSize = 2 * max(layout.compactionSize, layout.end - layout.baseEnd)
    layout.deadSize = 2 * max(layout.deadSize, deadSize)
  }

  // MARK: Compaction

  /// Begins to write the file anew.
  ///
  /// - Returns: What writes the base, and need not be done here; `nil` if there is nothing to gain.
  /// - Throws: ``StoreError``: `corrupted` if something is lost to damage, which would be lost for good.
  mutating func beginCompaction() throws -> FileCompaction? {
    guard let (index, _) = contents.snapshot else { return nil }
    try checkSound(index, during: .compact)
    _ = try usableLog(during: .compact)
    // A file of version 1 was written anew for that.
    guard layout.textSize > layout.baseTextSize, let (index, lines) = contents.snapshot else { return nil }
    return try configuration.reportingFileErrors(during: .compact, message: "\(path) could not be written anew") {
      let compaction = try compaction(of: index, lines)
      isCompacting = true
      return compaction
    }
  }

  private func compaction(of index: CompressedFileIndex, _ lines: LineReader) throws -> FileCompaction {
    let replacement = try FileReplacement(of: path, like: file.attributes(), in: configuration.fileSystem)
    return FileCompaction(
      index: index, lines: lines, composers: (baseComposer, batchComposer), replacement: replacement,
      codecName: codecName, layout: layout)
  }

  /// Copies the rest of what was appended, and puts the new file in the place of the old one.
  ///
  /// - Throws: ``StoreError``; ``FileError``. The store then goes on with the old file, unless it is not known which file
  ///   is in place.
  mutating func finishCompaction(_ compaction: inout FileCompaction) throws {
    isCompacting = false
    try checkFiles(during: .compact)
    if let source = uncopied.source { try compaction.copy(of: source, upTo: layout.end, during: .compact) }
    try putInPlace(&compaction.replacement, as: compaction.made, during: .compact)
  }

  /// Ends a compaction that has failed.
  mutating func abandonCompaction(_ compaction: FileCompaction) {
    isCompacting = false
    compaction.replacement.abandon()
  }

  /// Makes sure that nothing would be lost for good if the file were written anew.
  func checkSound(_ index: CompressedFileIndex, during operation: StoreOperation) throws {
    if format == .version1, index.isDamaged || layout.foreignSize > 0 {
      let lost = index.firstLost
      let problem =
        lost.map { "is damaged at byte \($0.block)" } ?? "has \(layout.foreignSize) bytes that no store has written"
      throw configuration.error(
        .corrupted, during: operation, key: lost?.key,
        "\(path) \(problem), and such a file of version 1 of the format is only read; salvage the rest into a new store (larder salvage)"
      )
    }
    if index.isDamaged {
      let lost = index.firstLost
      throw configuration.error(
        .corrupted, during: operation, key: lost?.key,
        "\(path) is damaged at byte \(lost?.block ?? 0), and that would be lost for good; set or remove what is lost first, or salvage the rest into a new store"
      )
    }
    guard layout.foreignSize == 0 else {
      throw configuration.error(
        .corrupted, during: operation,
        "\(path) has \(layout.foreignSize) bytes that no store has written, and they would be lost for good; salvage the store into a new one"
      )
    }
  }

  // MARK: One way to a new file

  /// What a new file is.
  struct NewFile: Sendable {
    var index: CompressedFileIndex
    var layout: Layout
    var format: FileFormat
    var unnoted: UnnotedBlocks?
  }

  /// Goes on with a new file, without anything that was not acknowledged: a copy byte for byte, damage included, or, of a
  /// file of version 1, one in the present version.
  ///
  /// - Throws: ``FileError``; ``StoreError``. The old file is gone on with then.
  mutating func replace(during operation: StoreOperation) throws {
    guard let (index, lines) = contents.snapshot else { return }
    if format == .version1 { try checkSound(index, during: operation) }
    var compaction = try compaction(of: index, lines)
    do {
      if format == .version1 {
        try compaction.writeBase(during: operation, unless: { false })
        try putInPlace(&compaction.replacement, as: compaction.made, during: operation)
        return
      }
      try checkAppended(lines, during: operation)
      try copyBytes(to: &compaction.replacement.writer)
    } catch {
      compaction.replacement.abandon()
      throw error
    }
    var copy = NewFile(index: index, layout: layout, format: format, unnoted: unnoted)
    copy.layout.durableBatch = layout.lastBatch
    copy.layout.appendStart = layout.end
    try putInPlace(&compaction.replacement, as: copy, during: operation)
  }

  /// Makes sure that the system still shows what was appended: after a failure it may not.
  private func checkAppended(_ lines: LineReader, during operation: StoreOperation) throws {
    var offset = layout.appendStart
    while offset < layout.end {
      do {
        offset = try lines.blocks.readBlock(at: offset, of: lines.source).end
      } catch let damage as BlockReader.Damage {
        throw configuration.error(
          .ioFailed, during: operation,
          "\(path) has lost what was written at byte \(damage.block), which the system could not make durable; close the store and open it again"
        )
      }
    }
  }

  /// Copies the good blocks byte for byte, with a mark of the end that says that the file is open.
  func copyBytes(to writer: inout BufferedFileWriter) throws {
    var offset: Int64 = 0
    var mark: (offset: Int64, bytes: [UInt8])?
    if case .version2(let head, isWhole: true) = format { mark = (head.markOffset, head.block(of: .open)) }
    while offset < layout.end {
      var bytes = try file.readAll(from: offset, upTo: min(layout.end, offset + 1 << 20))
      guard !bytes.isEmpty else {
        throw configuration.error(
          .conflict, during: .apply, "\(path) was cut by another program while the store was open")
      }
      if offset == 0, let mark, Int(mark.offset) + mark.bytes.count <= bytes.count {
        bytes.replaceSubrange(Int(mark.offset)..<Int(mark.offset) + mark.bytes.count, with: mark.bytes)
      }
      try writer.write(bytes)
      offset += Int64(bytes.count)
    }
  }

  /// Gives a new file the place of the old one, and goes on with it.
  ///
  /// - Parameters:
  ///   - replacement: The new file.
  ///   - new: What it is.
  ///   - operation: The operation.
  /// - Throws: ``FileError``; ``StoreError``. The old file is gone on with then, unless the new one is in its place.
  private mutating func putInPlace(
    _ replacement: inout FileReplacement, as new: NewFile, during operation: StoreOperation
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
      guard try configuration.fileSystem.identity(at: path) == identity else { throw error }
      failure = error
    }
    opened.note(identity, at: path, as: .data)
    contents.replace(new.index, of: replacement.file, in: new.format)
    file = replacement.file
    layout = new.layout
    format = new.format
    if let unnoted = new.unnoted { self.unnoted = unnoted }
    log = nil
    isUncertain = true
    if let failure { throw failure }
    log = try AppendLog(continuing: file, at: layout.end)
    isUncertain = false
  }

  /// Goes on with a copy of the file; see ``replace(during:)``.
  ///
  /// - Returns: Whether it went well; else it is tried again before the next write.
  mutating func replaceIfPossible() -> Bool {
    do {
      try replace(during: .apply)
      return true
    } catch {
      // What went wrong first is what the caller hears of.
      return false
    }
  }
}
#endif
