import Larder
import LarderFiles

/// The files of a `JSONFileStore`, for the single object that has them open.
///
/// - The document, `NAME`, holds all entries as of the last fold.
/// - The journal, `NAME.journal`, holds the changes since then. It exists only while it has content, and after a crash.
/// - The lock file, `NAME.lock`, is empty.
///
/// **Folding** writes the document anew with the next generation, and then removes the journal. The journal names the
/// generation of the document that it continues. After a crash between these two steps, the journal is therefore known
/// to be folded already. Neither file is ever truncated: after a power failure, the old length could reappear, filled
/// with zeros.
///
/// **Opening writes nothing** except a missing document, and what a crash has left. Its content may exist only in the
/// caches of the system, after a failed synchronization that is no longer known, and a second one would report success.
/// A synced store therefore writes it anew before any reader sees it, and a buffered one before its first write is
/// acknowledged.
///
/// All methods block.
struct JSONFile: Sendable {
  let configuration: StoreFileConfiguration

  /// The name of the codec of the values, once the document has been read.
  var codecName = ""

  var name: String { configuration.name }
  var fileSystem: any StoreFileSystem { configuration.fileSystem }
  var isWritable: Bool { configuration.access == .readWrite }
  let path: String
  private let lock: FileLock?

  /// The files that must be at their paths whenever the store writes.
  var opened: OpenedFiles

  /// The entries as readers see them.
  let contents: SharedContent<JSONEntries>

  /// The maximum size in bytes of the document and of the journal, for reading and for writing.
  let sizeLimit: Int64

  /// The default of ``sizeLimit``, which prevents a file that is not a store from filling the memory.
  static let maximumSize: Int64 = 1 << 32

  /// The document, once it has been read or written.
  var document: Document?

  /// The known state of the document on disk.
  struct Document: Sendable {
    /// Held open so that no other file gets its inode.
    let file: any OpenStoreFile
    var attributes: FileAttributes
    /// The generation, or `nil` if the document does not state it.
    var generation: Int64?
    /// The checksums in the document.
    var stamp: JSONStamp?
    /// The text of the document when it was opened, or `nil` after the store has written it.
    var text: [UInt8]?
  }

  /// The generation of the document, or of the journal applied to it if the document does not state one.
  var generation: Int64 = 0

  /// The changes since the document was written.
  var journal = Journal.none

  /// The length of the first line of the journal.
  var journalHeadSize = 0

  enum Journal: Sendable {
    case none
    /// The journal was left by a crash and applied in memory, but its bytes may not be on the disk.
    ///
    /// The lines are the valid ones without the first one. The file is held open so that no other file gets its inode.
    case found(any OpenStoreFile, lines: ArraySlice<UInt8>)
    case open(AppendLog)
  }

  /// A Boolean value that indicates whether a journal that is already folded is still at its path.
  var isJournalLeft = false

  /// A Boolean value that indicates whether power loss may restore the previous document and its journal, whose latest
  /// changes may not be durable.
  var isFoldUncertain = false

  /// A Boolean value that indicates whether the document must be folded before anything else is written, because a
  /// failed fold left it unknown which document is in place.
  var mustFold = false

  /// The document that may be in place after a failed fold.
  var unsettledFile: (any OpenStoreFile)?

  /// The number of failed folds.
  var failedFolds: Int64 = 0

  /// A Boolean value that indicates whether the store has written anything.
  var hasWritten = false

  /// An upper bound for the size of the document if it was folded now.
  var documentBound: Int64 = 0

  /// The size in bytes of the text that was read on opening, while values are slices of it.
  var openedTextSize = 0

  /// The size of the journal at which a write folds it.
  var foldSize = FoldThreshold.write

  /// The number of damaged places in the document of a read-only store.
  private var damagedPlaces = 0

  /// The damage of an unusable journal of a read-only store.
  private(set) var journalDamage: VerificationReport.Finding?

  var journalPath: String { path + JSONFile.journal.suffix }

  private static let journal = StoreFileSet.Companion(
    suffix: ".journal", role: .content, summary: "the journal of a document")

  /// Returns all files of a store.
  static func files(at path: String) -> StoreFileSet {
    StoreFileSet(
      at: path,
      companions: [
        journal,
        StoreFileSet.Companion(
          suffix: StoreFileSet.lockSuffix, role: .lock, summary: "the lock file of a document"),
      ])
  }

