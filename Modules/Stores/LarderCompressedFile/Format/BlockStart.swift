#if Compression
/// The first line of a block, which says which part of the file the block is.
///
/// ```
/// {"base":7}                                           the only block of a base that has the batches up to 7
/// {"base":7,"block":2,"more":true}                     one of several, counted from 0, and not the last
/// {"batch":8,"durable":7}                              the only block of a batch
/// {"batch":8,"block":1,"durable":7,"more":true}
/// {"durable":8}                                        no part of a batch: fills a page, or has notes only
/// ```
///
/// `durable` is the last batch that was known to be on disk when the block was written.
struct BlockStart: Equatable {
  /// The part of a file that a block belongs to.
  enum Part: Equatable {
    /// The output of the last compaction: entries in key order, each key once.
    case base
    /// A batch of changes.
    case batch
    /// The end of a closed file, which has no changes.
    case ending
  }

  var part: Part
  /// The number of the batch, of the last batch that a base includes, or of the last durable batch before an ending.
  var batch: UInt64
  /// The index of the block within its batch or base, from 0.
  var number: UInt32 = 0
  /// The last batch that is known to be durable.
  var durableBatch: UInt64 = 0
  /// A Boolean value that indicates whether the block is the last one of its batch or base.
  var isLast = true

  /// The maximum number of a batch, which every JSON implementation can represent exactly.
  static let maximumBatch: UInt64 = 1 << 53

  /// The maximum size of the line, in bytes.
  static let maximumSize = 96

  // MARK: Writing

  /// The line, including its newline.
  var line: [UInt8] {
    guard part != .ending else { return Array("{\"durable\":\(batch)}\n".utf8) }
    var line = "{\"\(part == .base ? "base" : "batch")\":\(batch)"
    if number > 0 { line += ",\"block\":\(number)" }
    if part == .batch { line += ",\"durable\":\(durableBatch)" }
    if !isLast { line += ",\"more\":true" }
    return Array((line + "}\n").utf8)
  }

  // MARK: Reading

  /// Reads the first line of a block, or returns `nil` if the text does not begin with one.
  ///
  /// - Parameter text: The text of the block.
  /// - Returns: The start, and the offset of the next line.
  static func read(_ text: [UInt8]) -> (start: BlockStart, end: Int)? {
    var reader = FixedReader(text)
    var start: BlockStart
    if reader.skip("{\"batch\":") {
      start = BlockStart(part: .batch, batch: 0)
    } else if reader.skip("{\"base\":") {
      start = BlockStart(part: .base, batch: 0)
    } else if reader.skip("{\"durable\":") {
      start = BlockStart(part: .ending, batch: 0)
    } else {
      return nil
    }
    guard let batch = reader.number(), batch <= maximumBatch else { return nil }
    start.batch = batch
    if start.part != .ending {
      if reader.skip(",\"block\":") {
        guard let number = reader.number(), number <= UInt32.max else { return nil }
        start.number = UInt32(number)
      }
      start.durableBatch = start.part == .base ? batch : 0
      if start.part == .batch {
        // No batch can be durable before it is written.
        guard reader.skip(",\"durable\":"), let durable = reader.number(), durable < batch else { return nil }
        start.durableBatch = durable
      }
      start.isLast = !reader.skip(",\"more\":true")
    } else {
      start.durableBatch = batch
    }
    guard reader.skip("}\n") else { return nil }
    return (start, reader.position)
  }
}

/// A reader of text with a fixed form.
struct FixedReader {
  private let text: [UInt8]
  private(set) var position = 0

  init(_ text: [UInt8], from position: Int = 0) {
    self.text = text
    self.position = position
  }

  /// Moves past some text if it comes next, and returns whether it does.
  mutating func skip(_ expected: StaticString) -> Bool {
    let isThere = expected.withUTF8Buffer { text[position...].starts(with: $0) }
    if isThere { position += expected.utf8CodeUnitCount }
    return isThere
  }

  /// Reads a decimal number below 2 to the 63rd, or returns `nil` if there are no digits or the number is larger.
  mutating func number() -> UInt64? {
    var number: UInt64 = 0
    let start = position
    while position < text.count, case let digit = text[position] &- UInt8(ascii: "0"), digit <= 9 {
      guard position - start < 18 else { return nil }
      number = number * 10 + UInt64(digit)
      position += 1
    }
    return position > start ? number : nil
  }
}
#endif
