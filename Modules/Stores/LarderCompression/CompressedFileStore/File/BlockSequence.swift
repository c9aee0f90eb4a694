#if Compression
import Larder

/// The blocks of one batch, or of a base, as they are made of lines.
///
/// A block gets about as many lines as compress to 4 KiB; how well they compress is learnt from the blocks before. A line
/// that does not fit into one block begins one, and goes on in blocks that have nothing else.
struct BlockSequence {
  /// A change whose block is not made yet.
  private struct Unplaced {
    var change: Change<Void>
    /// Where its line begins among the lines of the block.
    var offset: Int
    var length: Int
  }

  private let composer: BlockComposer
  private let isCompressed: Bool
  private let head: FileHead
  private var start: BlockStart

  /// The line of notes that the block begins with.
  private var notesLine: [UInt8]
  private var lines: [UInt8] = []
  private var notes = ChangeNotes()
  private var unplaced: [Unplaced] = []

  /// How many bytes of text are expected to become one.
  private var ratio = 4.0

  /// The blocks of the file that no notes are about yet, those of this sequence included.
  private(set) var unnoted: UnnotedBlocks

  /// How many blocks there are.
  private(set) var blockCount = 0
  /// The bytes of their texts.
  private(set) var textSize: Int64 = 0
  /// The bytes of the lines that are changes.
  private(set) var changeSize: Int64 = 0
  /// Where the next block begins in the file.
  private(set) var end: Int64

  private var bytes: [UInt8] = []
  private var placed: [Change<EntryPlace>] = []

  /// About how many bytes a block is to have when it is compressed.
  private static let targetSize = 4096.0
  /// The most bytes of notes about one block, so that a later block has room for them.
  private static let maximumNotesSize = 24_000
  /// The least line of notes for which a block is compressed that would not be otherwise.
  private static let leastCompressedNotesSize = 512

  /// Begins a sequence.
  ///
  /// - Parameters:
  ///   - start: What the blocks are.
  ///   - offset: Where the first block begins in the file.
  ///   - head: The head of the file.
  ///   - unnoted: The blocks before that no notes are about yet.
  ///   - composer: Makes the blocks.
  ///   - isCompressed: Whether they are compressed.
  init(
    _ start: BlockStart, at offset: Int64, of head: FileHead, after unnoted: UnnotedBlocks, by composer: BlockComposer,
    isCompressed: Bool
  ) {
    self.start = start
    self.head = head
    self.composer = composer
    self.isCompressed = isCompressed
    self.unnoted = unnoted
    end = offset
    notesLine = self.unnoted.takeLine(forBlockAt: offset, of: head)
  }

  private var room: Int { BlockFrame.maximumTextSize - BlockStart.maximumSize - notesLine.count - lines.count }

  private var isFull: Bool {
    Double(lines.count) >= BlockSequence.targetSize * ratio || notes.count >= BlockSequence.maximumNotesSize
  }

  /// Takes a line.
  ///
  /// - Parameters:
  ///   - line: The line, with its line end.
  ///   - change: What it says.
  /// - Throws: ``ZlibError`` if there is no memory.
  mutating func add(_ line: ArraySlice<UInt8>, _ change: Change<Void>) throws(ZlibError) {
    if !lines.isEmpty, isFull || line.count > room { try endBlock(isLast: false) }
    unplaced.append(Unplaced(change: change, offset: lines.count, length: line.count))
    notes.add(change)
    changeSize += Int64(line.count)
    let first = line.prefix(room)
    lines.append(contentsOf: first)
    guard first.count < line.count else { return }
    try endBlock(isLast: false, goingOnWith: line.dropFirst(first.count))
  }

  /// Makes the last block; an empty one if there was no line behind the block before.
  ///
  /// - Throws: ``ZlibError`` if there is no memory.
  mutating func finish() throws(ZlibError) {
    try endBlock(isLast: true)
  }

