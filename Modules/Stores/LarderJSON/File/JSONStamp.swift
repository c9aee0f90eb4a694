import Larder
import LarderFiles

/// The member `written` of a document: the checksums of what Larder wrote, and the file to which it wrote it.
///
/// ```
/// "written":{"bytes":5120,"blockBytes":4096,"crc32c":["9ae0daaf","28a40537"],"inode":131,"time":1790000000}
/// ```
///
/// The checksums are those of each block of `blockBytes` bytes, the last one shorter, of the first `bytes` bytes of the
/// file; the member itself lies behind them. As long as the file still has the inode and the modification time that
/// the stamp names, its bytes must match. A file with another inode or time is a copy or was edited by hand, and
/// is taken as it is.
struct JSONStamp: Sendable, Hashable {
  /// How many bytes of the file the checksums cover.
  private(set) var size: Int64

  private let blockSize: Int
  private(set) var checksums: [UInt32]
  private let inode: UInt64
  /// In seconds since 1970: whole ones, which every file system keeps.
  private let time: Int64

  /// Creates the stamp of a new file, to which bytes are then added.
  ///
  /// - Parameters:
  ///   - attributes: Those of the new file.
  ///   - expectedSize: About how many bytes are added.
  init(of attributes: FileAttributes, expectedSize: Int64) {
    size = 0
    checksums = []
    // Small blocks keep damage apart; a large document must not end in megabytes of checksums.
    blockSize = expectedSize < 16 << 20 ? 4 << 10 : 64 << 10
    inode = attributes.identity.inode
    // Up, so that no program which looks for files that are newer than its last visit misses this one.
    let (seconds, rest) = attributes.modificationTime.quotientAndRemainder(dividingBy: JSONStamp.second)
    time = rest > 0 ? seconds + 1 : seconds
  }

  private static let second: Int64 = 1_000_000_000

  /// The modification time that the file must get, in nanoseconds since 1970.
  var modificationTime: Int64 { time.multipliedReportingOverflow(by: JSONStamp.second).partialValue }

  /// Whether a file is still the one that was stamped, as far as its attributes tell.
  func isStamp(of attributes: FileAttributes) -> Bool {
    attributes.identity.inode == inode && attributes.modificationTime == modificationTime
  }

  // MARK: Checksums

  /// Bytes of a document on their way to a stamp.
  struct Block {
    private var bytes: [UInt8] = []

    /// Adds bytes, and stamps each block that is complete.
    mutating func add(_ piece: some Collection<UInt8>, to stamp: inout JSONStamp) {
      bytes.append(contentsOf: piece)
      var start = 0
      while bytes.count - start >= stamp.blockSize {
        stamp.append(bytes[start..<start + stamp.blockSize])
        start += stamp.blockSize
      }
      bytes.removeFirst(start)
    }

    /// Stamps what is left.
    mutating func finish(_ stamp: inout JSONStamp) {
      guard !bytes.isEmpty else { return }
      stamp.append(bytes[...])
      bytes.removeAll()
    }
  }

  private mutating func append(_ block: ArraySlice<UInt8>) {
    checksums.append(CRC32C.checksum(of: block))
    size += Int64(block.count)
  }

  /// The parts of a text whose bytes are not the ones that were stamped.
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

  /// The checksum of the checksums, in hexadecimal, by which a journal names the document that it continues.
  var digest: String {
    JSONStamp.text(of: CRC32C.checksum(of: checksums.flatMap { JSONStamp.text(of: $0).utf8 }))
  }

  /// A checksum in eight hexadecimal digits.
  static func text(of checksum: UInt32) -> String {
    withUnsafeBytes(of: checksum.bigEndian) { Hexadecimal.text(of: $0) }
  }

  /// The checksum that eight hexadecimal digits stand for.
  static func checksum(of text: [UInt8]) -> UInt32? {
    guard text.count == 8, let bytes = Hexadecimal.bytes(of: text) else { return nil }
    return bytes.reduce(0) { $0 << 8 | UInt32($1) }
  }

  // MARK: Text

  /// The value of the member.
  var text: [UInt8] {
    let checksums = checksums.map { "\"\(JSONStamp.text(of: $0))\"" }.joined(separator: ",")
    return Array(
      "{\"bytes\":\(size),\"blockBytes\":\(blockSize),\"crc32c\":[\(checksums)],\"inode\":\(inode),\"time\":\(time)}"
        .utf8)
  }

  /// Reads the value of the member.
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
        try scanner.expect(UInt8(ascii: "["))
        guard !scanner.skip(UInt8(ascii: "]")) else { return }
        repeat {
          guard let checksum = JSONStamp.checksum(of: try scanner.string()) else {
            throw scanner.error("a checksum has eight hexadecimal digits")
          }
          checksums.append(checksum)
        } while scanner.skip(UInt8(ascii: ","))
        try scanner.expect(UInt8(ascii: "]"))
      case "inode": inode = UInt64(String(decoding: try scanner.value(), as: UTF8.self))
      case let name: numbers[name] = Int64(String(decoding: try scanner.value(), as: UTF8.self))
      }
    }
    guard let size = numbers["bytes"], let blockSize = numbers["blockBytes"], let time = numbers["time"], let inode,
      size >= 0, (512...1 << 30).contains(blockSize),
      checksums.count == (size / blockSize) + (size % blockSize > 0 ? 1 : 0)
    else { throw scanner.error("the member \"written\" makes no sense; remove it if you changed it", at: place) }
    self.size = size
    self.blockSize = Int(blockSize)
    self.checksums = checksums
    self.inode = inode
    self.time = time
  }
}
