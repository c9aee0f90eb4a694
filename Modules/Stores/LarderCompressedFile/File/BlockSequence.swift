#if Compression
import Larder
import LarderCompression

/// The blocks of one batch or base, built from its lines.
///
/// A block receives about as many lines as compress to 4 KiB, estimated from the previous blocks. A line that does not
/// fit into one block begins a block, and continues in blocks that contain nothing else.
struct BlockSequence {
  private let composer: BlockComposer
  private let isCompressed: Bool
  private let head: FileHead
  private var start: BlockStart

  /// The line of notes at the beginning of the block.
  private var notesLine: [UInt8]
  private var lines: [UInt8] = []
  private var notes = ChangeNotes()
  /// The changes of the block, with the offsets and lengths of their lines among its lines.
  private var unplaced: [(change: BatchChange<Void>, offset: Int, length: Int)] = []

  /// The expected compression ratio.
  private var ratio = 4.0

  /// The blocks of the file that no notes cover yet, including those of this sequence.
  private(set) var unnoted: UnnotedBlocks

  /// The number of blocks.
  private(set) var blockCount = 0
  /// The total size of their texts, in bytes.
  private(set) var textSize: Int64 = 0
  /// The total size of the lines that are changes, in bytes.
  private(set) var changeSize: Int64 = 0
  /// The offset of the next block in the file.
  private(set) var end: Int64

  private var bytes: [UInt8] = []
  private var placed: [BatchChange<EntryLocation>] = []

  /// The approximate target size of a compressed block, in bytes.
  private static let targetSize = 4096.0
  /// The maximum size of the notes about one block, in bytes, so they fit into a later block.
  private static let maximumNotesSize = 24_000
  /// The minimum size of a line of notes for which an otherwise uncompressed block is compressed, in bytes.
  private static let leastCompressedNotesSize = 512

  /// Creates a sequence.
  ///
  /// - Parameters:
  ///   - start: The part of the file that the blocks belong to.
  ///   - offset: The offset of the first block in the file.
  ///   - head: The header of the file.
  ///   - unnoted: The preceding blocks that no notes cover yet.
  ///   - composer: The composer of the blocks.
  ///   - isCompressed: A Boolean value that indicates whether to compress the blocks.
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

  /// Adds a line.
  ///
  /// - Parameters:
  ///   - line: The line, including its newline.
  ///   - change: The change that the line represents.
  /// - Throws: ``ZlibError`` if there is not enough memory.
  mutating func add(_ line: ArraySlice<UInt8>, _ change: BatchChange<Void>) throws(ZlibError) {
    if !lines.isEmpty, isFull || line.count > room { try endBlock(isLast: false) }
    unplaced.append((change, lines.count, line.count))
    notes.add(change)
    changeSize += Int64(line.count)
    let first = line.prefix(room)
    lines.append(contentsOf: first)
    guard first.count < line.count else { return }
    try endBlock(isLast: false, goingOnWith: line.dropFirst(first.count))
  }

  /// Completes the last block, which is empty if there was no line after the previous block.
  ///
  /// - Throws: ``ZlibError`` if there is not enough memory.
  mutating func finish() throws(ZlibError) {
    try endBlock(isLast: true)
  }

  /// Completes a block with the lines so far, and adds blocks for the rest of its last line.
  private mutating func endBlock(isLast: Bool, goingOnWith rest: ArraySlice<UInt8> = []) throws(ZlibError) {
    start.isLast = isLast
    let prefix = start.line + notesLine
    let offset = end
    // Notes are repetitive, and occur only once per page.
    let isCompressed = isCompressed || notesLine.count >= BlockSequence.leastCompressedNotesSize
    try append(prefix + lines, isContinuation: false, isCompressed: isCompressed)
    for entry in unplaced {
      let location = EntryLocation(block: offset, offset: prefix.count + entry.offset, length: entry.length)
      placed.append(entry.change.mapValue { _, _ in location })
    }
    unnoted.append(offset..<end, notes)
    let restOffset = end
    var rest = rest
    while !rest.isEmpty {
      try append(
        Array(rest.prefix(BlockFrame.maximumTextSize)), isContinuation: true, isCompressed: self.isCompressed)
      rest = rest.dropFirst(BlockFrame.maximumTextSize)
    }
    // The next block may share the page where these end, so its notes must not cover them.
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

  /// Returns the bytes of the blocks since the last call.
  mutating func takeBytes() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  /// Returns the changes of the blocks since the last call, with the locations of their lines.
  mutating func takePlaced() -> [BatchChange<EntryLocation>] {
    defer { placed = [] }
    return placed
  }
}

/// The blocks at the end of a closed file.
///
/// They hold notes about the last blocks, in a page that contains none of those.
enum FileEnding {
  /// Returns the blocks, followed by the end-of-file block of BGZF.
  ///
  /// - Parameters:
  ///   - offset: The offset of the blocks in the file.
  ///   - batch: The last batch of the file.
  ///   - unnoted: The blocks that no notes cover yet.
  ///   - head: The header of the file.
  ///   - composer: The composer of the blocks.
  /// - Throws: ``ZlibError`` if there is not enough memory.
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
      // The text has at least a newline.
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