  /// Makes a block of the lines so far, and blocks of the rest of its last line.
  private mutating func endBlock(isLast: Bool, goingOnWith rest: ArraySlice<UInt8> = []) throws(ZlibError) {
    start.isLast = isLast
    let prefix = start.line + notesLine
    let offset = end
    // Notes repeat much, and come once for each page.
    let isCompressed = isCompressed || notesLine.count >= BlockSequence.leastCompressedNotesSize
    try append(prefix + lines, isContinuation: false, isCompressed: isCompressed)
    for entry in unplaced {
      let place = EntryPlace(block: offset, offset: prefix.count + entry.offset, length: entry.length)
      placed.append(entry.change.mapValue { _, _ in place })
    }
    unnoted.append(offset..<end, notes)
    let restOffset = end
    var rest = rest
    while !rest.isEmpty {
      try append(
        Array(rest.prefix(BlockFrame.maximumTextSize)), isContinuation: true, isCompressed: self.isCompressed)
      rest = rest.dropFirst(BlockFrame.maximumTextSize)
    }
    // The next block may stand in the page in which they end, so its notes must not reach over them.
    if end > restOffset { unnoted.append(restOffset..<end, ChangeNotes()) }
    start.number += 1
    lines.removeAll(keepingCapacity: true)
    unplaced.removeAll(keepingCapacity: true)
    notes = ChangeNotes()
    notesLine = isLast ? [] : unnoted.takeLine(forBlockAt: end, of: head)
  }

  private mutating func append(_ text: [UInt8], isContinuation: Bool, isCompressed: Bool) throws(ZlibError) {
    let block = try composer.block(
      text, isContinuation: isContinuation, isCompressed: isCompressed, salt: head.salt, at: end)
    if isCompressed == self.isCompressed { ratio = (ratio + Double(text.count) / Double(block.count)) / 2 }
    if bytes.isEmpty { bytes = block } else { bytes += block }
    end += Int64(block.count)
    blockCount += 1
    textSize += Int64(text.count)
  }

  /// The bytes of the blocks since this was called last.
  mutating func takeBytes() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  /// The changes of the blocks since this was called last, with the places of their lines.
  mutating func takePlaced() -> [Change<EntryPlace>] {
    defer { placed = [] }
    return placed
  }
}

/// The blocks that end a file that is closed: notes about the last blocks, in a page that has none of them.
enum FileEnding {
  /// Returns the blocks, with the mark of BGZF for the end of a file behind them.
  ///
  /// - Parameters:
  ///   - offset: Where they begin.
  ///   - batch: The last batch of the file.
  ///   - unnoted: The blocks that no notes are about yet.
  ///   - head: The head of the file.
  ///   - composer: Makes them.
  /// - Throws: ``ZlibError`` if there is no memory.
  static func bytes(
    at offset: Int64, batch: UInt64, unnoted: UnnotedBlocks, of head: FileHead, by composer: BlockComposer
  ) throws(ZlibError) -> [UInt8] {
    guard !unnoted.isEmpty else { return BlockFrame.endOfFileMarker }
    let start = BlockStart(part: .ending, batch: batch).line
    let overhead = BlockComposer.storedOverhead + start.count
    var unnoted = unnoted
    var bytes: [UInt8] = []
    var missing = Int((UnnotedBlocks.pageSize - offset % UnnotedBlocks.pageSize) % UnnotedBlocks.pageSize)
    if missing > 0 {
      // At least a line end.
      if missing <= overhead { missing += Int(UnnotedBlocks.pageSize) }
      let spaces = [UInt8](repeating: UInt8(ascii: " "), count: missing - overhead - 1)
      bytes = BlockComposer.storedBlock(start + spaces + [UInt8(ascii: "\n")], salt: head.salt, at: offset)
    }
    while !unnoted.isEmpty {
      let place = offset + Int64(bytes.count)
      let line = unnoted.takeLine(forBlockAt: place, of: head)
      bytes += try composer.block(start + line, isCompressed: true, salt: head.salt, at: place)
    }
    return bytes + BlockFrame.endOfFileMarker
  }
}
#endif