  /// The minimum size in bytes of a journal that a write or a synchronization folds.
  enum FoldThreshold {
    static let write: Int64 = 1 << 20
    static let synchronize: Int64 = 64 << 10
  }

  // MARK: Opening

  /// Opens the files.
  ///
  /// - Parameters:
  ///   - configuration: The options for opening the files.
  ///   - contents: The entries as readers see them.
  ///   - sizeLimit: The maximum size in bytes of the document and of the journal.
  ///   - newCodecName: The name of the codec of a new document.
  /// - Throws: ``StoreError``.
  static func open(
    _ configuration: StoreFileConfiguration, contents: SharedContent<JSONEntries>, sizeLimit: Int64,
    newCodecName: String
  ) throws -> JSONFile {
    try configuration.reportingFileErrors(during: .open, message: "the store could not be opened") {
      let (path, lock, opened) = try configuration.takeLock { path in
        let file = JSONFile(
          configuration: configuration, path: path, lock: nil, opened: OpenedFiles(), contents: contents,
          sizeLimit: sizeLimit)
        try file.refuseForeignDocument()
      }
      var file = JSONFile(
        configuration: configuration, path: path, lock: lock, opened: opened, contents: contents, sizeLimit: sizeLimit)
      if file.isWritable { try configuration.fileSystem.removeStaleTemporaryFiles(of: file.journalPath) }
      try file.readDocument(newCodecName: newCodecName)
      try file.replayJournal()
      try file.rewriteRemains()
      return file
    }
  }

  /// Throws an error if a file is not a document, before it gets a lock file.
  private func refuseForeignDocument() throws {
    let file = try fileSystem.open(path, .read)
    let beginning = try file.readAll(from: 0, upTo: 64)
    // A file that Larder wrote needs no check here, which would take long for a large document.
    guard !beginning.starts(with: JSONFile.beginning) else { return }
    _ = try load(file, during: .open)
  }

  /// Reads the document, or creates it if it is missing.
  private mutating func readDocument(newCodecName: String) throws {
    guard let attributes = try fileSystem.attributes(at: path) else {
      guard try fileSystem.attributes(at: journalPath) == nil else {
        throw configuration.error(
          .corrupted, during: .open,
          "\(path) is missing, but its journal \(journalPath) holds changes to it; restore the document, or "
            + "remove the journal")
      }
      codecName = newCodecName
      generation = 1
      // Written as a replacement, because a crash while writing in place would leave a damaged document.
      var replacement = try FileReplacement(of: path, like: nil, in: fileSystem)
      adopt(try writeDocument(to: &replacement, generation: generation, during: .open))
      return
    }
    try configuration.checkKind(attributes, of: path, isWritten: isWritable)
    let file = try fileSystem.open(path, isWritable ? .readWrite : .read)
    let loaded = try load(file, during: .open)
    codecName = loaded.document.codecName
    generation = loaded.document.generation ?? 0
    openedTextSize = loaded.text.count
    adopt(
      Document(
        file: file, attributes: loaded.attributes, generation: loaded.document.generation, stamp: loaded.document.stamp,
        text: isWritable ? loaded.text : nil))
    damagedPlaces = loaded.damages.count
    contents.replace(JSONEntries(map: loaded.document.entries, holes: loaded.holes))
  }

  /// Records the document that is in place now.
  mutating func adopt(_ document: Document) {
    self.document = document
    documentBound = document.attributes.size
    foldSize = max(FoldThreshold.write, document.attributes.size)
    opened.note(document.attributes.identity, at: path, as: .data)
  }

  // MARK: The journal that was found

