import Larder
import LarderFiles

/// The files of a `JSONFileStore` on disk, for the one object that has them open.
///
/// - The document, `NAME`: everything, as it was when it was last folded.
/// - The journal, `NAME.journal`: what was changed since. It is there only while there is something in it, and after a crash.
/// - The lock, `NAME.lock`: empty.
///
/// **Folding** writes the document anew, with the next generation, and then removes the journal. The journal names the
/// generation of the document that it continues, so that a crash between the two leaves a journal which is known to be
/// folded in already. Neither file is ever made shorter: after a power cut the old length could stand before zeros.
///
/// **Opening writes nothing** but a document that is missing. A journal that an unclean end has left is applied in memory.
/// What it says may be only in the caches of the system, after a failed synchronization of which no one knows any more. So
/// the first write puts its lines into a new file, before that write is acknowledged.
///
/// Everything here blocks.
struct JSONFile: Sendable {
  let configuration: StoreFileConfiguration

  /// The name of the codec that the values are written with, once the document has been read.
  private(set) var codecName = ""

  private var name: String { configuration.name }
  var fileSystem: any FileSystem { configuration.fileSystem }
  var isWritable: Bool { configuration.access == .readWrite }
  let path: String
  private let lock: FileLock?

  /// The files that must be at their paths whenever the store writes.
  var opened: OpenedFiles

  /// What the files hold; whoever writes a batch here shows it there.
  let contents: JSONFileContents

  /// The most bytes that the document and the journal may each have, for reading and for writing.
  let sizeLimit: Int64

  /// See ``sizeLimit``: what cannot be a store must not fill the memory.
  static let maximumSize: Int64 = 1 << 32

  /// The document, once it was read or written.
  var document: Document?

  /// What is known of the document on disk.
  struct Document: Sendable {
    /// Held open, so that no other file gets its inode.
    let file: any OpenFile
    var attributes: FileAttributes
    /// The generation, or `nil` if the document states none.
    var generation: Int64?
    /// What the document says of how it was written.
    var stamp: JSONStamp?
    /// The document as it was when it was opened, or `nil` once the store has written it itself.
    var text: [UInt8]?
  }

  /// The generation of the document, or of the journal that is applied to it if the document has none.
  var generation: Int64 = 0

  /// The changes since the document was written.
  var journal = Journal.none

  /// How long the first line of the journal is that the store has created.
  var journalHeadSize = 0

  enum Journal: Sendable {
    case none
    /// An unclean end has left it.
    case found(FoundJournal)
    case open(AppendLog)
  }

  /// A journal that was applied in memory, and whose bytes are not trusted to be on the disk.
  struct FoundJournal: Sendable {
    /// Held open, so that no other file gets its inode.
    let file: any OpenFile
    /// The good lines, without the first.
    let lines: ArraySlice<UInt8>
  }

  /// Whether a journal that is folded in already is still at its path.
  var isJournalLeft = false

  /// Whether power loss may bring back the document before the one that was found, and the journal with it, whose last
  /// changes may not be durable.
  var isFoldUncertain = false

  /// Whether the document must be folded before anything else is written: a fold failed so that no one knows which document
  /// is in place.
  var mustFold = false

  /// The document that is then possibly in place.
  var unsettledReplacement: FileReplacement?

  /// How many folds have failed.
  var failedFolds: Int64 = 0

  /// Whether the store has written anything.
  var hasWritten = false

  /// The most bytes that the document would have if it was folded now.
  var documentBound: Int64 = 0

  /// The size of the journal from which on a write folds it.
  var foldSize = FoldThreshold.write

  /// How many bytes the texts have that values are parts of, which stay in memory for them.
  var sharedTextSize = 0

  /// In how many places the document is damaged, of a store that was opened only for reading.
  private var damagedPlaces = 0

  /// Why the journal cannot be used, of a store that was opened only for reading.
  private var journalDamage: VerificationReport.Finding?

  var journalPath: String { path + ".journal" }

  /// From how many bytes on a journal is worth folding, when a write or a synchronization finds it so.
  enum FoldThreshold {
    static let write: Int64 = 1 << 20
    static let synchronize: Int64 = 64 << 10
  }

  // MARK: Opening

  /// Opens the files.
  ///
  /// - Parameters:
  ///   - configuration: How.
  ///   - sizeLimit: The most bytes that the document and the journal may each have.
  ///   - codec: Gives the codec, by the name of the one that the document states or that suits a new one.
  /// - Throws: ``StoreError``; what `codec` throws.
  static func open<Value>(
    _ configuration: StoreFileConfiguration, sizeLimit: Int64,
    choosing codec: (_ name: String) throws -> any Codec<Value>
  ) throws -> (file: JSONFile, codec: any Codec<Value>) {
    try configuration.reportingFileErrors(during: .open, message: "the store could not be opened") {
      let (path, lock, opened) = try configuration.takeLock { path in
        try JSONFile(configuration, path: path, sizeLimit: sizeLimit).refuseForeignDocument()
      }
      var file = JSONFile(configuration, path: path, lock: lock, opened: opened, sizeLimit: sizeLimit)
      if file.isWritable { try configuration.fileSystem.removeStaleTemporaryFiles(of: file.journalPath) }
      let codec = try file.readDocument(choosing: codec)
      try file.replayJournal()
      return (file, codec)
    }
  }

