#if Compression
import Larder

/// Looks ahead in a damaged file for what the blocks of a hole have changed, and which batches were durable.
///
/// It goes through the file once, however many holes there are.
struct NotesFinder {
  /// Where notes stand, and what they are about.
  private struct Part {
    var range: Range<Int64>
    var block: Int64
  }

  private var finder: BlockFinder
  /// Reads blocks a second time.
  private var reader: BlockFinder
  private var place: Int64 = 0
  /// Only where they stand: what they say could take a thousand times as much memory as the file has bytes.
  private var parts: ArraySlice<Part> = []
  private var durableBatch: UInt64 = 0

  /// After how many blocks that could have the notes of a hole, and do not, they are given up.
  private static let patience = 16

  /// Makes a finder of notes.
  ///
  /// - Parameter finder: Finds the blocks; of no use to anyone else afterwards.
  init(_ finder: BlockFinder) {
    self.finder = finder
    reader = finder
  }

  /// Returns what the blocks of a part of the file have changed, or `nil` if not all of it is known.
  ///
  /// - Parameter hole: The part, in the order of the file: no earlier one can be asked for afterwards.
  mutating func notes(about hole: Range<Int64>) throws -> [BlockNotes.Block]? {
    place = max(place, hole.upperBound)
    while let first = parts.first, first.range.upperBound <= hole.lowerBound { parts.removeFirst() }
    var covered = hole.lowerBound
    var blocks: [BlockNotes.Block] = []
    var index = parts.startIndex
    var nextPage: Int64?
    var count = 0
    // What only a file made for it exceeds.
    var room = BlockFinder.patience(withFileOf: finder.size)
    while covered < hole.upperBound {
      if index < parts.endIndex {
        let part = parts[index]
        index += 1
        // They ascend, so what one leaves out the next ones do.
        guard part.range.lowerBound <= covered else { return nil }
        guard part.range.contains(covered), let (notes, size) = try notes(in: part.block) else { continue }
        let end = min(part.range.upperBound, hole.upperBound)
        room -= Int64(size)
        guard room > 0 else { return nil }
        blocks += notes.blocks.filter { covered..<end ~= $0.offset }
        covered = end
        continue
      }
      guard count < NotesFinder.patience, let offset = try readBlock() else { return nil }
      // A line may go on behind the hole, and has its notes in a page behind its end and the block after it.
      let page = UnnotedBlocks.pageSize
      if offset >= nextPage ?? .max { count += 1 }
      nextPage = nextPage ?? (place + page - 1) / page * page
    }
    return blocks
  }

  /// The notes that a block has, and the bytes of its text; `nil` if they cannot be read.
  private mutating func notes(in offset: Int64) throws -> (BlockNotes, size: Int)? {
    guard let text = try reader.block(at: offset)?.text, let start = BlockStart.read(text)?.end else { return nil }
    do {
      return (try BlockNotes(readingLineOf: text, at: start), text.count)
    } catch {
      // The text is in memory: only its form can be wrong.
      return nil
    }
  }

  /// Returns whether a block from a place on says that a batch was durable.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - offset: The place.
  mutating func isDurable(_ batch: UInt64, from offset: Int64) throws -> Bool {
    place = max(place, offset)
    while durableBatch < batch {
      guard try readBlock() != nil else { return false }
    }
    return true
  }

  /// Reads the next block that has a start.
  ///
  /// - Returns: Where it begins; `nil` at the end of the file.
  private mutating func readBlock() throws -> Int64? {
    while place < finder.size {
      guard let block = try finder.block(at: place) ?? finder.nextBlock(after: place) else {
        place = finder.size
        return nil
      }
      place = block.end
      guard !block.isContinuation, let (start, startEnd) = BlockStart.read(block.text) else { continue }
      durableBatch = max(durableBatch, start.durableBatch)
      if let range = BlockNotes.range(in: block.text, at: startEnd) {
        parts.append(Part(range: range, block: block.offset))
      }
      return block.offset
    }
    return nil
  }
}
#endif
