import Larder
import LarderFiles

extension JSONFile {
  // MARK: Appending to the journal

  /// Writes a batch with the configured durability, and shows it to readers.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - codecName: The name of the codec of its values.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``.
  mutating func write(
    _ changes: [BatchChange<ArraySlice<UInt8>>], codecName: String, during operation: StoreOperation
  ) throws {
    guard !changes.isEmpty else { return }
    if codecName != self.codecName { try record(codecName, during: operation) }
    try append(changes, during: operation)
    show(changes)
    foldIfDue()
  }

  /// Writes the document anew with the name of another codec, which must read the present values.
  ///
  /// Each file states the codec of its values, so the document must have the new name before the journal does.
  ///
  /// - Throws: ``StoreError``. The document then keeps the old name, unless it is unknown which document is in place.
  private mutating func record(_ newName: String, during operation: StoreOperation) throws {
    let (oldName, hadToFold) = (codecName, mustFold)
    codecName = newName
    mustFold = true
    do {
      try fold(during: operation)
    } catch {
      if mustFold, unsettledFile == nil { (codecName, mustFold) = (oldName, hadToFold) }
      throw error
    }
  }

  /// Shows a batch to readers.
  func show(_ changes: [BatchChange<ArraySlice<UInt8>>]) {
    _ = contents.change { entries in
      var displaced: [ArraySlice<UInt8>] = []
      for change in changes { entries.map.apply(change, displacing: &displaced) }
      return displaced
    }
  }

  /// Appends a batch to the journal, with the configured durability.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError``.
  private mutating func append(_ changes: [BatchChange<ArraySlice<UInt8>>], during operation: StoreOperation) throws {
    try configuration.check(opened, during: operation)
    let growth = try makeRoom(for: changes, during: operation)
    var log = try configuration.reportingFileErrors(during: operation, message: "the journal could not be created") {
      try usableJournal(during: operation)
    }
    defer { journal = .open(log) }
    hasWritten = true
    do {
      try log.append(JSONJournalLine.bytes(of: .batch(changes: changes, durable: log.durableSize)))
      if configuration.durability == .synced { try log.synchronize() }
    } catch {
      throw StoreError(
        error, during: operation, store: configuration.name,
        message: "the change could not be written to \(journalPath)",
        outcome: log.failure == nil ? .nothingChanged : .unknown)
    }
    documentBound += growth
    markEnd(of: log)
  }

  /// Writes a mark after the last batch, which records that the batch is durable.
  ///
  /// Later damage to the batch is then not mistaken for a torn write.
  private func markEnd(of log: AppendLog) {
    guard log.durableSize == log.size else { return }
    do {
      try log.writeBehind(JSONJournalLine.bytes(of: .mark(durable: log.size)))
    } catch {
      // The batch is durable nevertheless. Without its mark, damage to this line would go unnoticed after a crash.
    }
  }

  /// Returns whether a batch can be appended to the journal now, without waiting for the disk or folding.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - codecName: The name of the codec of its values.
  func canAppend(_ changes: [BatchChange<ArraySlice<UInt8>>], codecName: String) -> Bool {
    guard configuration.durability == .buffered, codecName == self.codecName, !mustFold, case .open(let log) = journal,
      log.failure == nil, changes.count <= BulkWork.entryLimit, changes.allSatisfy({ $0.key != nil })
    else { return false }
    let growth = growth(by: changes)
    return growth.journal <= BulkWork.byteLimit && journalSize + growth.journal < foldSize && fits(growth)
  }

  /// Upper bounds for the growth of the document and of the journal, in bytes.
  private typealias Growth = (document: Int64, journal: Int64)

  private func growth(by changes: [BatchChange<ArraySlice<UInt8>>]) -> Growth {
    var growth: Growth = (0, 64)
    for change in changes {
      // A byte of a key takes up to six bytes in JSON.
      switch change {
      case .set(let key, let value):
        growth.document += Int64(6 * key.count + value.count + 32)
        growth.journal += Int64(6 * key.count + value.count + 32)
      case .remove(let key): growth.journal += Int64(6 * key.count + 32)
      case .removeAll(let range):
        growth.journal += Int64(6 * (range.lowerBound.count + (range.upperBound?.count ?? 0)) + 64)
      }
    }
    return growth
  }

  /// Returns whether the document and the journal stay within the size limit.
  private func fits(_ growth: Growth) -> Bool {
    // The stamp of the document takes up to eleven bytes for each block.
    let documentLimit = sizeLimit - sizeLimit / 256 - 1_024
    return (growth.document == 0 || documentBound + growth.document <= documentLimit)
      && sizes.journal + growth.journal <= sizeLimit
  }

