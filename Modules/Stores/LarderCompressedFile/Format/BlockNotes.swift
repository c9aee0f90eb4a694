#if Compression
import Larder

/// A line of notes in a block.
///
/// It repeats the changes in another part of the file, so the loss is known if that part is damaged.
///
/// ```
/// {"notes":{"from":0,"upTo":4060,"blocks":[{"at":190,"changes":[{"set":["a"]}]}]},"larder":2,…,"salt":"…"}
/// ```
///
/// Blocks in that part that the line does not list contain no changes.
struct BlockNotes {
  /// A block and its changes.
  struct Block {
    /// The offset of the block in the file.
    var offset: Int64
    var changes: [BatchChange<Void>]
  }

  /// The part of the file that the notes cover: all blocks that begin in it.
  var range: Range<Int64>
  var blocks: [Block] = []

  private static let beginning: StaticString = "{\"notes\":{\"from\":"

  /// Returns the part of a file that a line of notes covers, or `nil` if the line has no notes.
  ///
  /// - Parameters:
  ///   - text: The text of a block.
  ///   - start: The offset of the line in the text.
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
  ///   - start: The offset of the line in the text.
  /// - Throws: ``JSONSyntaxError``.
  init(readingLineOf text: [UInt8], at start: Int) throws {
    range = 0..<0
    var blocks: [Block] = []
    var scanner = JSONScanner(text[start...])
    guard let range = BlockNotes.range(in: text, at: start) else { throw scanner.error("expected a line of notes") }
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
        var changes: [BatchChange<Void>] = []
        try scanner.forEachMember { _, name, scanner in
          switch String(decoding: name, as: UTF8.self) {
          case "at": offset = Int64(String(decoding: try scanner.value(), as: UTF8.self))
          case "changes": changes = try ChangeNotes.read(&scanner)
          default: throw scanner.error("unknown member")
          }
        }
        guard let offset else { throw scanner.error("a block has no member at") }
        blocks.append(Block(offset: offset, changes: changes))
      }
    }
    self.blocks = blocks
  }
}

/// The blocks at the end of a file that no notes cover yet.
struct UnnotedBlocks: Sendable {
  /// The unit that a disk loses.
  ///
  /// The notes of a block must not share a page with any part of that block.
  static let pageSize: Int64 = 4096

  /// The approximate maximum size of the notes in one block, in bytes, which only the notes about a single block may
  /// exceed.
  static let maximumSize = 28_000

  /// The end of the part of the file that notes cover.
  private var start: Int64

  private var blocks: [(range: Range<Int64>, changes: [UInt8])] = []

  /// Creates an empty list that starts where the covered part of the file ends.
  init(from start: Int64) {
    self.start = start
  }

  /// Creates a list of the blocks that were found in a file.
  init(_ found: some Sequence<FoundFile.UnnotedBlock>, from start: Int64) {
    self.start = start
    for block in found {
      var notes = ChangeNotes()
      for change in block.changes { notes.add(change) }
      append(block.range, notes)
    }
  }

  var isEmpty: Bool { blocks.isEmpty }

  /// Adds the next block of the file.
  ///
  /// - Parameters:
  ///   - range: The range of the block in the file.
  ///   - changes: The changes in the block.
  mutating func append(_ range: Range<Int64>, _ changes: ChangeNotes) {
    blocks.append((range, changes.bytes))
  }

