import Larder
import LarderFiles

/// Methods that read the document and the journal, and describe their damage.
extension JSONFile {
  /// The beginning of each document written by Larder.
  static let beginning = Array("{\"larder\":".utf8)

  /// A document that was read.
  struct Loaded {
    var document: JSONDocument
    var attributes: FileAttributes
    var text: [UInt8]
    var holes: [KeyRange] = []
    var damages: [VerificationReport.Finding] = []
  }

  /// Reads a document.
  ///
  /// If it is damaged and the store does not write, reads the undamaged part.
  func load(_ file: any OpenStoreFile, during operation: StoreOperation) throws -> Loaded {
    let attributes = try file.attributes()
    try checkSize(attributes.size, of: path, during: operation)
    do {
      let text = try file.readText(size: attributes.size)
      return Loaded(document: try parse(text, attributes, during: operation), attributes: attributes, text: text)
    } catch  where JSONFile.isDamage(error) && (!isWritable || operation == .verify) {
      guard try file.readAll(from: 0, upTo: 64).starts(with: JSONFile.beginning) else { throw error }
      let text = try file.readText(size: attributes.size, isDamaged: true)
      guard let remains = JSONRemains(of: text, attributes) else { throw error }
      let damages = remains.damages.map {
        VerificationReport.Finding(key: nil, place: "\(path), line \($0.line)", message: $0.message)
      }
      return Loaded(
        document: remains.document, attributes: attributes, text: text, holes: remains.holes, damages: damages)
    }
  }

  static func isDamage(_ error: any Error) -> Bool {
    (error as? StoreError)?.code == .corrupted || (error as? FileError)?.isDiskFailure == true
  }

  func checkSize(_ size: Int64, of path: String, during operation: StoreOperation) throws {
    guard size <= sizeLimit else {
      throw configuration.error(
        .unsupported, during: operation,
        "\(path) has \(size) bytes, more than the limit of \(sizeLimit)")
    }
  }

  func parse(
    _ text: [UInt8], _ attributes: FileAttributes, during operation: StoreOperation
  ) throws -> JSONDocument {
    do {
      return try JSONDocument(text, of: attributes)
    } catch JSONDocument.Problem.damaged(let error, let key) {
      throw configuration.error(
        .corrupted, during: operation, key: key, "\(path) is damaged at \(error); it was left unchanged",
        underlying: error)
    } catch JSONDocument.Problem.foreign {
      throw configuration.error(
        .unrecognizedFormat, during: operation,
        "\(path) is JSON but not a store: expected an object with the members \"larder\" and \"entries\"")
    } catch JSONDocument.Problem.otherVersion(let version) {
      throw configuration.error(
        .versionMismatch, during: operation,
        "\(path) has format version \(version), but this program reads version \(JSONDocument.version); "
          + (version == "1" ? "change it to 2 if you wrote it by hand" : "use the program that wrote it"))
    }
  }

  func readJournal(
    _ file: any OpenStoreFile, during operation: StoreOperation
  ) throws -> (content: JSONJournal, text: [UInt8]) {
    let size = try file.attributes().size
    try checkSize(size, of: journalPath, during: operation)
    let text = try file.readText(size: size)
    do {
      return (try JSONJournal(text), text)
    } catch JSONJournal.Problem.damaged(let line, let reason) {
      throw configuration.error(
        .corrupted, during: operation, "\(journalPath) is damaged at line \(line): \(reason); it was left unchanged")
    } catch JSONJournal.Problem.otherVersion(let version) {
      throw configuration.error(
        .versionMismatch, during: operation,
        "\(journalPath) has format version \(version), but this program reads version \(JSONJournalLine.version)"
      )
    }
  }
}

extension OpenStoreFile {
  /// Reads the text of a file, up to and including the piece of 1 MiB with its first NUL.
  ///
  /// JSON text contains no NUL. A file that is large only because it is sparse therefore takes no memory.
  ///
  /// - Parameters:
  ///   - size: The size of the file, which the caller has bounded.
  ///   - isDamaged: A Boolean value that indicates whether to return NUL in place of unreadable bytes. The text then
  ///     ends only after 16 MiB of nothing but NUL. Defaults to `false`.
  /// - Throws: ``FileError``.
  func readText(size: Int64, isDamaged: Bool = false) throws(FileError) -> [UInt8] {
    var text: [UInt8] = []
    var emptyPieceCount = 0
    while text.count < size, emptyPieceCount < 16 {
      let start = Int64(text.count)
      let end = min(start + 1 << 20, size)
      let piece = isDamaged ? try readable(from: start, upTo: end).bytes : try readAll(from: start, upTo: end)
      if text.isEmpty, !piece.contains(0) { text.reserveCapacity(Int(size)) }
      text += piece
      if piece.isEmpty || !isDamaged && piece.contains(0) { break }
      emptyPieceCount = piece.contains { $0 != 0 } ? 0 : emptyPieceCount + 1
    }
    return text
  }
}
