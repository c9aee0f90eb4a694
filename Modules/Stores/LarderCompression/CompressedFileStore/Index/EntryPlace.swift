#if Compression
/// Where the line of an entry stands, in 12 bytes: an index of a million entries has a million of these.
struct EntryPlace: Equatable, Sendable {
  private var blockLow: UInt32
  private var blockHigh: UInt16
  private var offset: UInt16

  /// The bytes of the line with its line end; 0 where the line is lost.
  private(set) var length: UInt32

  /// The most bytes that a line may have.
  static let maximumLength = Int(UInt32.max)

  /// Makes a place.
  ///
  /// - Parameters:
  ///   - block: Where in the file the block begins in which the line begins; below 2 to the 48th.
  ///   - offset: Where in the text of that block the line begins.
  ///   - length: The bytes of the line with its line end, on into the next blocks where it is longer than the rest of
  ///     the first; at most ``maximumLength``.
  init(block: Int64, offset: Int, length: Int) {
    blockLow = UInt32(truncatingIfNeeded: block)
    blockHigh = UInt16(truncatingIfNeeded: block >> 32)
    self.offset = UInt16(truncatingIfNeeded: offset)
    self.length = UInt32(clamping: length)
  }

  /// The place of a line that was lost with a damaged block.
  ///
  /// - Parameter block: Where in the file the damage begins.
  static func lost(in block: Int64) -> EntryPlace {
    EntryPlace(block: block, offset: 0, length: 0)
  }

  /// Where in the file the block begins in which the line begins.
  var block: Int64 { Int64(blockHigh) << 32 | Int64(blockLow) }

  /// Where in the text of that block the line begins.
  var textOffset: Int { Int(offset) }

  /// Whether the line was lost.
  var isLost: Bool { length == 0 }
}
#endif
