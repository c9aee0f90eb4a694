#if Compression
import Larder
import LarderCompression

/// A scan of a file of version 1 from its beginning to its end, which tells sound parts from damaged ones and from the
/// torn tail of an incomplete batch.
///
/// Invalid bytes are a torn tail, unless a later block states that the batch at their offset was durable. In that case
/// they were damaged later. The header and the base were written as a whole, so invalid bytes in them are always
/// damage.
struct Version1Scan {
  /// The content at an offset of the file.
  private enum Found {
    case block(Version1Header.Parsed, text: [UInt8])
    case damagedBody(Version1Header.Parsed)
    case noBlock
  }

  private var window: FileWindow
  private let inflaters: StreamPool<Inflater>
  private var recovery = Version1Recovery()

  /// The last batch that any block states to be durable.
  private var durableBatch: UInt64 = 0

  private init(_ window: FileWindow, inflaters: StreamPool<Inflater>) {
    self.window = window
    self.inflaters = inflaters
  }

  /// Scans a file.
  ///
  /// - Parameters:
  ///   - size: The size of the file, in bytes.
  ///   - inflaters: The streams that decompress the blocks.
  ///   - read: A closure that reads a range of the file.
  /// - Throws: ``FileProblem``; any error of `read`.
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
      // A writer removed the end-of-file block before it appended, so bytes after it belong to other programs.
      found.foreignSize = behind - Int64(BlockFrame.endOfFileMarker.count)
    } else {
      found.tornSize = behind
    }
    return found
  }

  /// Reads the blocks.
  ///
  /// - Returns: The end of the sound and the damaged blocks.
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
        case .misplaced: throw FileProblem.damaged(at: offset, reason: "blocks before it are missing or out of order")
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

  /// The minimum size of a batch, in bytes.
  private static let smallestBatch: Int64 = 60

  /// Returns whether the preceding bytes have room for the number of batches that a header states.
  ///
  /// A value may contain bytes that look like a header, because this version has no salt.
  private func isPlausible(_ header: Version1Header, at offset: Int64) -> Bool {
    guard recovery.codecName != nil, !recovery.isInBase, header.kind == .batch else { return true }
    let room = UInt64(max(0, offset - recovery.completeEnd) / Version1Scan.smallestBatch) + 1
    return header.batch <= recovery.expectedBatch + room && header.durableBatch < header.batch
  }

  /// Returns the next header after an offset, or `nil` if there is none.
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

  /// Returns the sound parts of bytes that do not begin with a header.
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

  /// Returns whether the batch at an offset was durable.
  private mutating func isDurable(at offset: Int64) throws -> Bool {
    if offset == 0 || recovery.isInBase { return true }
    var place = offset
    while durableBatch < recovery.expectedBatch, let next = try nextHeader(after: place) {
      durableBatch = max(durableBatch, next.parsed.header.durableBatch)
      // The search continues after the header, because other blocks may follow a torn one.
      place = next.offset
    }
    return durableBatch >= recovery.expectedBatch
  }

  private mutating func hasMarker(at offset: Int64) throws -> Bool {
    try !recovery.isInBase && window.hasMarker(at: offset)
  }

  // MARK: Foreign files

  /// Returns the problem of a file without any header.
  private mutating func identify() throws -> FileProblem {
    let start = try window.withBytes(at: 0, count: Version1Header.maximumBlockSize) { Array($0) }
    return try FileIdentity.foreignFile(beginning: start) ?? .damaged(at: 0, reason: "the first block is incomplete")
  }
}
#endif