  private init(
    _ configuration: StoreFileConfiguration, path: String, lock: FileLock? = nil, opened: OpenedFiles = OpenedFiles(),
    sizeLimit: Int64
  ) {
    self.configuration = configuration
    self.path = path
    self.lock = lock
    self.opened = opened
    self.sizeLimit = sizeLimit
    contents = JSONFileContents()
  }

  /// Refuses a file that is no document, before it gains a lock file.
  private func refuseForeignDocument() throws {
    let file = try fileSystem.open(path, .read)
    let beginning = try file.readAll(from: 0, upTo: 64)
    // What Larder wrote needs no second look, and a large document would take long.
    guard !beginning.starts(with: JSONFile.beginning) else { return }
    _ = try load(file, during: .open)
  }

  /// Reads the document, or creates it if it is missing.
  private mutating func readDocument<Value>(
    choosing codec: (_ name: String) throws -> any Codec<Value>
  ) throws -> any Codec<Value> {
    guard let attributes = try fileSystem.attributes(at: path) else {
      guard try fileSystem.attributes(at: journalPath) == nil else {
        throw configuration.error(
          .corrupted, during: .open,
          "\(path) is gone, but its journal \(journalPath) holds changes to it; put the document back, or remove the journal"
        )
      }
      let codec = try codec("json")
      codecName = codec.name
      generation = 1
      // Not in place: a crash halfway would leave a damaged document where there was none.
      var replacement = try FileReplacement(of: path, like: nil, in: fileSystem)
      adopt(try writeDocument(to: &replacement, generation: generation, during: .open))
      return codec
    }
    try configuration.checkKind(attributes, of: path, isWritten: isWritable)
    let file = try fileSystem.open(path, isWritable ? .readWrite : .read)
    let loaded = try load(file, during: .open)
    let codec = try codec(loaded.document.codecName)
    try configuration.checkCodec(loaded.document.codecName, of: path, is: codec.name)
    codecName = codec.name
    generation = loaded.document.generation ?? 0
    adopt(
      Document(
        file: file, attributes: loaded.attributes, generation: loaded.document.generation, stamp: loaded.document.stamp,
        text: isWritable ? loaded.text : nil))
    sharedTextSize = loaded.text.count
    damagedPlaces = loaded.damages.count
    contents.replace(JSONEntries(map: loaded.document.entries, holes: loaded.holes))
    return codec
  }

  /// Takes note of the document that is in place now.
  mutating func adopt(_ document: Document) {
    self.document = document
    documentBound = document.attributes.size
    foldSize = max(FoldThreshold.write, document.attributes.size)
    opened.note(document.attributes.identity, at: path, as: .data)
  }

  // MARK: The journal that was found

  /// Applies what the journal holds.
  private mutating func replayJournal() throws {
    guard try fileSystem.attributes(at: journalPath) != nil else { return }
    let file = try fileSystem.open(journalPath, .read)
    let (content, text): (JSONJournal, [UInt8])
    do {
      (content, text) = try readJournal(file, during: .open)
    } catch  where JSONFile.isDamage(error) && !isWritable {
      // What the damaged lines changed is not known, so neither is what any key holds now.
      contents.replace(JSONEntries(holes: [.all]))
      let message = (error as? StoreError)?.message ?? "the journal cannot be read"
      journalDamage = VerificationReport.Finding(key: nil, place: journalPath, message: message)
      return
    }
    try configuration.checkCodec(content.head.codecName, of: journalPath, is: codecName)
    guard try continuesDocument(content.head) else {
      isJournalLeft = true
      // The store that folded it did not remove it, perhaps because the new name of the document could not be made durable.
      isFoldUncertain = true
      return
    }
    generation = content.head.generation
    journal = .found(FoundJournal(file: file, lines: text[content.headSize..<content.size]))
    opened.note(try file.attributes().identity, at: journalPath, as: .data)
    documentBound += Int64(content.size)
    sharedTextSize += text.count
    contents.apply(Array(content.batches.joined()))
  }

