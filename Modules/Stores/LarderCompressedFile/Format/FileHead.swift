#if Compression
import Larder

/// The header of a file, its first line.
///
/// ```
/// {"larder":2,"format":"compressed","codec":"json","salt":"0f1e2d3c4b5a6978","after":7,"base":true}
/// ```
///
/// The end mark repeats all of it, and the notes repeat most of it, so it is known even if the first page of the file
/// is lost.
struct FileHead: Equatable, Sendable {
  /// The name of the codec of the values.
  var codecName: String
  /// A random number that distinguishes the blocks of this file from any other bytes.
  var salt = UInt64.random(in: 1 ... .max)
  /// The last batch before the file was rewritten, which the base includes; 0 in a new file.
  var batch: UInt64 = 0
  /// A Boolean value that indicates whether a base follows.
  var hasBase = false

  /// The reason why a line is not a header.
  enum Problem: Error {
    case malformed
    /// A newer version of Larder wrote the file.
    case newerVersion(Int)
  }

  /// The members that the notes repeat.
  var identity: [UInt8] {
    var bytes = Array("\"larder\":\(StoreLine.version),\"format\":\"compressed\",\"codec\":".utf8)
    JSONText.append(string: codecName.utf8, to: &bytes)
    bytes.append(contentsOf: ",\"salt\":\"\(Hexadecimal.text(of: salt))\"".utf8)
    return bytes
  }

  private var members: [UInt8] {
    var bytes = identity
    if batch > 0 { bytes.append(contentsOf: ",\"after\":\(batch)".utf8) }
    if hasBase { bytes.append(contentsOf: ",\"base\":true".utf8) }
    return bytes
  }

  /// The line, including its newline.
  var line: [UInt8] { [UInt8(ascii: "{")] + members + Array("}\n".utf8) }

  /// Returns the line of the end mark, which repeats the members of the header, including its newline.
  func line(of mark: EndMark) -> [UInt8] {
    let text = mark.beginning
    let spaces = [UInt8](repeating: UInt8(ascii: " "), count: max(0, EndMark.maximumSize - text.count))
    return text + members + [UInt8(ascii: "}")] + spaces + [UInt8(ascii: "\n")]
  }

  /// The block of the header.
  var block: [UInt8] { BlockComposer.storedBlock(line, salt: salt, at: 0) }

  /// The offset of the block of the end mark.
  var markOffset: Int64 { Int64(line.count + BlockComposer.storedOverhead) }

  /// Returns the block of the end mark.
  func block(of mark: EndMark) -> [UInt8] {
    BlockComposer.storedBlock(line(of: mark), salt: salt, at: markOffset)
  }

  /// The offset of the first block after the header and the end mark.
  var end: Int64 { markOffset + Int64(line(of: .open).count + BlockComposer.storedOverhead) }
}

extension FileHead {
  /// Reads a line that has the members of a header, and possibly others.
  ///
  /// - Throws: ``Problem``.
  init(readingLine line: ArraySlice<UInt8>) throws(Problem) {
    var version: Int?
    var codecName: String?
    var salt: UInt64?
    var batch: UInt64 = 0
    var hasBase = false
    do {
      var scanner = JSONScanner(line)
      try scanner.forEachMember { _, name, scanner in
        switch String(decoding: name, as: UTF8.self) {
        case "larder": version = Int(String(decoding: try scanner.value(), as: UTF8.self))
        case "codec": codecName = String(decoding: try scanner.string(), as: UTF8.self)
        case "salt": salt = Hexadecimal.number(of: try scanner.string())
        case "after": batch = UInt64(String(decoding: try scanner.value(), as: UTF8.self)) ?? .max
        case "base": hasBase = try scanner.value().elementsEqual("true".utf8)
        default: _ = try scanner.value()
        }
      }
    } catch {
      throw .malformed
    }
    guard let version else { throw .malformed }
    guard version <= StoreLine.version else { throw .newerVersion(version) }
    guard version == StoreLine.version, let codecName, let salt, batch <= BlockStart.maximumBatch else {
      throw .malformed
    }
    self.init(codecName: codecName, salt: salt, batch: batch, hasBase: hasBase)
  }
}

/// The end mark: the second line of a file that says whether the file was closed and where it ends.
///
/// ```
/// {"end":null,"larder":2,…}
/// {"end":4711,"batch":12,"size":8500,"larder":2,…}
/// ```
///
/// It has a block of its own, which is overwritten in place, so it is padded with spaces to a fixed length. It repeats
/// the members of the header.
enum EndMark: Equatable, Sendable {
  /// The file is open for writing, or its writer has crashed.
  case open
  /// The file was closed. All batches are durable. The last one is `batch` and ends at `end`, and the file has `size`
  /// bytes.
  case closed(end: Int64, batch: UInt64, size: Int64)

  /// The maximum number of bytes before the members of the header.
  static let maximumSize = 80

  /// The beginning of the line, before the members of the header.
  var beginning: [UInt8] {
    switch self {
    case .open: Array("{\"end\":null,".utf8)
    case .closed(let end, let batch, let size): Array("{\"end\":\(end),\"batch\":\(batch),\"size\":\(size),".utf8)
    }
  }

  /// Reads the line of an end mark, or returns `nil` if the text is not one.
  init?(reading text: [UInt8]) {
    var reader = FixedReader(text)
    if reader.skip("{\"end\":null,") {
      self = .open
      return
    }
    guard reader.skip("{\"end\":"), let end = reader.number(), reader.skip(",\"batch\":"), let batch = reader.number(),
      reader.skip(",\"size\":"), let size = reader.number(), reader.skip(","),
      end <= size, batch <= BlockStart.maximumBatch
    else { return nil }
    self = .closed(end: Int64(end), batch: batch, size: Int64(size))
  }
}
#endif