  /// Removes the blocks that a block at an offset can cover, and returns its line of notes; empty if there aren't any.
  ///
  /// - Parameters:
  ///   - offset: The offset of the block that will hold the line.
  ///   - head: The header of the file.
  mutating func takeLine(forBlockAt offset: Int64, of head: FileHead) -> [UInt8] {
    let page = offset - offset % UnnotedBlocks.pageSize
    var count = 0
    var size = 0
    while count < blocks.count, blocks[count].range.upperBound <= page,
      count == 0 || size + blocks[count].changes.count <= UnnotedBlocks.maximumSize
    {
      size += blocks[count].changes.count + 40
      count += 1
    }
    guard count > 0 else { return [] }
    let end = count < blocks.count ? blocks[count].range.lowerBound : offset
    var line = Array("{\"notes\":{\"from\":\(start),\"upTo\":\(end),\"blocks\":[".utf8)
    line.reserveCapacity(size + 256)
    for (index, block) in blocks[..<count].enumerated() {
      line.append(contentsOf: "\(index > 0 ? "," : ""){\"at\":\(block.range.lowerBound),\"changes\":[".utf8)
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

/// The changes in a block, without their values, in the form in which notes repeat them.
///
/// ```
/// {"set":["user:1001",7,"2",7,"3"]},{"remove":["user:7"]},{"removeAll":{"from":"a","upTo":"b"}}
/// ```
///
/// A number before a key is the length, in bytes, of the prefix that the key shares with the previous key.
struct ChangeNotes: Equatable, Sendable {
  private enum Group { case none, set, remove, removeAll }

  private var text: [UInt8] = []
  private var group = Group.none
  private var lastKey: StoreKey = ""

  /// The minimum length of a shared prefix that is written as a number.
  private static let shortestBeginning = 4

  /// The size of the notes, in bytes.
  var count: Int { text.count + 2 }

  /// The notes, as the elements of a JSON array.
  var bytes: [UInt8] { group == .set || group == .remove ? text + Array("]}".utf8) : text }

  // MARK: Writing

  /// Adds a change.
  mutating func add(_ change: BatchChange<Void>) {
    switch change {
    case .set(let key, _): add(key, to: .set, "{\"set\":[")
    case .remove(let key): add(key, to: .remove, "{\"remove\":[")
    case .removeAll(let range):
      end()
      text.append(contentsOf: "{\"removeAll\":".utf8)
      JSONKey.append(range, to: &text)
      text.append(UInt8(ascii: "}"))
      group = .removeAll
    }
  }

  private mutating func add(_ key: StoreKey, to newGroup: Group, _ start: StaticString) {
    if group == newGroup {
      text.append(UInt8(ascii: ","))
    } else {
      end()
      start.withUTF8Buffer { text.append(contentsOf: $0) }
      group = newGroup
      lastKey = ""
    }
    let shared = ChangeNotes.sharedCount(of: key, lastKey)
    if shared >= ChangeNotes.shortestBeginning {
      text.append(contentsOf: "\(shared),".utf8)
      let rest = key.withUnsafeBytes { StoreKey(copying: UnsafeRawBufferPointer(rebasing: $0[shared...])) }
      JSONKey.append(rest, to: &text)
    } else {
      JSONKey.append(key, to: &text)
    }
    lastKey = key
  }

  /// Returns the length of the common prefix of two keys, in bytes.
  private static func sharedCount(of key: StoreKey, _ other: StoreKey) -> Int {
    key.withUnsafeBytes { key in
      other.withUnsafeBytes { other in
        var count = 0
        while count < key.count, count < other.count, key[count] == other[count] { count += 1 }
        return count
      }
    }
  }

  private mutating func end() {
    switch group {
    case .none: return
    case .set, .remove: text.append(contentsOf: "]},".utf8)
    case .removeAll: text.append(UInt8(ascii: ","))
    }
  }

  // MARK: Reading

  /// Reads the notes in a JSON array.
  ///
  /// - Parameter scanner: A scanner in front of the array. It moves past the array.
  /// - Throws: ``JSONSyntaxError``.
  static func read(_ scanner: inout JSONScanner) throws -> [BatchChange<Void>] {
    var changes: [BatchChange<Void>] = []
    try scanner.forEachElement { scanner in
      try scanner.forEachMember { _, name, scanner in
        switch String(decoding: name, as: UTF8.self) {
        case "set": changes += try keys(&scanner).map { .set($0, ()) }
        case "remove": changes += try keys(&scanner).map { .remove($0) }
        case "removeAll": changes.append(.removeAll(try JSONKey.range(from: &scanner)))
        default: throw scanner.error("unknown kind of change")
        }
      }
    }
    return changes
  }

  private static func keys(_ scanner: inout JSONScanner) throws -> [StoreKey] {
    var keys: [StoreKey] = []
    var last: StoreKey = ""
    try scanner.forEachElement { scanner in
      var shared = 0
      if scanner.current != UInt8(ascii: "\"") {
        let digits = String(decoding: try scanner.value(), as: UTF8.self)
        guard let number = Int(digits), 0...last.count ~= number else { throw scanner.error("invalid prefix length") }
        shared = number
        try scanner.expect(UInt8(ascii: ","))
      }
      let rest = try JSONKey.key(from: &scanner)
      let key = shared == 0 ? rest : StoreKey(bytes: last.bytes.prefix(shared) + rest.bytes)
      guard key.count <= StoreKey.maximumLength else { throw scanner.error("the key is too long") }
      keys.append(key)
      last = key
    }
    return keys
  }
}
#endif