  /// Ensures that the document and the journal stay within the size limit with a batch added to them.
  ///
  /// - Returns: An upper bound for the growth of the document in bytes.
  /// - Throws: ``StoreError`` with `full`; the errors of ``fold(during:)``.
  private mutating func makeRoom(
    for changes: [BatchChange<ArraySlice<UInt8>>], during operation: StoreOperation
  ) throws -> Int64 {
    let growth = growth(by: changes)
    if !fits(growth) { try fold(during: operation) }
    guard fits(growth) else {
      throw configuration.error(
        .full, during: operation,
        "the store would exceed the limit of \(sizeLimit) bytes; remove entries first")
    }
    return growth.document
  }

  /// Returns a journal that can be written to.
  ///
  /// It is created if there isn't one or if the old you must not be written to.
  mutating func usableJournal(during operation: StoreOperation) throws -> AppendLog {
    if !mustFold, case .open(let log) = journal, log.failure == nil { return log }
    if mustFold || journal.hasFailed {
      // It is unknown which part of the old journal has reached the disk, or to which document it would be applied.
      try fold(during: operation)
    }
    let head = JSONJournalLine.Head(codecName: codecName, generation: generation, document: document?.stamp?.digest)
    let line = JSONJournalLine.bytes(of: .head(head))
    var replacement = try FileReplacement(of: journalPath, like: document?.file.attributes(), in: fileSystem)
    try replacement.prepare {
      try $0.writer.write(line)
      if case .found(_, let lines) = journal { try $0.writer.write(lines) }
    }
    // If the next call fails, either file may be in place. Both have the same content.
    opened.forget(journalPath)
    isJournalLeft = true
    let file = try replacement.commit()
    isJournalLeft = false
    journalHeadSize = line.count
    opened.note(try replacement.file.attributes().identity, at: journalPath, as: .data)
    let log = try AppendLog(continuing: file, at: replacement.writer.count)
    journal = .open(log)
    return log
  }

  /// The size of the journal in bytes without its first line.
  private var journalSize: Int64 { max(0, sizes.journal - Int64(journalHeadSize)) }

  /// Flushes every previous batch to disk, and folds the journal if it has grown large.
  ///
  /// - Throws: ``StoreError``.
  mutating func synchronize() throws {
    guard isWritable else { return }
    if case .none = journal, !mustFold {
      guard isFoldUncertain else { return }
      try configuration.check(opened, during: .synchronize)
      try configuration.reportingFileErrors(
        during: .synchronize, message: "\(path) could not be made durable", outcome: .unknown
      ) {
        try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
      }
      isFoldUncertain = false
      return
    }
    try configuration.check(opened, during: .synchronize)
    try configuration.reportingFileErrors(
      during: .synchronize, message: "\(journalPath) could not be made durable", outcome: .unknown
    ) {
      var log = try usableJournal(during: .synchronize)
      defer { journal = .open(log) }
      guard log.durableSize < log.size else { return }
      try log.synchronize()
      markEnd(of: log)
    }
    if journalSize >= max(FoldThreshold.synchronize, sizes.document / 4) {
      try fold(during: .synchronize)
    }
  }

  // MARK: Folding

  /// Folds the journal if a write has made it as large as the document.
  ///
  /// A failure is not thrown, because the write is safe in the journal. Failures are counted in the statistics, and
  /// `synchronize` and `close` throw their own. A write tries again when the journal has doubled in size.
  private mutating func foldIfDue() {
    guard journalSize >= foldSize else { return }
    do {
      try fold(during: .apply)
    } catch {
      foldSize = max(foldSize, 2 * journalSize)
    }
  }

  /// Writes the document anew and removes the journal, if anything was changed since the document was written.
  ///
  /// - Throws: ``StoreError``.
  mutating func fold(during operation: StoreOperation) throws {
    guard isWritable, hasChanges else { return }
    do {
      try configuration.reportingFileErrors(during: operation, message: "the document \(path) could not be written") {
        try configuration.check(opened, during: operation)
        let existing = try checkDocumentUnchanged(during: operation)
        try replaceDocument(like: existing, during: operation)
        // The journal is folded now, and its generation identifies it as such.
        journal = .none
        isJournalLeft = true
        opened.forget(journalPath)
        try removeJournal()
      }
    } catch {
      failedFolds += 1
      throw error
    }
  }

  private var hasChanges: Bool {
    journalSize > 0 || journal.hasFailed || mustFold
  }

