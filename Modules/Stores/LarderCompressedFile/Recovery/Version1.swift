#if Compression
import Larder
import LarderCompression

/// The header of a block in version 1 of the format; see "The format of compressed files".
struct Version1Header {
  /// The purpose of a block.
  enum Kind: UInt8 {
    case head, base, batch
  }

  private static let fixedStart: [UInt8] = [0x1F, 0x8B, 0x08, 0x04, 0, 0, 0, 0, 0, 0xFF]
  private static let sizeSubfield: [UInt8] = [UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]
  private static let ownSubfield: [UInt8] = [UInt8(ascii: "L"), UInt8(ascii: "D")]

  /// The size of a header without notes, and of the checksum at its end, in bytes.
  private static let minimumSize = 53
  private static let checksumSize = 4

  let kind: Kind
  /// A Boolean value that indicates whether the block is the last one of its batch or base, or a head that no base
  /// follows.
  let isLast: Bool
  /// A Boolean value that indicates whether the text begins within a line.
  let isContinuation: Bool
  let batch: UInt64
  let durableBatch: UInt64
  let number: UInt32

  /// The size of the whole block, in bytes.
  let blockSize: Int
  private let size: Int
  private let bodyChecksum: UInt32

  /// Returns whether bytes may begin a file of version 1.
  static func isBeginning(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count >= minimumSize && bytes.starts(with: fixedStart) && bytes[12...].starts(with: sizeSubfield)
      && bytes[18...].starts(with: ownSubfield)
  }

  /// Reads a header, or returns `nil` if the bytes do not begin with an intact one.
  ///
  /// - Throws: ``FileProblem/newerVersion(_:)``.
  init?(_ bytes: UnsafeRawBufferPointer) throws(FileProblem) {
    guard Version1Header.isBeginning(bytes) else { return nil }
    size = 12 + Int(bytes.littleEndian(at: 10, as: UInt16.self))
    blockSize = Int(bytes.littleEndian(at: 16, as: UInt16.self)) + 1
    guard size >= Version1Header.minimumSize, size <= bytes.count else { return nil }
    let end = size - Version1Header.checksumSize
    let checksum = CRC32C.checksum(of: UnsafeRawBufferPointer(rebasing: bytes[..<end]))
    guard checksum == bytes.littleEndian(at: end, as: UInt32.self) else { return nil }
    guard bytes[22] == 1 else { throw .newerVersion(Int(bytes[22])) }
    guard let kind = Kind(rawValue: bytes[23]) else { return nil }
    self.kind = kind
    isLast = bytes[24] & 1 != 0
    isContinuation = bytes[24] & 2 != 0
    batch = bytes.littleEndian(at: 25, as: UInt64.self)
    durableBatch = bytes.littleEndian(at: 33, as: UInt64.self)
    number = bytes.littleEndian(at: 41, as: UInt32.self)
    bodyChecksum = bytes.littleEndian(at: 45, as: UInt32.self)
    guard max(batch, durableBatch) <= BlockStart.maximumBatch else { return nil }
  }

  /// Reads a block, or returns `nil` if the bytes do not begin with an intact one.
  ///
  /// - Parameters:
  ///   - bytes: The block, and possibly bytes after it.
  ///   - offset: The offset of the block in the file.
  ///   - inflaters: The streams that decompress the text.
  /// - Throws: ``FileProblem/newerVersion(_:)``; ``ZlibError`` if there is not enough memory.
  static func read(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, by inflaters: StreamPool<ZlibInflater>
  ) throws -> (header: Version1Header, block: Block)? {
    guard let header = try Version1Header(bytes), header.size <= header.blockSize, header.blockSize <= bytes.count
    else {
      return nil
    }
    let block = UnsafeRawBufferPointer(rebasing: bytes[..<header.blockSize])
    let body = UnsafeRawBufferPointer(rebasing: block[header.size...])
    guard CRC32C.checksum(of: body) == header.bodyChecksum,
      let text = try BlockText.text(of: block, headerSize: header.size, by: inflaters)
    else { return nil }
    let end = offset + Int64(header.blockSize)
    return (header, Block(offset: offset, end: end, isContinuation: header.isContinuation, text: text))
  }

  /// Returns whether a part of a file has a header that states that a batch was durable.
  static func isDurable(_ batch: UInt64, in window: FileWindow, from offset: Int64) throws -> Bool {
    var window = window
    var start = offset
    while start < window.size {
      let (places, end) = try window.places(of: fixedStart, from: start)
      for place in places {
        let header = try window.withBytes(at: place, count: BlockFrame.maximumSize) { try Version1Header($0) }
        if let header, header.durableBatch >= batch { return true }
      }
      start = end
    }
    return false
  }
}

