#if Compression
import Larder

/// Looks ahead in a damaged file for what the blocks of a hole have changed, and which batches were durable.
///
/// It goes through the file once, however many holes there are.
struct NotesFinder {
  private var finder: BlockFinder
  private var place: Int64 = 0
  private var notes: [BlockNotes] = []
  private var durableBatch: UInt64 = 0

  /// After how many blocks that could have the notes of a hole, and do not, they are given up.
  private static let patience = 16

  /// Makes a finder of notes.
  ///
  /// - Parameter finder: Finds the blocks; of no use to anyone else afterwards.
  init(_ finder: BlockFinder) {
    self.finder = finder
  }

  /// Returns what the blocks of a part of the file have changed, or `nil` if not all of it is known.
  ///
  /// - Parameter hole: The part, in the order of the file: no earlier one can be asked for afterwards.
  mutating func notes(about hole: Range<Int64>) throws -> [BlockNotes.Block]? {
    place = max(place, hole.upperBound)
    notes.removeAll { $0.range.upperBound <= hole.lowerBound }
    let page = UnnotedBlocks.pageSize
    let nextPage = (hole.upperBound + page - 1) / page * page
    var count = 0
    while true {
      var covered = hole.lowerBound
      for part in notes where part.range.contains(covered) { covered = part.range.upperBound }
      if covered >= hole.upperBound {
        return notes.flatMap(\.blocks).filter { hole.contains($0.offset) }
      }
      guard count < NotesFinder.patience, let offset = try readBlock() else { return nil }
      if offset >= nextPage { count += 1 }
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
      if BlockNotes.range(in: block.text, at: startEnd) != nil {
        // Notes that cannot be read are none.
        if let part = try? BlockNotes(readingLineOf: block.text, at: startEnd) { notes.append(part) }
      }
      return block.offset
    }
    return nil
  }
}
#endif
