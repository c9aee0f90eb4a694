#if Compression
import Larder

/// The line of notes of a block: what the blocks of another part of the file have changed, so that it is known what is
/// lost if that part is damaged.
///
/// ```
/// {"notes":{"from":0,"upTo":4060,"blocks":[{"at":190,"changes":[{"set":["a"]}]}]},"larder":2,…,"salt":"…"}
/// ```
///
/// Blocks between the two places that it does not list have changed nothing.
struct BlockNotes {
  /// What a block has changed.
  struct Block {
    /// Where the block begins.
    var offset: Int64
    var changes: [Change<Void>]
  }

  /// The part of the file whose blocks the notes list: all that begin in it.
  var range: Range<Int64>
  var blocks: [Block] = []

  private static let beginning: StaticString = "{\"notes\":{\"from\":"

  /// Reads which part of a file a line of notes is about; `nil` if the line is none.
  ///
  /// - Parameters:
  ///   - text: The text of a block.
  ///   - start: Where the line begins.
  static func range(in text: [UInt8], at start: Int) -> Range<Int64>? {
    var reader = FixedReader(text, from: start)
    guard reader.skip(beginning), let from = reader.number(), reader.skip(",\"upTo\":"), let upTo = reader.number(),
      from <= upTo
    else { return nil }
    return Int64(from)..<Int64(upTo)
  }

  /// Reads a line of notes.
  ///
  /// - Parameters:
  ///   - text: The text of a block.
  ///   - start: Where the line begins.
  /// - Throws: ``JSONSyntaxError``.
  init(readingLineOf text: [UInt8], at start: Int) throws {
    range = 0..<0
    var blocks: [Block] = []
    var scanner = JSONScanner(text[start...])
    guard let range = BlockNotes.range(in: text, at: start) else { throw scanner.error("these are no notes") }
    self.range = range
    try scanner.expect(UInt8(ascii: "{"))
    _ = try scanner.string()
    try scanner.expect(UInt8(ascii: ":"))
    try scanner.forEachMember { _, name, scanner in
      guard name.elementsEqual("blocks".utf8) else {
        _ = try scanner.value()
        return
      }
      try scanner.forEachElement { scanner in
        var offset: Int64?
        var changes: [Change<Void>] = []
        try scanner.forEachMember { _, name, scanner in
          switch String(decoding: name, as: UTF8.self) {
          case "at": offset = Int64(String(decoding: try scanner.value(), as: UTF8.self))
          case "changes": changes = try ChangeNotes.read(&scanner)
          default: throw scanner.error("a member is unknown")
          }
        }
        guard let offset else { throw scanner.error("a member is missing") }
        blocks.append(Block(offset: offset, changes: changes))
      }
    }
    self.blocks = blocks
  }
}

/// The blocks at the end of a file that no notes are about yet.
struct UnnotedBlocks: Sendable {
  private struct Block {
    var offset: Int64
    var end: Int64
    var changes: [UInt8]
  }

  /// What a disk loses at once: the notes of a block must not stand in a page that has a part of the block.
  static let pageSize: Int64 = 4096

  /// About how many bytes of notes a block takes at most, unless a single block has more.
  static let maximumSize = 28_000

  /// From where on no notes are about the file.
  private var start: Int64

  private var blocks: [Block] = []

  /// Begins where notes end.
  init(from start: Int64) {
    self.start = start
  }

  var isEmpty: Bool { blocks.isEmpty }

  /// Adds the next block of the file.
  ///
  /// - Parameters:
  ///   - range: Where it is.
  ///   - changes: What it has changed.
  mutating func append(_ range: Range<Int64>, _ changes: ChangeNotes) {
    blocks.append(Block(offset: range.lowerBound, end: range.upperBound, changes: changes.bytes))
  }

  /// Takes the blocks that a block at a place can note, and makes its line of notes; empty if there are none.
  ///
  /// - Parameters:
  ///   - offset: Where the block begins that has the line.
  ///   - head: The head of the file.
  mutating func takeLine(forBlockAt offset: Int64, of head: FileHead) -> [UInt8] {
    let page = offset - offset % UnnotedBlocks.pageSize
    var count = 0
    var size = 0
    while count < blocks.count, blocks[count].end <= page,
      count == 0 || size + blocks[count].changes.count <= UnnotedBlocks.maximumSize
    {
      size += blocks[count].changes.count + 40
      count += 1
    }
    guard count > 0 else { return [] }
    let end = count < blocks.count ? blocks[count].offset : offset
    var line = Array("{\"notes\":{\"from\":\(start),\"upTo\":\(end),\"blocks\":[".utf8)
    line.reserveCapacity(size + 256)
    for (index, block) in blocks[..<count].enumerated() {
      if index > 0 { line.append(UInt8(ascii: ",")) }
      line.append(contentsOf: "{\"at\":".utf8)
      line.append(decimal: block.offset)
      line.append(contentsOf: ",\"changes\":[".utf8)
      line.append(contentsOf: block.changes)
      line.append(contentsOf: "]}".utf8)
    }
    line.append(contentsOf: "]},".utf8)
    line.append(contentsOf: head.identity)
    line.append(contentsOf: "}\n".utf8)
    blocks.removeFirst(count)
    start = end
    return line
  }
}
#endif
