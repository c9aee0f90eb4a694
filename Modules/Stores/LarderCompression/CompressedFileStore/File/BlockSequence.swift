#if Compression
import Larder

/// The blocks of one batch, or of a base, as they are made of lines.
struct BlockSequence {
  /// A change whose block is not made yet.
  private struct Unplaced {
    var change: Change<Void>
    var place: BlockCutter.Place
    var length: Int
  }

  private let composer: BlockComposer
  private let isCompressed: Bool
  private var header: BlockHeader
  private var cutter = BlockCutter()

  /// The piece that was cut last: only once another has come is it known not to be the last of all.
  private var waiting: BlockCutter.Piece?
  private var unplaced: [Unplaced] = []

  /// How many blocks there are.
  private(set) var blockCount = 0

  /// The bytes of their texts.
  private(set) var textSize: Int64 = 0

  /// Where the next block begins in the file.
  private(set) var end: Int64

  private var bytes: [UInt8] = []
  private var placed: [Change<EntryPlace>] = []

  /// Begins a sequence.
  ///
  /// - Parameters:
  ///   - kind: What the blocks are.
  ///   - batch: The number of the batch.
  ///   - durableBatch: The last batch that is known to be durable.
  ///   - start: Where the first block begins in the file.
  ///   - composer: Makes them.
  ///   - isCompressed: Whether they are compressed.
  init(
    _ kind: BlockHeader.Kind, batch: UInt64, durableBatch: UInt64, at start: Int64, by composer: BlockComposer,
    isCompressed: Bool
  ) {
    header = BlockHeader(kind: kind, flags: [], batch: batch, durableBatch: durableBatch, number: 0, notes: [])
    self.composer = composer
    self.isCompressed = isCompressed
    end = start
  }

  /// Takes a line.
  ///
  /// - Parameters:
  ///   - line: The line, with its line end.
  ///   - change: What it says.
  /// - Throws: ``ZlibError`` where there is no memory.
  mutating func add(_ line: ArraySlice<UInt8>, _ change: Change<Void>) throws(ZlibError) {
    let note: BlockNote =
      switch change {
      case .set(let key, _): header.kind == .base ? .entries(first: key, last: key) : .set(key)
      case .remove(let key): .remove(key)
      case .removeAll(let range): .removeAll(range)
      }
    let (place, complete) = cutter.add(line, note: note)
    unplaced.append(Unplaced(change: change, place: place, length: line.count))
    for piece in complete {
      if let waiting { try compose(waiting, isLast: false) }
      waiting = piece
    }
  }

  /// Makes the last block; an empty one where there was no line.
  ///
  /// - Throws: ``ZlibError`` where there is no memory.
  mutating func finish() throws(ZlibError) {
    if let piece = cutter.finish() {
      if let waiting { try compose(waiting, isLast: false) }
      waiting = piece
    }
    try compose(waiting ?? BlockCutter.Piece(), isLast: true)
    waiting = nil
  }

  private mutating func compose(_ piece: BlockCutter.Piece, isLast: Bool) throws(ZlibError) {
    header.flags = isLast ? .isLast : []
    let block = try composer.block(header, piece: piece, isCompressed: isCompressed)
    cutter.learn(textSize: piece.text.count, compressedSize: block.count)
    // A line that goes on in the next block is placed where it begins; so all of this block and none of another.
    let count = unplaced.firstIndex { $0.place.piece > blockCount } ?? unplaced.count
    for entry in unplaced[..<count] {
      let place = EntryPlace(block: end, offset: entry.place.offset, length: entry.length)
      switch entry.change {
      case .set(let key, _): placed.append(.set(key, place))
      case .remove(let key): placed.append(.remove(key))
      case .removeAll(let range): placed.append(.removeAll(range))
      }
    }
    unplaced.removeSubrange(..<count)
    bytes += block
    end += Int64(block.count)
    blockCount += 1
    textSize += Int64(piece.text.count)
    header.number += 1
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
#endif