/// A scan of a file of version 1, which accepts a torn tail but no damage.
///
/// Invalid bytes are a torn tail, unless they are in the head or in the base, which were written as a whole, or a later
/// block states that the batch at their offset was durable.
struct Version1Scan {
  private var found = FoundFile(format: .version1, codecName: "")
  private var isInBase = false
  private var nextNumber: UInt32 = 0
  private var pending: [BatchChange<EntryLocation>] = []
  /// A line that continues in the next block.
  private var openLine: (key: StoreKey, location: EntryLocation)?

  private init() {}

  /// Scans a file.
  ///
  /// - Parameters:
  ///   - window: The file.
  ///   - inflaters: The streams that decompress the blocks.
  /// - Throws: ``FileProblem``; any error of reading.
  static func scan(_ window: FileWindow, inflaters: StreamPool<ZlibInflater>) throws -> FoundFile {
    var window = window
    var scan = Version1Scan()
    var offset: Int64 = 0
    func block(at offset: Int64) throws -> (header: Version1Header, block: Block)? {
      try window.withBytes(at: offset, count: BlockFrame.maximumSize) {
        try Version1Header.read($0, at: offset, by: inflaters)
      }
    }
    while let (header, block) = try block(at: offset) {
      do {
        try scan.add(header, block)
      } catch let problem as StoreLine.Problem {
        throw FileProblem.damaged(at: offset, reason: problem.message)
      }
      offset = block.end
    }
    if offset == 0 {
      let start = try window.withBytes(at: 0, count: BlockFrame.maximumSize) { Array($0) }
      throw FileIdentity.foreignFile(beginning: start)
        ?? .damaged(at: 0, reason: "the first block of the file, which has version 1, is damaged")
    }
    scan.found.isClosed = try window.hasMarker(at: offset)
    if try !scan.found.isClosed
      && (scan.isInBase || Version1Header.isDurable(scan.found.layout.lastBatch + 1, in: window, from: offset))
    {
      throw FileProblem.damaged(
        at: offset,
        reason:
          "a file of version 1 is read only if it is intact; restore it from a backup, or read its lines with zcat")
    }
    let behind = window.size - scan.found.layout.end
    if scan.found.isClosed {
      scan.found.layout.foreignSize = behind - Int64(BlockFrame.endOfFileMarker.count)
    } else {
      scan.found.layout.tornSize = behind
    }
    scan.found.layout.appendStart = scan.found.layout.end
    scan.found.layout.durableBatch = scan.found.layout.lastBatch
    return scan.found
  }

  private mutating func add(_ header: Version1Header, _ block: Block) throws {
    found.layout.blockCount += 1
    found.layout.textSize += Int64(block.text.count)
    found.layout.changeSize = found.layout.textSize
    guard block.offset > 0 else { return try readHead(header, block) }
    let kind: Version1Header.Kind = isInBase ? .base : .batch
    guard header.kind == kind, header.batch == found.layout.lastBatch + (isInBase ? 0 : 1), header.number == nextNumber
    else {
      throw StoreLine.Problem(message: "blocks before it are missing or out of order")
    }
    nextNumber &+= 1
    try readLines(of: block)
    guard header.isLast else { return }
    for change in pending { found.index.apply(change) }
    pending = []
    nextNumber = 0
    found.layout.lastBatch = header.batch
    found.layout.end = block.end
    if isInBase { endBase() }
  }

  private mutating func readHead(_ header: Version1Header, _ block: Block) throws {
    found.codecName = try StoreLine.codecName(ofHead: block.text[...])
    found.layout.lastBatch = header.batch
    found.layout.end = block.end
    isInBase = !header.isLast
    if !isInBase { endBase() }
  }

  private mutating func endBase() {
    isInBase = false
    found.layout.baseEnd = found.layout.end
    found.layout.baseTextSize = found.layout.textSize
  }

  private mutating func readLines(of block: Block) throws {
    let text = block.text
    var start = 0
    guard block.isContinuation == (openLine != nil) else {
      throw StoreLine.Problem(message: "the block does not continue the line before it")
    }
    if let (key, location) = openLine {
      let lineEnd = StoreText.lineEnd(in: text, from: 0)
      start = lineEnd ?? text.count
      let whole = EntryLocation(
        block: location.block, offset: location.textOffset, length: Int(location.length) + start)
      openLine = lineEnd == nil ? (key, whole) : nil
      if lineEnd != nil { pending.append(.set(key, whole)) }
    }
    try StoreText.forEachChange(in: text, from: start) { change, range, isWhole in
      let location = EntryLocation(block: block.offset, offset: range.lowerBound, length: range.count)
      if isWhole {
        pending.append(change.mapValue { _, _ in location })
      } else {
        guard let key = change.key else { throw StoreLine.Problem(message: "a line does not end") }
        openLine = (key, location)
      }
    }
  }
}
#endif
