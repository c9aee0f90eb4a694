#if Compression
import Larder

/// Finds the blocks of a file: bytes that have its seal.
struct BlockFinder {
  /// A block.
  struct Block {
    var offset: Int64
    var end: Int64
    var isContinuation: Bool
    var text: [UInt8]
  }

  private var window: FileWindow
  private let inflaters: StreamPool<Inflater>
  private let salt: UInt64

  /// What the last search has found, and from where on it has searched.
  private var lastSearch: (start: Int64, found: Block?)?

  /// How many bytes may still be read of what only looks like blocks.
  private var patience: Int64

  /// Makes a finder.
  ///
  /// - Parameters:
  ///   - window: The file.
  ///   - salt: The salt of the file.
  ///   - inflaters: Decompress the blocks.
  init(_ window: FileWindow, salt: UInt64, inflaters: StreamPool<Inflater>) {
    self.window = window
    self.salt = salt
    self.inflaters = inflaters
    patience = BlockFinder.patience(withFileOf: window.size)
  }

  /// How many bytes may be read of what only looks like blocks: only a file that was made for it has more of them, and
  /// without a bound it would take hours.
  ///
  /// - Parameter size: The bytes of the file.
  static func patience(withFileOf size: Int64) -> Int64 {
    let (product, isTooMuch) = size.multipliedReportingOverflow(by: 16)
    return isTooMuch ? .max : max(product, 64 << 20)
  }

  /// The bytes of the file.
  var size: Int64 { window.size }

  /// Returns the block at a place, or `nil` if none is there.
  mutating func block(at offset: Int64) throws -> Block? {
    let size = try window.withBytes(at: offset, count: BlockFrame.headerSize) { BlockFrame.size(at: $0) }
    guard let size, offset <= window.size - Int64(size) else { return nil }
    let (salt, inflaters) = (salt, inflaters)
    return try window.withBytes(at: offset, count: size) { bytes in
      guard bytes.count == size, BlockFrame.isSealed(bytes, salt: salt, at: offset) else { return nil }
      do {
        let text = try BlockText.text(of: bytes, by: inflaters)
        return Block(
          offset: offset, end: offset + Int64(size), isContinuation: BlockFrame.isContinuation(bytes), text: text)
      } catch is BlockText.Damage {
        return nil
      }
    }
  }

  /// Returns the first block behind a place.
  ///
  /// - Throws: ``FileProblem/damaged(at:reason:)`` if there are too many places that only look like blocks.
  mutating func nextBlock(after offset: Int64) throws -> Block? {
    if let lastSearch, lastSearch.start <= offset, lastSearch.found.map({ $0.offset > offset }) ?? true {
      return lastSearch.found
    }
    var found: Block?
    var start = offset + 1
    while found == nil, start < window.size {
      let candidates = try window.places(of: BlockFrame.magic, from: start)
      for place in candidates.places where found == nil {
        found = try block(at: place)
        guard found == nil else { break }
        patience -= try window.withBytes(at: place, count: BlockFrame.headerSize) {
          Int64(BlockFrame.size(at: $0) ?? 4)
        }
        guard patience > 0 else {
          throw FileProblem.damaged(at: offset, reason: "too many places behind it only look like blocks")
        }
      }
      start = candidates.end
    }
    lastSearch = (offset, found)
    return found
  }

  /// Whether the mark of BGZF for the end of a file stands at a place.
  mutating func hasMarker(at offset: Int64) throws -> Bool {
    try window.hasMarker(at: offset)
  }
}
#endif
