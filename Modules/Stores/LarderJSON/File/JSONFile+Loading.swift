import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Reading the document and the journal, and saying what is wrong with them.
extension JSONFile {
  /// How each document begins that Larder wrote.
  static let beginning = Array("{\"larder\":".utf8)

  /// A document as it was read.
  struct Loaded {
    var document: JSONDocument
    var attributes: FileAttributes
    var text: [UInt8]
    var holes: [KeyRange] = []
    var damages: [VerificationReport.Finding] = []
  }

  /// Reads a document; if it is damaged and the store is not going to write, what can be read of it.
  func load(_ file: any OpenFile, during operation: StoreOperation) throws -> Loaded {
    let attributes = try file.attributes()
    try checkSize(attributes.size, of: path, during: operation)
    do {
      let text = try file.readText(size: attributes.size)
      return Loaded(document: try parse(text, attributes, during: operation), attributes: attributes, text: text)
    } catch  where JSONFile.isDamage(error) && (!isWritable || operation == .verify) {
      guard try file.readAll(from: 0, upTo: 64).starts(with: JSONFile.beginning) else { throw error }
      let text = try file.readDamagedText(size: attributes.size)
      guard let remains = JSONRemains(of: text, attributes) else { throw error }
      let damages = remains.damages.map {
        VerificationReport.Finding(key: nil, place: "\(path), line \($0.line)", message: $0.message)
      }
      return Loaded(
        document: remains.document, attributes: attributes, text: text, holes: remains.holes, damages: damages)
    }
  }

  static func isDamage(_ error: any Error) -> Bool {
    (error as? StoreError)?.code == .corrupted || (error as? FileError)?.errorNumber == EIO
  }

  func checkSize(_ size: Int64, of path: String, during operation: StoreOperation) throws {
    guard size <= sizeLimit else {
      throw configuration.error(
        .unsupported, during: operation,
        "\(path) has \(size) bytes, more than the \(sizeLimit) that a store in memory can have")
    }
  }

  func parse(
    _ text: [UInt8], _ attributes: FileAttributes, during operation: StoreOperation
  ) throws -> JSONDocument {
    do {
      return try JSONDocument(text, of: attributes)
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

  func readJournal(
    _ file: any OpenFile, during operation: StoreOperation
  ) throws -> (content: JSONJournal, text: [UInt8]) {
    let size = try file.attributes().size
    try checkSize(size, of: journalPath, during: operation)
    let text = try file.readText(size: size)
    do {
      return (try JSONJournal(text), text)
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
}