  /// Whether a journal is to be applied to the document, or is folded in already.
  ///
  /// - Throws: ``StoreError`` with `corrupted` if it belongs to another document.
  private func continuesDocument(_ head: JSONJournalLine.Head) throws -> Bool {
    // A document without a generation was written by hand: the changes of the journal were acknowledged, and win.
    guard document?.generation != nil else { return true }
    switch generation - head.generation {
    case 0:
      guard let digest = document?.stamp?.digest, let expected = head.document, digest != expected else { return true }
    case 1: return false
    default: break
    }
    throw configuration.error(
      .corrupted, during: .open,
      "\(journalPath) continues generation \(head.generation) of the document, and \(path) is another document (generation \(generation)); put the right document back, or remove the journal to give up its changes"
    )
  }

  // MARK: Closing and maintenance

  /// Folds the journal, so that the document alone holds everything, and gives the lock back.
  ///
  /// - Throws: ``StoreError``; the lock is given back all the same, and what could not be folded stays in the journal.
  mutating func close() throws {
    try configuration.reportingFileErrors(during: .close, message: "the store could not be closed cleanly") {
      let folding = Result { if isWritable { try settle() } }
      contents.close()
      // The last references to the files close them; nothing is written to them any more.
      document = nil
      journal = .none
      unsettledReplacement = nil
      try lock?.release()
      try folding.get()
    }
  }

  /// What statistics tell beside the number of entries.
  var details: [StoreStatistics.Detail] {
    let damagedPlaces = damagedPlaces + (journalDamage == nil ? 0 : 1)
    return [
      StoreStatistics.Detail(name: "documentBytes", value: sizes.document),
      StoreStatistics.Detail(name: "journalBytes", value: sizes.journal),
      StoreStatistics.Detail(name: "failedFolds", value: failedFolds),
      StoreStatistics.Detail(name: "damagedPlaces", value: Int64(damagedPlaces)),
    ]
  }

  /// The bytes of the document and of the journal.
  var sizes: (document: Int64, journal: Int64) {
    switch journal {
    case .none: (document?.attributes.size ?? 0, 0)
    case .found(let found): (document?.attributes.size ?? 0, Int64(found.lines.endIndex))
    case .open(let log): (document?.attributes.size ?? 0, log.size)
    }
  }

  /// Writes a copy of the document as it would be after folding.
  ///
  /// - Throws: ``StoreError``.
  func backup(to destination: String) throws {
    try configuration.reportingFileErrors(during: .backup, message: "the copy \(destination) could not be written") {
      let destination = try fileSystem.canonicalPath(of: destination)
      guard try fileSystem.attributes(at: destination) == nil else {
        throw configuration.error(.invalidArgument, during: .backup, "something is at \(destination) already")
      }
      guard ![journalPath, path + ".lock"].contains(where: { $0.utf8.elementsEqual(destination.utf8) }) else {
        throw configuration.error(.invalidArgument, during: .backup, "\(destination) belongs to the store itself")
      }
      guard contents.snapshot.holes.isEmpty else {
        throw configuration.error(
          .corrupted, during: .backup, "\(path) is damaged, so a copy would lack entries; copy those that can be read")
      }
      var replacement = try FileReplacement(of: destination, like: nil, in: fileSystem)
      do {
        // Its own generation would not be known to a journal that stays beside the copy's place.
        _ = try writeDocument(to: &replacement, generation: generation, during: .backup)
      } catch let error as FileError where error.leavesReplacementInDoubt {
        throw StoreError(
          error, during: .backup, store: name,
          message: "the copy \(destination) may be in place, but is not known to be durable; remove it and try again",
          outcome: .unknown)
      }
    }
  }

  /// Reads everything anew from the disk.
  ///
  /// - Returns: The document, and the entries with the journal applied.
  /// - Throws: ``StoreError``: `corrupted` and the like if it cannot be read as a store.
  func reread() throws -> (loaded: Loaded, entries: JSONEntries) {
    try configuration.reportingFileErrors(during: .verify, message: "the store could not be read") {
      var loaded = try load(try fileSystem.open(path, .read), during: .verify)
      if let journalDamage { loaded.damages.append(journalDamage) }
      var entries = JSONEntries(map: loaded.document.entries, holes: loaded.holes)
      if case .none = journal { return (loaded, entries) }
      let content = try readJournal(try fileSystem.open(journalPath, .read), during: .verify).content
      var displaced: [ArraySlice<UInt8>] = []
      for change in content.batches.joined() {
        entries.map.apply(change, displacing: &displaced)
      }
      return (loaded, entries)
    }
  }

  /// Where something stands in the document, for people to read.
  func place(ofOffset offset: Int, in lines: TextLines) -> String {
    let place = lines.place(ofOffset: offset)
    return "\(path), line \(place.line), column \(place.column)"
  }

  /// Where something stands that is not in the document yet, for people to read.
  var journalPlace: String { journalPath }
}

extension FileError {
  /// Whether a file that was to be replaced may have been, or may be after power loss.
  var leavesReplacementInDoubt: Bool { operation == .rename || operation == .synchronizeDirectory }
}
