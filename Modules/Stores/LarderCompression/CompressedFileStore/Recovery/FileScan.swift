#if Compression
import Larder

/// Goes through a compressed file from its beginning to its end, and finds out what of it is good, what is the torn
/// tail of a batch that never happened, and what is damaged.
///
/// Bytes that are no block are a torn tail unless a later block says that the batch which should stand there was
/// durable: then they were damaged afterwards. So is whatever is wrong with the head and the base, which come into
/// being whole.
struct FileScan {
  /// What makes a file unusable.
  enum Problem: Error {
    /// It is no gzip file.
    case notGzip
    /// It is a gzip file, but not one in blocks.
    case plainGzip
    /// It is in blocks, but none of a store; with what it is, where that is known.
    case foreignBlocks(String?)
    /// It is in a version of the format that came later.
    case newerVersion(Int)
    /// It is damaged so that it cannot be used.
    case damaged(at: Int64, reason: String)
  }

  /// What stands at a place of the file.
  private enum Found {
    case block(BlockHeader.Parsed, text: [UInt8])
    case damagedBody(BlockHeader.Parsed)
    case noBlock
  }

  private var window: FileWindow
  private let inflaters: StreamPool<Inflater>
  private var recovery = FileRecovery()

  /// The last batch that any block has said to be durable.
  private var durableBatch: UInt64 = 0

  /// The block of BGZF that says that a file ends.
  static let endOfFileMarker: [UInt8] = [
    0x1F, 0x8B, 0x08, 0x04, 0, 0, 0, 0, 0, 0xFF, 0x06, 0, 0x42, 0x43, 0x02, 0, 0x1B, 0, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  ]

  private init(_ window: FileWindow, inflaters: StreamPool<Inflater>) {
    self.window = window
    self.inflaters = inflaters
  }

  /// What a file holds.
  struct Result {
    var recovery: FileRecovery
    /// Whether it ends as a store leaves it that was closed.
    var isClosed: Bool
    /// The bytes behind the good ones, the mark of the end of the file left out.
    var tornSize: Int64
  }

  /// Goes through a file.
  ///
  /// - Parameters:
  ///   - size: How many bytes it has.
  ///   - inflaters: Decompress it.
  ///   - read: Reads bytes of it.
  /// - Throws: ``Problem``; what `read` throws.
  static func scan(
    size: Int64, inflaters: StreamPool<Inflater>, read: @escaping (Range<Int64>) throws -> [UInt8]
  ) throws -> Result {
    var scan = FileScan(FileWindow(size: size, read: read), inflaters: inflaters)
    return try scan.run()
  }

  private mutating func run() throws -> Result {
    let end = try walk()
    recovery.finish(at: end, durableBatch: durableBatch)
    let goodEnd = recovery.completeEnd
    let rest = window.size - goodEnd
    let isClosed = try window.withBytes(at: goodEnd, count: FileScan.endOfFileMarker.count + 1) { bytes in
      bytes.elementsEqual(FileScan.endOfFileMarker)
    }
    return Result(recovery: recovery, isClosed: isClosed, tornSize: isClosed ? 0 : rest)
  }

  /// Takes block after block.
  ///
  /// - Returns: Where the good ones and the damaged ones end.
  private mutating func walk() throws -> Int64 {
    var offset: Int64 = 0
    while offset < window.size || offset == 0 {
      let found = try block(at: offset)
      do {
        switch found {
        case .block(let parsed, let text):
          durableBatch = max(durableBatch, parsed.header.durableBatch)
          let end = offset + Int64(parsed.blockSize)
          try recovery.add(parsed.header, text: text, at: offset, end: end)
          offset = end
        case .damagedBody(let parsed):
          guard try isDurable(at: offset) else { return offset }
          durableBatch = max(durableBatch, parsed.header.durableBatch)
          let end = min(offset + Int64(parsed.blockSize), window.size)
          try recovery.addDamaged(.header(parsed.header), at: offset, end: end)
          offset = end
        case .noBlock:
          guard try !isEndOfFile(at: offset), try isDurable(at: offset) else { return offset }
          let next = try nextHeader(after: offset)
          if offset == 0, next == nil { throw try identify() }
          let end = next?.offset ?? window.size
          try recovery.addDamaged(try evidence(offset..<end), at: offset, end: end)
          offset = end
        }
      } catch let problem as FileRecovery.Problem {
        switch problem {
        case .misplaced: throw Problem.damaged(at: offset, reason: "blocks before it are missing, or out of order")
        case .malformed(let reason): throw Problem.damaged(at: offset, reason: reason)
        }
      }
    }
    return offset
  }

  // MARK: Blocks

