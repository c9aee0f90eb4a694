#if Compression
import Larder
import LarderTesting
import Testing

@testable import LarderCompressedFile
@testable import LarderCompression

/// Inspects the bytes of a store's file.
enum StoreFileParts {
  private static let inflaters = StreamPool { () throws(ZlibError) in try ZlibInflater() }

  static func scan(_ content: [UInt8]) throws -> FoundFile {
    try FileScan.scan(size: Int64(content.count), inflaters: inflaters) {
      Array(content[Int($0.lowerBound)..<Int($0.upperBound)])
    }
  }

  /// Returns the range of each block, and the keys that it changes or whose lines it continues.
  static func blocks(of content: [UInt8]) throws -> [(range: Range<Int>, keys: [StoreKey])] {
    let salt = try FileHead(readingLine: content[23...].prefix { $0 != 10 }).salt
    var finder = BlockFinder(
      FileWindow(size: Int64(content.count)) { Array(content[Int($0.lowerBound)..<Int($0.upperBound)]) }, salt: salt,
      inflaters: inflaters)
    var blocks: [(range: Range<Int>, keys: [StoreKey])] = []
    var offset: Int64 = 0
    while let block = try finder.block(at: offset) {
      var keys: [StoreKey] = []
      if block.isContinuation {
        keys = Array(blocks.last?.keys.suffix(1) ?? [])
      } else if let (start, startEnd) = BlockStart.read(block.text), start.part != .ending {
        try StoreText.forEachChange(in: block.text, from: StoreText.changesStart(in: block.text, after: startEnd)) {
          change, _, _ in change.key.map { keys.append($0) }
        }
      }
      blocks.append((Int(block.offset)..<Int(block.end), keys))
      offset = block.end
    }
    return blocks
  }

  /// Loses one page of a file after another, and expects that each loss affects only entries that its blocks held or
  /// changed, that no older value and no removed entry is back, and that no loss goes unreported.
  ///
  /// - Parameters:
  ///   - content: The file.
  ///   - pages: The offsets of the pages that are lost. Defaults to all pages.
  ///   - end: The offset of the first page that is never lost. Defaults to the end of the file.
  ///   - context: The comment of a failed expectation.
  static func expectThatAPageLosesOnlyItsEntries(
    _ content: [UInt8], pages: [Int]? = nil, upTo end: Int = .max, _ context: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let sound = try scan(content)
    #expect(sound.damage.isEmpty, "\(context)", sourceLocation: sourceLocation)
    let blocks = try blocks(of: content)
    for page in pages ?? Array(stride(from: 0, to: min(end, content.count), by: 4096)) {
      var damaged = content
      for place in page..<min(page + 4096, content.count) { damaged[place] = 0 }
      let found = try scan(damaged)
      let allowed = Set(blocks.filter { $0.range.overlaps(page..<page + 4096) }.flatMap(\.keys))
      var wrong: [StoreKey] = []
      sound.index.entries.forEach { key, place in
        switch found.index.find(key) {
        case .found(place): return
        case .lost where allowed.contains(key): return
        default: wrong.append(key)
        }
      }
      found.index.entries.forEach { key, _ in
        // No removed entry is back.
        if !sound.index.entries.contains(key) { wrong.append(key) }
      }
      #expect(
        wrong.isEmpty && found.index.gap(in: .all) == nil && found.layout.lastBatch == sound.layout.lastBatch,
        "page at \(page) of \(content.count), \(context): \(wrong.count) keys", sourceLocation: sourceLocation)
    }
  }

  /// Returns a value that compresses badly.
  static func longValue(_ count: Int, using generator: inout SeededGenerator) throws -> JSONText {
    var text = ""
    while text.utf8.count < count { text += String(UInt64.random(in: 0 ... .max, using: &generator), radix: 36) }
    return JSONText(string: text)
  }
}
#endif
