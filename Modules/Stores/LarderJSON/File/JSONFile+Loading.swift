import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

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
    } catch JSONDocument.Problem.newerVersion(let version) {
      throw configuration.error(
        .versionMismatch, during: operation,
        "\(path) has format version \(version); only versions up to \(JSONDocument.version) are supported; "
          + "use a newer program")
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
        .corrupted, during: operation, "\(journalPath) is damaged at line \(line): \(reason); it was left unchanged")
    } catch JSONJournal.Problem.newerVersion(let version) {
      throw configuration.error(
        .versionMismatch, during: operation,
        "\(journalPath) has format version \(version); only versions up to \(JSONJournalLine.version) are supported"
      )
    }
  }
}

/// Methods that read whole text files.
extension OpenFile {
  /// Reads the text of a file, up to and including the block with its first NUL.
  ///
  /// JSON text contains no NUL. A file that is large only because it is sparse therefore takes no memory.
  ///
  /// - Parameter size: The size of the file, which the caller has bounded.
  /// - Throws: ``FileError``.
  func readText(size: Int64) throws(FileError) -> [UInt8] {
    let head = try readAll(from: 0, upTo: min(size, JSONFileText.pieceSize))
    guard size > JSONFileText.pieceSize, !head.contains(0) else { return head }
    return try JSONFileText.bytes(size: size) { (place, buffer) throws(FileError) in
      let count = try read(into: buffer, at: place)
      return (count, buffer[..<count].contains(0))
    }
  }

  /// Reads the text of a partly unreadable file, with NUL in place of unreadable bytes.
  ///
  /// The text ends after 16 MiB of nothing but NUL, as in a sparse file.
  ///
  /// - Parameter size: The size of the file, which the caller has bounded.
  /// - Throws: ``FileError`` for any failure other than an unreadable part of the disk.
  func readDamagedText(size: Int64) throws(FileError) -> [UInt8] {
    guard size > 0 else { return [] }
    var emptyPages = 0
    return try JSONFileText.bytes(size: size) { (place, buffer) throws(FileError) in
      // Read page by page, because an unreadable page makes a longer read fail.
      let page = UnsafeMutableRawBufferPointer(
        rebasing: buffer.prefix(JSONFileText.pageSize - Int(place % Int64(JSONFileText.pageSize))))
      do throws(FileError) {
        let count = try read(into: page, at: place)
        emptyPages = page[..<count].contains { $0 != 0 } ? 0 : emptyPages + 1
        return (count, emptyPages == JSONFileText.mostEmptyPages)
      } catch {
        guard error.errorNumber == EIO else { throw error }
        page.initializeMemory(as: UInt8.self, repeating: 0)
        return (page.count, false)
      }
    }
  }
}

private enum JSONFileText {
  static let pieceSize: Int64 = 1 << 20
  static let pageSize = 4 << 10
  static let mostEmptyPages = 4 << 10

  /// Returns the bytes that a closure reads block by block, until it reads nothing or reports that it is done.
  ///
  /// - Parameter read: A closure that receives the offset in the file and a buffer for the next bytes, and returns
  ///   their number.
  static func bytes(
    size: Int64, _ read: (Int64, UnsafeMutableRawBufferPointer) throws(FileError) -> (count: Int, isDone: Bool)
  ) throws(FileError) -> [UInt8] {
    var failure: FileError?
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
      while count < buffer.count {
        let end = min(count + Int(pieceSize), buffer.count)
        let room = UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[count..<end]))
        do throws(FileError) {
          let piece = try read(Int64(count), room)
          count += piece.count
          if piece.count == 0 || piece.isDone { return }
        } catch {
          guard error.errorNumber != EINTR else { continue }
          failure = error
          return
        }
      }
    }
    if let failure { throw failure }
    return bytes
  }
}
