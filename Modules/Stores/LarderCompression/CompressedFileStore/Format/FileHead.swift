#if Compression
import Larder

/// The first line of a file: what it is.
///
/// ```
/// {"larder":2,"format":"compressed","codec":"json","salt":"0f1e2d3c4b5a6978","after":7,"base":true}
/// ```
///
/// All of it is repeated in the mark of the end, and most of it with the notes, so that it is known even if the first
/// page of the file is lost.
struct FileHead: Equatable, Sendable {
  /// The name of the codec of the values.
  var codecName: String
  /// What tells the blocks of this file from any other bytes.
  var salt: UInt64
  /// The last batch before the file was written anew, whose entries the base has; 0 in a new file.
  var batch: UInt64 = 0
  /// Whether a base follows.
  var hasBase = false

  /// Why a line is no head.
  enum Problem: Error {
    case malformed
    /// A newer version of Larder wrote it.
    case newerVersion(Int)
  }

  /// Makes the head of a new file.
  init(codecName: String, salt: UInt64 = .random(in: 1 ... .max), batch: UInt64 = 0, hasBase: Bool = false) {
    self.codecName = codecName
    self.salt = salt
    self.batch = batch
    self.hasBase = hasBase
  }

  /// The members that are repeated with the notes.
  var identity: [UInt8] {
    var bytes = Array("\"larder\":\(StoreLine.version),\"format\":\"compressed\",\"codec\":".utf8)
    JSONWriting.append(string: codecName.utf8, to: &bytes)
    let salt = withUnsafeBytes(of: salt.bigEndian) { Hexadecimal.text(of: Array($0)) }
    bytes.append(contentsOf: ",\"salt\":\"\(salt)\"".utf8)
    return bytes
  }

  private var members: [UInt8] {
    var bytes = identity
    if batch > 0 { bytes.append(contentsOf: ",\"after\":\(batch)".utf8) }
    if hasBase { bytes.append(contentsOf: ",\"base\":true".utf8) }
    return bytes
  }

  /// The line, with its line end.
  var line: [UInt8] { [UInt8(ascii: "{")] + members + Array("}\n".utf8) }

  /// The line of the mark of the end, with its line end, which has the members of the head, too.
  func line(of mark: EndMark) -> [UInt8] {
    let text = mark.beginning
    let spaces = [UInt8](repeating: UInt8(ascii: " "), count: max(0, EndMark.maximumSize - text.count))
    return text + members + [UInt8(ascii: "}")] + spaces + [UInt8(ascii: "\n")]
  }

  /// The block of the head.
  var block: [UInt8] { BlockComposer.storedBlock(line, salt: salt, at: 0) }

  /// Where the block of the mark of the end begins.
  var markOffset: Int64 { Int64(line.count + BlockComposer.storedOverhead) }

  /// The block of the mark of the end.
  func block(of mark: EndMark) -> [UInt8] {
    BlockComposer.storedBlock(line(of: mark), salt: salt, at: markOffset)
  }

  /// Where the blocks behind the head and the mark of the end begin.
  var end: Int64 { markOffset + Int64(line(of: .open).count + BlockComposer.storedOverhead) }

  /// Reads a line that has the members of a head, and possibly others.
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
        case "salt":
          let bytes = Hexadecimal.bytes(of: try scanner.string())
          salt = bytes.flatMap { $0.count == 8 ? $0.reduce(0) { $0 << 8 | UInt64($1) } : nil }
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

/// The second line of a file, in a block of its own that is written anew in its place: whether the file was closed, and
/// where it ends.
///
/// ```
/// {"end":null,"larder":2,…}
/// {"end":4711,"batch":12,"size":8500,"larder":2,…}
/// ```
///
/// Behind it stand spaces, so that all forms are equally long. The members of the head are repeated in it.
enum EndMark: Equatable, Sendable {
  /// The file is being written to, or its writer has died.
  case open
  /// All batches are durable, the last one is `batch`, they end at `end`, and the file has `size` bytes.
  case closed(end: Int64, batch: UInt64, size: Int64)

  /// The most bytes that it has before the members of the head.
  static let maximumSize = 80

  /// What the line begins with, before the members of the head.
  var beginning: [UInt8] {
    switch self {
    case .open: Array("{\"end\":null,".utf8)
    case .closed(let end, let batch, let size): Array("{\"end\":\(end),\"batch\":\(batch),\"size\":\(size),".utf8)
    }
  }

  /// Reads the line that a text is; `nil` if it is no such line.
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
