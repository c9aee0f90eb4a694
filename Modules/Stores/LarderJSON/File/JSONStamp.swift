import Larder
import LarderFiles

/// The member `written` of a document: checksums of the bytes that Larder wrote, and the identity of the file.
///
/// ```
/// "written":{"bytes":5120,"blockBytes":4096,"crc32c":["9ae0daaf","28a40537"],"inode":131,"time":1790000000}
/// ```
///
/// There is one checksum for each block of `blockBytes` bytes in the first `bytes` bytes of the file. The last block
/// may be shorter, and the member itself comes after these bytes. While the file has the inode and the modification
/// time in the stamp, its bytes must match the checksums. A file with a different inode or time was copied or edited by
/// hand, and is accepted without a check.
struct JSONStamp: Sendable, Hashable {
  /// The number of bytes of the file that the checksums cover.
  private(set) var size: Int64

  private let blockSize: Int
  private(set) var checksums: [UInt32]
  /// The bytes after the last complete block, while the document is written.
  private var rest: [UInt8] = []
  private let inode: UInt64
  /// The modification time in whole seconds since 1970, which every file system stores.
  private let time: Int64

  /// Creates the stamp of a new file, without checksums.
  ///
  /// - Parameters:
  ///   - attributes: The attributes of the new file.
  ///   - expectedSize: The approximate number of bytes that will be added.
  init(of attributes: FileAttributes, expectedSize: Int64) {
    size = 0
    checksums = []
    // Small blocks limit the extent of damage, but a large document must not end with megabytes of checksums.
    blockSize = expectedSize < 16 << 20 ? 4 << 10 : 64 << 10
    inode = attributes.identity.inode
    // Rounded up, so that programs that look for files changed since their last visit do not miss this one.
    let (seconds, rest) = attributes.modificationTime.quotientAndRemainder(dividingBy: JSONStamp.second)
    time = rest > 0 ? seconds + 1 : seconds
  }

  private static let second: Int64 = 1_000_000_000

  /// The modification time that the file must get, in nanoseconds since 1970.
  var modificationTime: Int64 { time.multipliedReportingOverflow(by: JSONStamp.second).partialValue }

  /// Returns whether the attributes of a file match the stamp.
  func isStamp(of attributes: FileAttributes) -> Bool {
    attributes.identity.inode == inode && attributes.modificationTime == modificationTime
  }

  // MARK: Checksums

  /// Adds bytes of the document, and the checksums of all complete blocks.
  mutating func add(_ bytes: [UInt8]) {
    rest += bytes
    var start = 0
    while rest.count - start >= blockSize {
      append(rest[start..<start + blockSize])
      start += blockSize
    }
    rest.removeFirst(start)
  }

  /// Adds the checksum of the last block.
  mutating func finish() {
    guard !rest.isEmpty else { return }
    append(rest[...])
    rest = []
  }

  private mutating func append(_ block: ArraySlice<UInt8>) {
    checksums.append(CRC32C.checksum(of: block))
    size += Int64(block.count)
  }

  /// Returns the ranges of a text that do not match the checksums.
  func damagedRanges(of text: [UInt8]) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    for (index, checksum) in checksums.enumerated() {
      let start = min(index * blockSize, text.count)
      let block = start..<min(start + blockSize, Int(size), text.count)
      let isWhole = block.count == min(blockSize, Int(size) - index * blockSize)
      if !isWhole || CRC32C.checksum(of: text[block]) != checksum { ranges.append(block) }
    }
    return ranges
  }

  /// The checksum of the checksums in hexadecimal, by which a journal identifies the document that it continues.
  var digest: String {
    Hexadecimal.text(of: CRC32C.checksum(of: checksums.flatMap { Hexadecimal.text(of: $0).utf8 }))
  }

  // MARK: Text

  /// The JSON text of the stamp.
  var text: [UInt8] {
    let checksums = checksums.map { "\"\(Hexadecimal.text(of: $0))\"" }.joined(separator: ",")
    return Array(
      "{\"bytes\":\(size),\"blockBytes\":\(blockSize),\"crc32c\":[\(checksums)],\"inode\":\(inode),\"time\":\(time)}"
        .utf8)
  }

  /// Parses the JSON text of a stamp.
  ///
  /// - Throws: ``JSONSyntaxError``.
  init(from scanner: inout JSONScanner) throws {
    let place = scanner.position
    var numbers: [String: Int64] = [:]
    var inode: UInt64?
    var checksums: [UInt32] = []
    try scanner.forEachMember { _, name, scanner in
      switch String(decoding: name, as: UTF8.self) {
      case "crc32c":
        try scanner.forEachElement { scanner in
          guard let checksum: UInt32 = Hexadecimal.number(of: try scanner.string()) else {
            throw scanner.error("a checksum must have eight hexadecimal digits")
          }
          checksums.append(checksum)
        }
      case "inode": inode = UInt64(String(decoding: try scanner.value(), as: UTF8.self))
      case let name: numbers[name] = Int64(String(decoding: try scanner.value(), as: UTF8.self))
      }
    }
    guard let size = numbers["bytes"], let blockSize = numbers["blockBytes"], let time = numbers["time"], let inode,
      size >= 0, (512...1 << 30).contains(blockSize),
      checksums.count == (size / blockSize) + (size % blockSize > 0 ? 1 : 0)
    else { throw scanner.error("the member \"written\" is invalid; remove it if you changed it", at: place) }
    self.size = size
    self.blockSize = Int(blockSize)
    self.checksums = checksums
    self.inode = inode
    self.time = time
  }
}
