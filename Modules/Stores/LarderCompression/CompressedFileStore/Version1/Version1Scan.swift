#if Compression
import Larder

/// Goes through a file of version 1 from its beginning to its end, and finds out what of it is good, what is the torn
/// tail of a batch that never happened, and what is damaged.
///
/// Bytes that are no block are a torn tail unless a later block says that the batch which should stand there was
/// durable: then they were damaged afterwards. So is whatever is wrong with the head and the base, which come into
/// being whole.
struct Version1Scan {
  /// What stands at a place of the file.
  private enum Found {
    case block(Version1Header.Parsed, text: [UInt8])
    case damagedBody(Version1Header.Parsed)
    case noBlock
  }

  private var window: FileWindow
  private let inflaters: StreamPool<Inflater>
  private var recovery = Version1Recovery()

  /// The last batch that any block has said to be durable.
  private var durableBatch: UInt64 = 0

  private init(_ window: FileWindow, inflaters: StreamPool<Inflater>) {
    self.window = window
    self.inflaters = inflaters
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
  ) throws -> FoundFile {
    var scan = Version1Scan(FileWindow(size: size, read: read), inflaters: inflaters)
    return try scan.run()
  }

  private mutating func run() throws -> FoundFile {
    let end = try walk()
    recovery.finish(at: end, durableBatch: durableBatch)
    var found = FoundFile(format: .version1)
    found.codecName = recovery.codecName
    found.index = recovery.index
    found.damage = recovery.damage
    found.end = recovery.completeEnd
    found.baseEnd = recovery.baseEnd
    found.baseTextSize = recovery.baseTextSize
    found.blockCount = recovery.blockCount
    found.textSize = recovery.textSize
    found.changeSize = recovery.textSize
    found.lastBatch = recovery.lastBatch
    found.isClosed = try hasMarker(at: recovery.completeEnd)
    let behind = window.size - recovery.completeEnd
    if found.isClosed {
      // A writer has removed the mark before it appended, so what stands behind it is of others.
      found.foreignSize = behind - Int64(BlockFrame.endOfFileMarker.count)
    } else {
      found.tornSize = behind
    }
    return found
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
          guard try !hasMarker(at: offset), try isDurable(at: offset) else { return offset }
          let next = try nextHeader(after: offset)
          if offset == 0, next == nil { throw try identify() }
          let end = next?.offset ?? window.size
          try recovery.addDamaged(try evidence(offset..<end), at: offset, end: end)
          offset = end
        }
      } catch let problem as Version1Recovery.Problem {
        switch problem {
        case .misplaced: throw FileProblem.damaged(at: offset, reason: "blocks before it are missing, or out of order")
        case .malformed(let reason): throw FileProblem.damaged(at: offset, reason: reason)
        }
      }
    }
    return offset
  }

  // MARK: Blocks

  private mutating func header(at offset: Int64) throws -> Version1Header.Parsed? {
    let size = try window.withBytes(at: offset, count: Version1Header.lengthEnd) { Version1Header.size(at: $0) }
    guard let size else { return nil }
    do {
      return try window.withBytes(at: offset, count: size) { try Version1Header.parse($0) }
    } catch Version1Header.Problem.newerVersion(let version) {
      throw FileProblem.newerVersion(Int(version))
    } catch is Version1Header.Problem {
      return nil
    }
  }

  private mutating func block(at offset: Int64) throws -> Found {
    guard let parsed = try header(at: offset) else { return .noBlock }
    do {
      let text = try window.withBytes(at: offset, count: parsed.blockSize) { bytes in
        try Version1Header.text(parsed, of: bytes, by: inflaters)
      }
      return .block(parsed, text: text)
    } catch is BlockText.Damage {
      return .damagedBody(parsed)
    }
  }

  /// The fewest bytes that a batch can have.
  private static let smallestBatch: Int64 = 60

  /// Whether as many batches as a header says could stand before it.
  ///
  /// A value can have bytes that look like a header, since this version has nothing that tells files apart.
  private func isPlausible(_ header: Version1Header, at offset: Int64) -> Bool {
    guard recovery.codecName != nil, !recovery.isInBase, header.kind == .batch else { return true }
    let room = UInt64(max(0, offset - recovery.completeEnd) / Version1Scan.smallestBatch) + 1
    return header.batch <= recovery.expectedBatch + room && header.durableBatch < header.batch
  }

  /// The next place behind one where a header stands.
  private mutating func nextHeader(after offset: Int64) throws -> (offset: Int64, parsed: Version1Header.Parsed)? {
    var start = offset + 1
    while start < window.size {
      let (places, end) = try window.places(of: Version1Header.fixedStart, from: start)
      for place in places {
        guard let parsed = try header(at: place), isPlausible(parsed.header, at: place) else { continue }
        return (place, parsed)
      }
      start = end
    }
    return nil
  }

  /// What is still sound of bytes that do not begin with a header.
  private mutating func evidence(_ range: Range<Int64>) throws -> Version1Recovery.Evidence {
    let size = range.upperBound - range.lowerBound
    guard size <= Int64(Version1Header.maximumBlockSize) else { return .nothing }
    do {
      return .text(
        try window.withBytes(at: range.lowerBound, count: Int(size)) { bytes in
          try Version1Header.text(withoutHeader: bytes, by: inflaters)
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

  private mutating func hasMarker(at offset: Int64) throws -> Bool {
    try !recovery.isInBase && window.hasMarker(at: offset)
  }

  // MARK: Files of others

  /// What is wrong with a file in which no header stands.
  private mutating func identify() throws -> FileProblem {
    let start = try window.withBytes(at: 0, count: Version1Header.maximumBlockSize) { Array($0) }
    return try FileIdentity.foreignFile(beginning: start) ?? .damaged(at: 0, reason: "its first block is incomplete")
  }
}
#endif
