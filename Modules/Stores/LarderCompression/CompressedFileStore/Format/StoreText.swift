#if Compression
import Larder

/// The lines of the text of a block.
enum StoreText {
  /// The place behind the first line end from a place on, or `nil` if there is none.
  static func lineEnd(in text: [UInt8], from start: Int) -> Int? {
    text.withUnsafeBufferPointer { text in
      var place = start
      while place < text.count {
        if text[place] == UInt8(ascii: "\n") { return place + 1 }
        place += 1
      }
      return nil
    }
  }

  /// Where the changes of a block begin: behind its start and its notes.
  ///
  /// - Parameters:
  ///   - text: The text of the block.
  ///   - startEnd: Where its first line ends.
  static func changesStart(in text: [UInt8], after startEnd: Int) -> Int {
    guard BlockNotes.range(in: text, at: startEnd) != nil else { return startEnd }
    return lineEnd(in: text, from: startEnd) ?? text.count
  }

  /// Calls a closure with change after change of a block.
  ///
  /// - Parameters:
  ///   - text: The text of the block.
  ///   - start: Where the first change begins.
  ///   - body: Gets a change, where its line stands, and whether the line ends in this block.
  /// - Throws: ``StoreLine/Problem`` if a line is no change; what `body` throws.
  static func forEachChange(
    in text: [UInt8], from start: Int, _ body: (Change<Void>, Range<Int>, _ isWhole: Bool) throws -> Void
  ) throws {
    var start = start
    while start < text.count {
      let end = lineEnd(in: text, from: start)
      let range = start..<(end ?? text.count)
      try body(try StoreLine.change(text[range]), range, end != nil)
      start = range.upperBound
    }
  }
}
#endif