  private mutating func header(at offset: Int64) throws -> BlockHeader.Parsed? {
    let size = try window.withBytes(at: offset, count: BlockHeader.lengthEnd) { BlockHeader.size(at: $0) }
    guard let size else { return nil }
    do {
      return try window.withBytes(at: offset, count: size) { try BlockHeader.parse($0) }
    } catch BlockHeader.Problem.newerVersion(let version) {
      throw Problem.newerVersion(Int(version))
    } catch is BlockHeader.Problem {
      return nil
    }
  }

  private mutating func block(at offset: Int64) throws -> Found {
    guard let parsed = try header(at: offset) else { return .noBlock }
    do {
      let text = try window.withBytes(at: offset, count: parsed.blockSize) { bytes in
        try BlockText.text(parsed, of: bytes, by: inflaters)
      }
      return .block(parsed, text: text)
    } catch is BlockText.Damage {
      return .damagedBody(parsed)
    }
  }

  /// The next place behind one where a header stands.
  private mutating func nextHeader(after offset: Int64) throws -> (offset: Int64, parsed: BlockHeader.Parsed)? {
    var start = offset + 1
    let step = 1 << 16
    while start < window.size {
      let candidates = try window.withBytes(at: start, count: step + BlockHeader.fixedStart.count) { bytes in
        var places: [Int] = []
        var place = 0
        while let next = bytes[place...].firstIndex(of: BlockHeader.fixedStart[0]), next < step {
          if bytes[next...].starts(with: BlockHeader.fixedStart) { places.append(next) }
          place = next + 1
        }
        return places
      }
      for candidate in candidates {
        if let parsed = try header(at: start + Int64(candidate)) { return (start + Int64(candidate), parsed) }
      }
      start += Int64(step)
    }
    return nil
  }

  /// What is still sound of bytes that do not begin with a header.
  private mutating func evidence(_ range: Range<Int64>) throws -> FileRecovery.Evidence {
    let size = range.upperBound - range.lowerBound
    guard size <= Int64(BlockHeader.maximumBlockSize) else { return .nothing }
    do {
      return .text(
        try window.withBytes(at: range.lowerBound, count: Int(size)) { bytes in
          try BlockText.text(withoutHeader: bytes, by: inflaters)
        })
    } catch is BlockText.Damage {
      return .nothing
    }
  }

  // MARK: Torn or damaged

  /// Whether what should stand at a place was durable once.
  private mutating func isDurable(at offset: Int64) throws -> Bool {
    if offset == 0 || recovery.isInBase { return true }
    var place = offset
    while durableBatch < recovery.expectedBatch, let next = try nextHeader(after: place) {
      durableBatch = max(durableBatch, next.parsed.header.durableBatch)
      // Behind its header: a block that was torn may have others behind it.
      place = next.offset
    }
    return durableBatch >= recovery.expectedBatch
  }

  private mutating func isEndOfFile(at offset: Int64) throws -> Bool {
    guard !recovery.isInBase else { return false }
    return try window.withBytes(at: offset, count: FileScan.endOfFileMarker.count + 1) { bytes in
      bytes.elementsEqual(FileScan.endOfFileMarker)
    }
  }

  // MARK: Files of others

  /// What is wrong with a file in which no header stands.
  private mutating func identify() throws -> Problem {
    let start = try window.withBytes(at: 0, count: BlockHeader.maximumBlockSize) { Array($0) }
    return FileScan.foreignFile(beginning: start) ?? .damaged(at: 0, reason: "its first block is incomplete")
  }

  /// Returns which other kind of file begins with some bytes, or `nil` if they may begin a store.
  ///
  /// - Parameter start: As many bytes of the file as a block may have, if there are so many.
  static func foreignFile(beginning start: [UInt8]) -> Problem? {
    guard start.starts(with: [0x1F, 0x8B]) else {
      return start.isEmpty ? .damaged(at: 0, reason: "the file is empty") : .notGzip
    }
    let blockStart: [UInt8] = [UInt8(ascii: "B"), UInt8(ascii: "C"), 2, 0]
    guard start.count >= BlockHeader.lengthEnd, start.starts(with: [0x1F, 0x8B, 8, 4]),
      start[12...].starts(with: blockStart)
    else { return .plainGzip }
    if start[18...].starts(with: "LD".utf8) { return nil }
    let size = Int(start.withUnsafeBytes { $0.littleEndian(at: 16, as: UInt16.self) }) + 1
    guard size <= start.count else { return .foreignBlocks(nil) }
    do {
      let text = try start.withUnsafeBytes { bytes in
        try BlockText.text(
          withoutHeader: UnsafeRawBufferPointer(rebasing: bytes[..<size]),
          by: StreamPool { () throws(ZlibError) in try Inflater() })
      }
      return .foreignBlocks(text.starts(with: "BAM\u{1}".utf8) ? "a BAM file" : nil)
    } catch {
      return .foreignBlocks(nil)
    }
  }
}
#endif