  /// Applies the journal left by a crash, if any.
  private mutating func replayJournal() throws {
    guard try fileSystem.attributes(at: journalPath) != nil else { return }
    let file = try fileSystem.open(journalPath, .read)
    let (content, text): (JSONJournal, [UInt8])
    do {
      (content, text) = try readJournal(file, during: .open)
    } catch  where JSONFile.isDamage(error) && !isWritable {
      // The changes in the damaged lines are unknown, and therefore the current value of every key.
      contents.replace(JSONEntries(holes: [.all]))
      let message = (error as? StoreError)?.message ?? "the journal cannot be read"
      journalDamage = VerificationReport.Finding(key: nil, place: journalPath, message: message)
      return
    }
    guard try continuesDocument(content.head) else {
      isJournalLeft = true
      // The store that folded it did not remove it, perhaps because the rename of the document could not be made
      // durable.
      isFoldUncertain = true
      return
    }
    // A journal that is already folded may have the codec that the document had before.
    guard content.head.codecName == codecName else {
      throw configuration.error(
        .versionMismatch, during: .open,
        "\(journalPath) was written with the codec \(content.head.codecName), and \(path) with \(codecName)")
    }
    generation = content.head.generation
    journal = .found(file, lines: text[content.headSize..<content.size])
    journalHeadSize = content.headSize
    opened.note(try file.attributes().identity, at: journalPath, as: .data)
    documentBound += Int64(content.size)
    openedTextSize += text.count
    show(Array(content.batches.joined()))
  }

  /// Writes anew what a process left that may have died before it was durable, because no reader may see what a power
  /// failure would take away.
  ///
  /// - Throws: ``FileError`` if it can be neither written anew nor synchronized.
  private mutating func rewriteRemains() throws {
    guard isWritable, configuration.durability == .synced else { return }
    let known = generation
    do {
      if case .found = journal {
        _ = try usableJournal(during: .open)
      } else if isFoldUncertain {
        // The document keeps its generation, so the journal that it has folded is still known as such.
        generation -= 1
        mustFold = true
        try fold(during: .open)
        isFoldUncertain = false
      }
    } catch {
      // A full disk can still be read. The bytes are then as durable as the system can make them.
      if case .found(let file, _) = journal { try file.synchronizeThroughInterruptions() }
      // If it is unknown which document is in place, the next fold writes this generation again.
      mustFold = unsettledFile != nil
      if !mustFold { generation = known }
      try fileSystem.synchronizeDirectory(at: FilePaths.split(path).directory)
    }
  }

  /// Returns whether a journal continues the document, in contrast to one that is already folded.
  ///
  /// - Throws: ``StoreError`` with `corrupted` if the journal belongs to another document.
  private func continuesDocument(_ head: JSONJournalLine.Head) throws -> Bool {
    // A document without a generation was written by hand. The changes in the journal were acknowledged, so they win.
    guard document?.generation != nil else { return true }
    switch generation - head.generation {
    case 0:
      guard let digest = document?.stamp?.digest, let expected = head.document, digest != expected else { return true }
    case 1: return false
    default: break
    }
    throw configuration.error(
      .corrupted, during: .open,
      "\(journalPath) continues generation \(head.generation) of the document, and \(path) is another document "
        + "(generation \(generation)); put the right document back, or remove the journal to discard its changes")
  }

  // MARK: Closing and maintenance

  /// Folds the journal, so the document alone holds all entries, and releases the lock.
  ///
  /// - Throws: ``StoreError``. The lock is released even if an error is thrown, and unfolded changes stay in the
  ///   journal.
  mutating func close() throws {
    try configuration.reportingFileErrors(during: .close, message: "the store could not be closed cleanly") {
      let folding = Result { if isWritable { try settle() } }
      contents.replace(JSONEntries())
      // Releasing the last references closes the files. Nothing is written to them any more.
      document = nil
      journal = .none
      unsettledFile = nil
      try lock?.release()
      try folding.get()
    }
  }

  func statistics() -> StoreStatistics {
    let details = [
      ("documentBytes", sizes.document), ("journalBytes", sizes.journal), ("failedFolds", failedFolds),
      ("damagedPlaces", Int64(damagedPlaces + (journalDamage == nil ? 0 : 1))),
    ]
    return StoreStatistics(
      entryCount: contents.snapshot.map.count, bytesOnDisk: sizes.document + sizes.journal,
      details: details.map { StoreStatistics.Detail(name: $0.0, value: $0.1) })
  }

  /// The sizes of the document and of the journal in bytes.
  var sizes: (document: Int64, journal: Int64) {
    switch journal {
    case .none: (document?.attributes.size ?? 0, 0)
    case .found(_, let lines): (document?.attributes.size ?? 0, Int64(lines.endIndex))
    case .open(let log): (document?.attributes.size ?? 0, log.size)
    }
  }
}
