#if Compression
import Larder
import LarderFiles

extension CompressedFile {
  // MARK: Conditions

  /// The minimum size of the obsolete lines from which a write starts a compaction, in bytes.
  static let leastDeadSize: Int64 = 1 << 20

  /// The minimum size of the obsolete lines, and the maximum size of the live ones, for a compaction on closing, in
  /// bytes.
  private static let leastDeadSizeAtClose: Int64 = 64 << 10
  private static let mostLiveSizeAtClose: Int64 = 1 << 20

  /// The total size of the lines that later changes have made obsolete, in bytes.
  private var deadSize: Int64 { max(0, layout.changeSize - contents.look(\.index.liveTextSize)) }

  /// A Boolean value that indicates whether enough has been appended or become obsolete for a compaction.
  var isCompactionDue: Bool {
    guard uncopied == nil, !mustBeReplaced else { return false }
    return uncompactedSize >= max(1 << 20, layout.baseEnd, retryUncompactedSize)
      || deadSize >= max(CompressedFile.leastDeadSize, contents.look(\.index.liveTextSize), retryDeadSize)
  }

  /// A Boolean value that indicates whether a compaction is cheap enough to run before the file is closed.
  var isCompactionCheap: Bool {
    guard uncopied == nil, !mustBeReplaced, log != nil else { return false }
    let live = contents.look(\.index.liveTextSize)
    return live <= CompressedFile.mostLiveSizeAtClose && deadSize >= max(live, CompressedFile.leastDeadSizeAtClose)
  }

  private var uncompactedSize: Int64 { layout.end - layout.baseEnd }

  /// Postpones compaction after a failure, until twice as much has been appended or become obsolete.
  mutating func postponeCompaction() {
    retryUncompactedSize = max(retryUncompactedSize, 2 * uncompactedSize)
    retryDeadSize = max(retryDeadSize, 2 * deadSize)
  }

  // MARK: Compaction

  /// The number of uncopied bytes up to which writes are suspended for the rest of a compaction, and the maximum number
  /// of rounds to get there.
  static let smallRest: Int64 = 1 << 20
  static let maximumRounds = 8

  /// Begins a compaction.
  ///
  /// - Returns: The compaction, whose base can be written on another thread, or `nil` if there is nothing to gain.
  /// - Throws: ``StoreError``: `corrupted` if entries are lost to damage, because compaction would make the loss
  ///   permanent.
  mutating func beginCompaction() throws -> FileCompaction? {
    guard let (index, _) = snapshot else { return nil }
    try checkSound(index, during: .compact)
    _ = try usableLog(during: .compact)
    // The file may just have been replaced.
    guard layout.textSize > layout.baseTextSize, let (index, lines) = snapshot else { return nil }
    return try configuration.reportingFileErrors(during: .compact, message: "\(path) could not be rewritten") {
      let compaction = try compaction(of: index, lines)
      uncopied = []
      return compaction
    }
  }

  private func compaction(of index: CompressedFileIndex, _ lines: LineReader) throws -> FileCompaction {
    let replacement = try FileReplacement(of: path, like: file.attributes(), in: configuration.fileSystem)
    return FileCompaction(of: self, index, lines, to: replacement)
  }

  /// Returns the changes since the last call, for a compaction, and the reader of their lines.
  mutating func takeUncopied() -> (changes: [BatchChange<EntryLocation>], lines: LineReader)? {
    guard let changes = uncopied, let lines = snapshot?.lines else { return nil }
    uncopied = []
    return (changes, lines)
  }

  /// Copies the remaining changes, and replaces the old file with the new one.
  ///
  /// If the file was rewritten since the compaction began, the compaction is discarded.
  ///
  /// - Throws: ``StoreError``; ``FileError``. The store then continues with the old file, unless it is unknown which
  ///   file is in place.
  mutating func finishCompaction(_ compaction: inout FileCompaction) throws {
    guard let (changes, lines) = takeUncopied() else { return compaction.replacement.abandon() }
    try checkFiles(during: .compact)
    try compaction.copy(changes, by: lines, during: .compact)
    try putInPlace(&compaction.replacement, as: compaction.made, during: .compact)
    uncopied = nil
    (retryUncompactedSize, retryDeadSize) = (0, 0)
  }

  /// Checks that a new file would not make a loss permanent.
  func checkSound(_ index: CompressedFileIndex, during operation: StoreOperation) throws {
    if index.isDamaged {
      let lost = index.firstLost
      throw configuration.error(
        .corrupted, during: operation, key: lost?.key,
        "\(path) is damaged at byte \(lost?.block ?? 0), and the loss would become permanent; set or remove the lost entries first, or salvage the rest into a new store"
      )
    }
    guard layout.foreignSize == 0 else {
      throw configuration.error(
        .corrupted, during: operation,
        "\(path) contains \(layout.foreignSize) bytes that no store has written, which would be lost permanently; salvage the store into a new one (larder salvage)"
      )
    }
  }

  // MARK: Replacement

  /// A new file and its index.
  struct NewFile: Sendable {
    var index: CompressedFileIndex
    var layout: FileLayout
    var head: FileHead
    var isWhole: Bool
    var unnoted: UnnotedBlocks
  }

