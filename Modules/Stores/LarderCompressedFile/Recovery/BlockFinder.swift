#if Compression
import Larder
import LarderCompression

/// A finder of the blocks of a file, which it recognizes by their seal.
struct BlockFinder {
  /// The file.
  var window: FileWindow
  private let inflaters: StreamPool<ZlibInflater>
  private let salt: UInt64

  /// The start and the result of the last search.
  private var lastSearch: (start: Int64, found: Block?)?

  /// The number of bytes that may still be read at false matches.
  private var falseMatchBudget: Int64

  /// Creates a finder.
  ///
  /// - Parameters:
  ///   - window: The file.
  ///   - salt: The salt of the file.
  ///   - inflaters: The streams that decompress the blocks.
  init(_ window: FileWindow, salt: UInt64, inflaters: StreamPool<ZlibInflater>) {
    self.window = window
    self.salt = salt
    self.inflaters = inflaters
    falseMatchBudget = BlockFinder.falseMatchLimit(forFileOf: window.size)
  }

  /// Returns the number of bytes that may be read at false matches.
  ///
  /// Only a hostile file exceeds it, and without a limit such a file would take hours.
  ///
  /// - Parameter size: The size of the file, in bytes.
  static func falseMatchLimit(forFileOf size: Int64) -> Int64 {
    let (product, isTooMuch) = size.multipliedReportingOverflow(by: 16)
    return isTooMuch ? .max : max(product, 64 << 20)
  }

  /// Returns the block at an offset, or `nil` if there isn't one.
  mutating func block(at offset: Int64) throws -> Block? {
    let size = try window.withBytes(at: offset, count: BlockFrame.headerSize) { BlockFrame.size(at: $0) }
    guard let size, offset <= window.size - Int64(size) else { return nil }
    let (salt, inflaters) = (salt, inflaters)
    return try window.withBytes(at: offset, count: size) { try Block($0, salt: salt, at: offset, by: inflaters) }
  }

  /// Returns the first block after an offset, or `nil` if there isn't one.
  ///
  /// - Throws: ``FileProblem/damaged(at:reason:)`` if there are too many false matches.
  mutating func nextBlock(after offset: Int64) throws -> Block? {
    if let lastSearch, lastSearch.start <= offset, lastSearch.found.map({ $0.offset > offset }) ?? true {
      return lastSearch.found
    }
    var found: Block?
    var start = offset + 1
    while found == nil, start < window.size {
      let candidates = try window.places(of: BlockFrame.magic, from: start)
      for place in candidates.places where found == nil {
        found = try block(at: place)
        guard found == nil else { break }
        falseMatchBudget -= try window.withBytes(at: place, count: BlockFrame.headerSize) {
          Int64(BlockFrame.size(at: $0) ?? 4)
        }
        guard falseMatchBudget > 0 else {
          throw FileProblem.damaged(at: offset, reason: "too many places after it only look like blocks")
        }
      }
      start = candidates.end
    }
    lastSearch = (offset, found)
    return found
  }
}

/// A lookahead in a damaged file that finds the changes of a hole's blocks and the batches that were durable.
///
/// It reads the file once, however many holes there are.
struct NotesFinder {
  private var finder: BlockFinder
  /// A second finder, for reading blocks again.
  private var reader: BlockFinder
  private var place: Int64 = 0
  /// The ranges that notes cover, with the locations of the notes, because their content could take a thousand times as much memory as the file.
  private var parts: ArraySlice<(range: Range<Int64>, block: Int64)> = []
  private var durableBatch: UInt64 = 0

  /// The number of blocks that could have the notes of a hole, but do not, after which the search ends.
  private static let maximumMisses = 16

  /// Creates a finder of notes.
  ///
  /// - Parameter finder: The finder of blocks. It must not be used elsewhere afterward.
  init(_ finder: BlockFinder) {
    self.finder = finder
    reader = finder
  }

  /// Returns the changes of the blocks in a part of the file, or `nil` if they are not completely known.
  ///
  /// - Parameter hole: The part of the file. Calls must be in file order.
  mutating func notes(about hole: Range<Int64>) throws -> [BlockNotes.Block]? {
    place = max(place, hole.upperBound)
    while let first = parts.first, first.range.upperBound <= hole.lowerBound { parts.removeFirst() }
    var covered = hole.lowerBound
    var blocks: [BlockNotes.Block] = []
    var index = parts.startIndex
    var nextPage: Int64?
    var count = 0
    // Only a hostile file exceeds this limit.
    var room = BlockFinder.falseMatchLimit(forFileOf: finder.window.size)
    while covered < hole.upperBound {
      if index < parts.endIndex {
        let part = parts[index]
        index += 1
        // The ranges ascend, so later notes cannot cover the bytes that this one leaves out.
        guard part.range.lowerBound <= covered else { return nil }
        guard part.range.contains(covered), let (notes, size) = try notes(in: part.block) else { continue }
        let end = min(part.range.upperBound, hole.upperBound)
        room -= Int64(size)
        guard room > 0 else { return nil }
        blocks += notes.blocks.filter { covered..<end ~= $0.offset }
        covered = end
        continue
      }
      guard count < NotesFinder.maximumMisses, let offset = try readBlock() else { return nil }
      // A line may continue after the hole. Its notes are then in a page after its end and the next block.
      let page = UnnotedBlocks.pageSize
      if offset >= nextPage ?? .max { count += 1 }
      nextPage = nextPage ?? (place + page - 1) / page * page
    }
    return blocks
  }

