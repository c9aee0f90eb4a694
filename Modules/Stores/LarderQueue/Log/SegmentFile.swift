import Larder
import LarderFiles

/// A file of the log that is open, with what its header says.
struct SegmentFile: Sendable {
  let header: SegmentHeader
  /// The bytes of the header.
  let headerLength: Int64
  let file: any OpenFile
  /// The attributes of the file when it was opened.
  let attributes: FileAttributes
  let path: String

  /// The bytes of the file when it was opened.
  var size: Int64 { attributes.size }

  /// Opens a segment and checks its header.
  ///
  /// - Throws: ``StoreError``; `FileError`.
  init(_ number: UInt32, in folder: QueueFolder, _ mode: FileOpenMode, during operation: StoreOperation) throws {
    path = folder.segmentPath(number)
    file = try folder.fileSystem.open(path, mode)
    attributes = try file.attributes()
    try folder.checkKind(attributes, of: path, isWritten: mode != .read)
    let start = try file.readAll(from: 0, upTo: min(attributes.size, Int64(SegmentHeader.maximumLength)))
    do {
      let (header, length) = try SegmentHeader.read(start)
      (self.header, headerLength) = (header, Int64(length))
    } catch .foreign {
      throw folder.error(.unrecognizedFormat, during: operation, "\(path) is no file of a queue; it was left as it is")
    } catch .newerVersion(let version) {
      throw folder.error(
        .versionMismatch, during: operation,
        "\(path) is in version \(version) of the format, and this program knows up to \(SegmentHeader.version); use a newer one"
      )
    } catch .damaged {
      throw folder.error(
        .corrupted, during: operation,
        "the header of \(path) is damaged; it was left as it is. Move the file elsewhere to go on without what is in it"
      )
    }
    guard header.number == number else {
      throw folder.error(
        .corrupted, during: operation, "\(path) is segment \(header.number) under another name; it was left as it is")
    }
  }

  /// A scanner of the frames up to a place.
  func scanner(upTo end: Int64) -> SegmentScanner {
    let file = file
    return SegmentScanner(
      headerLength..<max(headerLength, end), firstNumber: header.firstFrame, salt: header.salt, version: header.version
    ) { range throws(FileError) in try file.readable(from: range.lowerBound, upTo: range.upperBound).bytes }
  }
}