  /// Replaces the file with a new one that contains only acknowledged batches.
  ///
  /// The new file is a byte-for-byte copy, including damage, or a compacted one.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - isCompacted: A Boolean value that indicates whether the new file is compacted. Defaults to `false`.
  /// - Throws: ``FileError``; ``StoreError``. The store then continues with the old file.
  mutating func replace(during operation: StoreOperation, isCompacted: Bool = false) throws {
    guard let (index, lines) = snapshot else { return }
    if isCompacted { try checkSound(index, during: operation) }
    var compaction = try compaction(of: index, lines)
    do {
      try checkAppended(lines, during: operation)
      var new = NewFile(index: index, layout: layout, head: head, isWhole: isWhole, unnoted: unnoted)
      if isCompacted {
        try compaction.writeBase(during: operation)
        new = compaction.made
      } else {
        try copyBytes(to: &compaction.replacement.writer)
        new.layout.durableBatch = layout.lastBatch
        new.layout.appendStart = layout.end
      }
      try putInPlace(&compaction.replacement, as: new, during: operation)
    } catch {
      compaction.replacement.abandon()
      throw error
    }
  }

  /// Rewrites the file with the name of another codec, which must read the present values.
  ///
  /// - Throws: ``StoreError``. The file then keeps the old name, unless the new file is in place.
  mutating func record(_ newName: String, during operation: StoreOperation) throws {
    try checkFiles(during: operation)
    let oldName = codecName
    codecName = newName
    defer {
      if head.codecName == newName {
        // A running compaction is superseded: it would put back the old name.
        uncopied = nil
      } else {
        codecName = oldName
      }
    }
    try configuration.reportingFileErrors(during: operation, message: "\(path) could not be rewritten") {
      try configuration.reportingZlibErrors(during: operation) { try replace(during: operation, isCompacted: true) }
    }
  }

  /// Checks that the system still shows the appended blocks, which may not be the case after a failure.
  private func checkAppended(_ lines: LineReader, during operation: StoreOperation) throws {
    var offset = layout.appendStart
    while offset < layout.end {
      do {
        offset = try lines.blocks.readBlock(at: offset).end
      } catch let damage as BlockReader.Damage {
        throw configuration.error(
          .ioFailed, during: operation,
          "\(path) has lost the data at byte \(damage.block), which the system could not make durable; close the store and open it again"
        )
      }
    }
  }

  /// Copies the sound blocks byte for byte, with an end mark for an open file.
  func copyBytes(to writer: inout BufferedFileWriter) throws {
    var offset: Int64 = 0
    var mark: (offset: Int64, bytes: [UInt8])?
    if isWhole { mark = (head.markOffset, head.block(of: .open)) }
    while offset < layout.end {
      var bytes = try file.readAll(from: offset, upTo: min(layout.end, offset + 1 << 20))
      guard !bytes.isEmpty else {
        throw configuration.error(
          .conflict, during: .apply,
          "\(path) was truncated by another program while the store was open; close the store and open it again")
      }
      if offset == 0, let mark, Int(mark.offset) + mark.bytes.count <= bytes.count {
        bytes.replaceSubrange(Int(mark.offset)..<Int(mark.offset) + mark.bytes.count, with: mark.bytes)
      }
      try writer.write(bytes)
      offset += Int64(bytes.count)
    }
  }

  /// Moves a new file to the path of the old one, and continues with it.
  ///
  /// - Parameters:
  ///   - replacement: The new file.
  ///   - new: The index and the layout of the new file.
  ///   - operation: The operation, for errors.
  /// - Throws: ``FileError``; ``StoreError``. The store then continues with the old file, unless the new one is in
  ///   place.
  private mutating func putInPlace(
    _ replacement: inout FileReplacement, as new: NewFile, during operation: StoreOperation
  ) throws {
    try configuration.check(opened, during: operation)
    let identity = try replacement.file.attributes().identity
    var failure: FileError?
    do throws(FileError) {
      try replacement.commit()
    } catch {
      guard error.leavesReplacementInDoubt else { throw error }
      // Both files are complete, but it is unknown which one a power failure would leave, so neither may change.
      isUncertain = isUncertain || error.operation == .synchronizeDirectory
      guard try configuration.fileSystem.identity(at: path) == identity else { throw error }
      failure = error
    }
    opened.note(identity, at: path, as: .data)
    show(new.index, of: replacement.file, with: new.head)
    file = replacement.file
    layout = new.layout
    head = new.head
    isWhole = new.isWhole
    unnoted = new.unnoted
    log = nil
    isUncertain = true
    if let failure { throw failure }
    log = try AppendLog(continuing: file, at: layout.end)
    isUncertain = false
  }

  /// Replaces the file if possible; see ``replace(during:isCompacted:)``.
  ///
  /// - Returns: A Boolean value that indicates whether the file was replaced. If not, the next write tries again.
  mutating func replaceIfPossible() -> Bool {
    do {
      try replace(during: .apply)
      return true
    } catch {
      // The caller reports the original error.
      return false
    }
  }
}
#endif
