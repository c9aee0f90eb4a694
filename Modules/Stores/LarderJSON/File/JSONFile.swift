import Larder
import LarderFiles

/// The files of a `JSONFileStore` on disk, for the one object that has them open.
///
/// - The document, `NAME`: everything, as it was when it was last folded.
/// - The journal, `NAME.journal`: what was changed since. It is there only while there is something in it, and after a crash.
/// - The lock, `NAME.lock`: empty.
///
/// **Folding** writes the document anew and then empties the journal. A crash between the two applies the journal to a
/// document that holds its changes already. That changes nothing, as long as the journal is complete: every key that it
/// names ends as its last change says. So the document is replaced only once all of the journal is durable.
///
/// Everything here blocks.
struct JSONFile: Sendable {
  let configuration: StoreFileConfiguration

  /// The name of the codec that the values are written with, once the document has been read.
  private var codecName = ""

  private var name: String { configuration.name }
  private var fileSystem: any FileSystem { configuration.fileSystem }
  private let path: String
  private let lock: FileLock?

  /// The files that must be at their paths whenever the store writes.
  private var opened: OpenedFiles

  /// What the files hold; whoever writes a batch here shows it there.
  let contents: JSONFileContents

  private var journal: AppendLog?
  private var journalHead: [UInt8] = []

  /// The most bytes that the document and the journal may each have: what cannot be a store must not fill the memory.
  private static let maximumSize: Int64 = 1 << 32

  /// The size of the document when it was last read or written.
  private var documentSize: Int64

  /// What the document looked like then, or `nil` where nobody knows.
  private var documentState: DocumentState?

  /// What tells a document from another that has taken its place.
  private struct DocumentState: Equatable {
    var identity: FileAttributes.Identity
    var size: Int64
    var modificationTime: Int64

    init(_ attributes: FileAttributes) {
      identity = attributes.identity
      size = attributes.size
      modificationTime = attributes.modificationTime
    }
  }

  /// The size of the journal from which on a write folds it.
  private var foldSize: Int64

  private var journalPath: String { path + ".journal" }

  /// From how many bytes on a journal is worth folding, when a write or a synchronization finds it so.
  private enum FoldThreshold {
    static let write: Int64 = 1 << 20
    static let synchronize: Int64 = 64 << 10
  }

  // MARK: Opening

  /// Opens the files, and folds a journal that a crash has left.
  ///
  /// - Parameters:
  ///   - configuration: How.
  ///   - codec: Gives the codec, by the name of the one that the document states or that suits a new one.
  /// - Throws: ``StoreError``; what `codec` throws.
  static func open<Value>(
    _ configuration: StoreFileConfiguration, choosing codec: (_ name: String) throws -> any Codec<Value>
  ) throws -> (file: JSONFile, codec: any Codec<Value>) {
    try configuration.reportingFileErrors(during: .open, message: "the store could not be opened") {
      let (path, lock, opened) = try configuration.takeLock()
      try configuration.fileSystem.removeStaleTemporaryFiles(of: path + ".journal")

      var file = JSONFile(configuration: configuration, path: path, lock: lock, opened: opened)
      let codec = try file.readDocument(choosing: codec)
      if try file.replayJournal() {
        try file.fold(during: .open)
        try file.removeJournal()
      }
      return (file, codec)
    }
  }

  private init(configuration: StoreFileConfiguration, path: String, lock: FileLock?, opened: OpenedFiles) {
    self.configuration = configuration
    self.path = path
    self.lock = lock
    self.opened = opened
    contents = JSONFileContents()
    documentSize = 0
    foldSize = FoldThreshold.write
  }