  /// Returns the notes of a block and the size of its text, or `nil` if they cannot be read.
  private mutating func notes(in offset: Int64) throws -> (BlockNotes, size: Int)? {
    guard let text = try reader.block(at: offset)?.text, let start = BlockStart.read(text)?.end else { return nil }
    do {
      return (try BlockNotes(readingLineOf: text, at: start), text.count)
    } catch {
      // The text is in memory, so only its syntax can be wrong.
      return nil
    }
  }

  /// Returns whether a block after an offset states that a batch was durable.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - offset: The offset.
  mutating func isDurable(_ batch: UInt64, from offset: Int64) throws -> Bool {
    place = max(place, offset)
    while durableBatch < batch {
      guard try readBlock() != nil else { return false }
    }
    return true
  }

  /// Reads the next block that has a start.
  ///
  /// - Returns: The offset of the block, or `nil` at the end of the file.
  private mutating func readBlock() throws -> Int64? {
    while place < finder.window.size {
      guard let block = try finder.block(at: place) ?? finder.nextBlock(after: place) else {
        place = finder.window.size
        return nil
      }
      place = block.end
      guard !block.isContinuation, let (start, startEnd) = BlockStart.read(block.text) else { continue }
      durableBatch = max(durableBatch, start.durableBatch)
      if let range = BlockNotes.range(in: block.text, at: startEnd) {
        parts.append((range, block.offset))
      }
      return block.offset
    }
    return nil
  }
}

/// A part of a file in memory, which moves along with the reads.
struct FileWindow {
  private static let capacity = 1 << 20

  /// The size of the file, in bytes.
  let size: Int64

  private let read: (Range<Int64>) throws -> [UInt8]
  private var bytes: [UInt8] = []
  private var start: Int64 = 0

  /// Creates a window on a file.
  ///
  /// - Parameters:
  ///   - size: The size of the file, in bytes.
  ///   - read: A closure that reads the bytes of a range within the file.
  init(size: Int64, read: @escaping (Range<Int64>) throws -> [UInt8]) {
    self.size = size
    self.read = read
  }

  /// Calls a closure with bytes of the file.
  ///
  /// - Parameters:
  ///   - offset: The offset of the bytes.
  ///   - count: The number of bytes. There are fewer at the end of the file.
  ///   - body: A closure that receives the bytes.
  /// - Throws: Any error of reading or of `body`.
  mutating func withBytes<Result>(
    at offset: Int64, count: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    let end = min(max(offset, 0) + Int64(count), size)
    if offset < start || end > start + Int64(bytes.count) {
      let newEnd = min(max(end, offset + Int64(FileWindow.capacity)), size)
      bytes = try read(offset..<max(offset, newEnd))
      start = offset
    }
    let first = min(Int(offset - start), bytes.count)
    let range = first..<max(first, min(Int(end - start), bytes.count))
    return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Returns whether BGZF's end-of-file block is at an offset.
  mutating func hasMarker(at offset: Int64) throws -> Bool {
    try withBytes(at: offset, count: BlockFrame.endOfFileMarker.count) { $0.elementsEqual(BlockFrame.endOfFileMarker) }
  }

  /// Finds the occurrences of a byte sequence in a part of the file.
  ///
  /// - Parameters:
  ///   - pattern: The byte sequence. It must not be empty.
  ///   - start: The offset of the part.
  /// - Returns: The offsets of the occurrences, and the offset of the next part.
  mutating func places(of pattern: [UInt8], from start: Int64) throws -> (places: [Int64], end: Int64) {
    let step = 1 << 16
    let places = try withBytes(at: start, count: step + pattern.count - 1) { bytes in
      var places: [Int64] = []
      var place = 0
      while let next = bytes[place...].firstIndex(of: pattern[0]), next < step {
        if bytes[next...].starts(with: pattern) { places.append(start + Int64(next)) }
        place = next + 1
      }
      return places
    }
    return (places, start + Int64(step))
  }
}
#endif