  private mutating func replaceDocument(like existing: FileAttributes, during operation: StoreOperation) throws {
    let (next, overflow) = generation.addingReportingOverflow(1)
    guard !overflow else {
      throw configuration.error(.unsupported, during: operation, "\(path) has reached the maximum generation")
    }
    var replacement = try FileReplacement(of: path, like: existing, in: fileSystem)
    do {
      let document = try writeDocument(to: &replacement, generation: next, during: operation)
      generation = next
      adopt(document)
      unsettledFile = nil
      mustFold = false
      releaseOpenedText()
    } catch let error as FileError where error.leavesReplacementInDoubt {
      // Either document may be in place, and the journal continues only one of them.
      mustFold = true
      unsettledFile = replacement.file
      opened.forget(path)
      throw error
    }
  }

  /// Copies the values out of the text that was read on opening, if most of it is obsolete.
  ///
  /// A slice keeps all of the text in memory.
  private mutating func releaseOpenedText() {
    guard openedTextSize > max(1 << 20, 2 * documentBound) else { return }
    contents.replace(JSONEntries(map: contents.snapshot.map.mapValues { Array($0)[...] }))
    openedTextSize = 0
  }

  /// Throws an error if the document at the path is not the one that was last read or written.
  ///
  /// - Returns: The attributes of the document.
  /// - Throws: ``StoreError`` with `conflict`.
  private mutating func checkDocumentUnchanged(during operation: StoreOperation) throws -> FileAttributes {
    if let attributes = try fileSystem.attributes(at: path) {
      if let unsettledFile, attributes.identity == (try unsettledFile.attributes().identity) { return attributes }
      if let document, attributes.identity == document.attributes.identity {
        let isUntouched =
          attributes.size == document.attributes.size
          && attributes.modificationTime == document.attributes.modificationTime
        if try isUntouched || hasSameContent(document, size: attributes.size) {
          self.document?.attributes = attributes
          return attributes
        }
      }
    }
    throw configuration.error(
      .conflict, during: operation,
      "\(path) was changed by another program while it was open, and was left unchanged; the changes of this store "
        + "are in \(journalPath); open the store again to merge both"
    )
  }

  /// Returns whether the document still has the content that was last read or written.
  ///
  /// A program such as `touch` changes only its time.
  private func hasSameContent(_ document: Document, size: Int64) throws -> Bool {
    guard size == document.attributes.size else { return false }
    let text = try document.file.readText(size: size)
    if let known = document.text { return known == text }
    return document.stamp.map { Int64(text.count) == size && $0.damagedRanges(of: text).isEmpty } ?? false
  }

  /// Writes a document to a new file and puts it in place.
  ///
  /// - Throws: ``StoreError``; ``FileError``, see ``FileReplacement/commit(closing:)``.
  func writeDocument(
    to replacement: inout FileReplacement, generation: Int64, during operation: StoreOperation
  ) throws -> Document {
    let stamp = try replacement.prepare { new in
      var stamp = JSONStamp(of: try new.file.attributes(), expectedSize: documentBound)
      let document = JSONDocument(codecName: codecName, entries: contents.snapshot.map, generation: generation)
      try document.write(stamping: &stamp) { try new.writer.write($0) }
      guard new.writer.count <= sizeLimit else {
        throw configuration.error(
          .full, during: operation,
          "the document would exceed the limit of \(sizeLimit) bytes")
      }
      // A document without this time is read like a copy, without checking its checksums.
      try new.setModificationTime(stamp.modificationTime)
      return stamp
    }
    var attributes: FileAttributes?
    let file = try replacement.commit { file throws(FileError) in attributes = try file.attributes() }
    return Document(file: file, attributes: try attributes ?? file.attributes(), generation: generation, stamp: stamp)
  }

  /// Removes a journal that is already folded.
  ///
  /// It may reappear after power loss, and is then recognized.
  private mutating func removeJournal() throws {
    guard isJournalLeft else { return }
    do {
      try fileSystem.removeFile(at: journalPath)
    } catch {
      // The journal was never in place.
      guard error.isMissing else { throw error }
    }
    isJournalLeft = false
  }

  /// Folds the journal and removes it before the store is closed, so only the document is left.
  mutating func settle() throws {
    if hasWritten || hasChanges { try configuration.check(opened, during: .close) }
    try fold(during: .close)
    // A journal that is left has no batch.
    if case .none = journal {} else { isJournalLeft = true }
    journal = .none
    opened.forget(journalPath)
    try removeJournal()
    if hasWritten { try fileSystem.synchronizeDirectory(at: FilePaths.split(journalPath).directory) }
  }
}

extension JSONFile.Journal {
  /// A Boolean value that indicates whether the journal must not be written to any more.
  fileprivate var hasFailed: Bool {
    if case .open(let log) = self { log.failure != nil } else { false }
  }
}