  /// Reads the document, or makes it where it is missing.
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
      let codec = try use(codec("json"))
      var size: Int64 = 0
      // Not in place: a crash halfway would leave a damaged document where there was none.
      try fileSystem.replaceFile(at: path) { writer in
        try JSONDocument(codecName: codecName).write { try writer.write($0) }
        size = writer.count
      }
      documentSize = size
      documentState = try fileSystem.attributes(at: path).map(DocumentState.init)
      return codec
    }
    try configuration.checkKind(attributes, of: path)
    let text = try read(path, .readWrite, during: .open)
    documentState = try fileSystem.attributes(at: path).map(DocumentState.init)
    documentSize = Int64(text.count)
    foldSize = max(FoldThreshold.write, documentSize)
    let document = try parse(text, during: .open)
    let codec = try use(codec(document.codecName))
    try configuration.checkCodec(document.codecName, of: path, is: codec.name)
    contents.replace(document.entries)
    return codec
  }

  private mutating func use<Value>(_ codec: any Codec<Value>) -> any Codec<Value> {
    codecName = codec.name
    journalHead = JSONJournalLine.bytes(of: .head(codecName: codecName))
    return codec
  }

  /// Reads a file that can be held in memory.
  private func read(_ path: String, _ mode: FileOpenMode, during operation: StoreOperation) throws -> [UInt8] {
    let file = try fileSystem.open(path, mode)
    let size = try file.attributes().size
    guard size <= JSONFile.maximumSize else {
      throw configuration.error(
        .unsupported, during: operation,
        "\(path) has \(size) bytes, more than the \(JSONFile.maximumSize) that a store in memory can have")
    }
    return try file.readAll()
  }

  private func parse(_ text: [UInt8], during operation: StoreOperation) throws -> JSONDocument {
    do {
      return try JSONDocument(text)
    } catch JSONDocument.Problem.damaged(let error, let key) {
      throw configuration.error(
        .corrupted, during: operation, key: key, "\(path) is damaged at \(error); it was left as it is",
        underlying: error)
    } catch JSONDocument.Problem.foreign {
      throw configuration.error(
        .unrecognizedFormat, during: operation,
        "\(path) is JSON, but no store: that is an object with the members \"larder\" and \"entries\"")
    } catch JSONDocument.Problem.newerVersion(let version) {
      throw configuration.error(
        .versionMismatch, during: operation,
        "\(path) is in version \(version) of the format, and this program knows up to \(JSONDocument.version); use a newer one"
      )
    }
  }

  /// Applies what the journal holds.
  ///
  /// - Returns: Whether there is a journal.
  private mutating func replayJournal() throws -> Bool {
    guard try fileSystem.attributes(at: journalPath) != nil else { return false }
    let handle = try fileSystem.open(journalPath, .readWrite)
    let content = try parseJournal(try read(journalPath, .readWrite, during: .open), during: .open)
    try configuration.checkCodec(content.codecName, of: journalPath, is: codecName)
    journal = try AppendLog(continuing: handle, at: Int64(content.size))
    contents.apply(Array(content.batches.joined()))
    return true
  }

  private func parseJournal(_ text: [UInt8], during operation: StoreOperation) throws -> JSONJournal {
    do {
      return try JSONJournal(text)
    } catch JSONJournal.Problem.damaged(let line, let reason) {
      throw configuration.error(
        .corrupted, during: operation, "\(journalPath) is damaged at line \(line): \(reason); it was left as it is")
    } catch JSONJournal.Problem.newerVersion(let version) {
      throw configuration.error(
        .versionMismatch, during: operation,
        "\(journalPath) is in version \(version) of the format, and this program knows up to \(JSONJournalLine.version)"
      )
    }
  }

  // MARK: Writing

  /// Writes a batch, as durably as the configuration says.
  ///
  /// - Parameters:
  ///   - changes: The batch.
  ///   - operation: What was asked for.
  /// - Throws: ``StoreError``.
  mutating func append(_ changes: [Change<ArraySlice<UInt8>>], during operation: StoreOperation) throws {
    try configuration.check(opened, during: operation)
    var log = try configuration.reportingFileErrors(during: operation, message: "the journal could not be made") {
      try usableJournal()
    }
    defer { journal = log }
    do {
      try log.append(JSONJournalLine.bytes(of: .batch(changes: changes, durable: log.durableSize)))
      if configuration.durability == .synced { try log.synchronize() }
    } catch {
      throw StoreError(
        error, during: operation, store: name, message: "the change could not be written to \(journalPath)",
        outcome: log.failure == nil ? .nothingChanged : .unknown)
    }
  }

  /// The journal, made where there is none, and made anew where it must not be written any more.
  private mutating func usableJournal() throws -> AppendLog {
    if let journal, journal.failure == nil { return journal }
    var lines = journalHead
    if journal != nil {
      // Nobody knows what of the old journal has reached the disk. The new one must be complete from its first moment,
      // so it says everything again, in one batch.
      var changes: [Change<ArraySlice<UInt8>>] = [.removeAll(.all)]
      contents.snapshot.forEach { changes.append(.set($0, $1)) }
      lines += JSONJournalLine.bytes(of: .batch(changes: changes, durable: Int64(journalHead.count)))
    }
    try fileSystem.replaceFile(at: journalPath) { try $0.write(lines) }
    let log = try AppendLog(continuing: fileSystem.open(journalPath, .readWrite), at: Int64(lines.count))
    journal = log
    return log
  }

  /// Makes every batch so far durable, and folds the journal where it has grown large.
  ///
  /// - Throws: ``StoreError``.
  mutating func synchronize() throws {
    guard journal != nil else { return }
    try configuration.reportingFileErrors(
      during: .synchronize, message: "\(journalPath) could not be made durable", outcome: .unknown
    ) {
      var log = try usableJournal()
      defer { journal = log }
      try log.synchronize()
    }
    if journalSize >= max(FoldThreshold.synchronize, documentSize / 4) {
      try fold(during: .synchronize)
    }
  }

  /// Folds the journal where a write has made it as large as the document.
  ///
  /// A failure is not reported: the write is safe in the journal. It is tried again when the journal has doubled, and
  /// `synchronize` and `close` report what they meet.
  mutating func foldIfDue() {
    guard journalSize >= foldSize else { return }
    do {
      try fold(during: .apply)
    } catch {
      foldSize = 2 * journalSize
    }
  }

  /// The bytes of the journal behind its head.
  private var journalSize: Int64 {
    journal.map { $0.size - Int64(journalHead.count) } ?? 0
  }

  /// Writes the document anew and empties the journal.
  ///
  /// - Throws: ``StoreError``.
  mutating func fold(during operation: StoreOperation) throws {
    try configuration.reportingFileErrors(during: operation, message: "the document \(path) could not be written") {
      guard journal != nil else { return }
      try configuration.check(opened, during: operation)
      var log = try usableJournal()
      defer { journal = log }
      try log.synchronize()

      let attributes = try fileSystem.attributes(at: path)
      if let documentState, attributes.map(DocumentState.init) != documentState {
        throw configuration.error(
          .conflict, during: operation,
          "\(path) was changed by someone else while it was open, and is left so; the changes of this store are in \(journalPath), and opening it again brings both together"
        )
      }
      documentState = nil
      var size: Int64 = 0
      try fileSystem.replaceFile(at: path, like: attributes) { writer in
        try JSONDocument(codecName: codecName, entries: contents.snapshot).write { try writer.write($0) }
        size = writer.count
      }
      documentState = try fileSystem.attributes(at: path).map(DocumentState.init)
      documentSize = size
      foldSize = max(FoldThreshold.write, documentSize)
      try log.truncate(to: Int64(journalHead.count))
    }
  }

  private mutating func removeJournal() throws {
    guard let log = journal else { return }
    journal = nil
    try log.close()
    try fileSystem.removeFile(at: journalPath)
    try fileSystem.synchronizeDirectory(at: FilePaths.split(journalPath).directory)
  }

  // MARK: Closing and maintenance

  /// Folds the journal, so that the document alone holds everything, and gives the lock back.
  ///
  /// - Throws: ``StoreError``; the lock is given back all the same, and what could not be folded stays in the journal.
  mutating func close() throws {
    try configuration.reportingFileErrors(during: .close, message: "the store could not be closed cleanly") {
      let folding = Result {
        if journalSize > 0 || journal?.failure != nil { try fold(during: .close) }
        if journal != nil { try configuration.check(opened, during: .close) }
        try removeJournal()
      }
      contents.close()
      try lock?.release()
      try folding.get()
    }
  }

  /// The bytes of the document and of the journal.
  func sizes() -> (document: Int64, journal: Int64) {
    (documentSize, journal?.size ?? 0)
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
      try fileSystem.replaceFile(at: destination) { writer in
        try JSONDocument(codecName: codecName, entries: contents.snapshot).write { try writer.write($0) }
      }
    }
  }

  /// Reads everything anew from the disk.
  ///
  /// - Returns: What the document holds, and that with the journal applied.
  /// - Throws: ``StoreError``: `corrupted` and the like where it cannot be read as a store.
  func reread() throws -> (document: JSONDocument, text: [UInt8], entries: SortedMap<ArraySlice<UInt8>>) {
    try configuration.reportingFileErrors(during: .verify, message: "the store could not be read") {
      let text = try read(path, .read, during: .verify)
      let document = try parse(text, during: .verify)
      var entries = document.entries
      if journal != nil {
        let content = try parseJournal(try read(journalPath, .read, during: .verify), during: .verify)
        var displaced: [ArraySlice<UInt8>] = []
        for change in content.batches.joined() {
          entries.apply(change, displacing: &displaced)
        }
      }
      return (document, text, entries)
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
