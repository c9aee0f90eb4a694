#if Compression
/// Cuts lines into the texts of blocks, each of about as many bytes as compress to a given size.
///
/// How well lines compress is learnt from the blocks before. A line that does not fit into one block begins one, and
/// goes on in as many as it takes, each of which has its note; so the key of a line is never cut.
struct BlockCutter {
  /// The text of a block.
  struct Piece: Equatable {
    var text: [UInt8]
    var notes: [BlockNote]
    var beginsWithinLine = false

    /// The bytes that the notes will take.
    fileprivate(set) var notesCount = 0

    init(text: [UInt8] = [], notes: [BlockNote] = []) {
      self.text = text
      self.notes = notes
    }
  }

  /// Where a line begins.
  struct Place: Equatable {
    /// The number of its piece, counted from 0.
    var piece: Int
    /// The place in the text of that piece.
    var offset: Int
  }

  /// The most bytes that the text and the notes of a piece have together; what a block needs besides fits behind it.
  static let maximumContent = 65_000

  /// About how many bytes a block is to have when it is compressed.
  let targetSize: Int

  /// How many bytes of text are expected to become one.
  private var ratio = 4.0

  private var current = Piece()
  private var completeCount = 0

  /// Makes a cutter.
  ///
  /// - Parameter targetSize: About how many bytes a block is to have when it is compressed; 4,096 unless said.
  init(targetSize: Int = 4096) {
    self.targetSize = targetSize
  }

  /// Takes a line.
  ///
  /// - Parameters:
  ///   - line: The line, with its line end.
  ///   - note: What the header notes of it; neighbouring ``BlockNote/entries(first:last:)`` become one.
  /// - Returns: Where it begins, and the pieces that are complete now.
  mutating func add(_ line: some Collection<UInt8>, note: BlockNote) -> (place: Place, complete: [Piece]) {
    var complete: [Piece] = []
    let noteSize = BlockCutter.size(of: note)
    if current.text.count + current.notesCount + line.count + noteSize > BlockCutter.maximumContent { cut(&complete) }
    let place = Place(piece: completeCount, offset: current.text.count)
    current.add(note)
    var rest = line[...]
    while true {
      let part = rest.prefix(BlockCutter.maximumContent - current.text.count - current.notesCount)
      current.text.append(contentsOf: part)
      rest = rest.dropFirst(part.count)
      guard !rest.isEmpty else { break }
      cut(&complete)
      current.beginsWithinLine = true
      current.add(note)
    }
    if Double(current.text.count) >= Double(targetSize) * ratio { cut(&complete) }
    return (place, complete)
  }

  /// Ends the last piece.
  ///
  /// - Returns: The piece, or `nil` where nothing is left.
  mutating func finish() -> Piece? {
    var complete: [Piece] = []
    cut(&complete)
    return complete.first
  }

  /// Learns how well a piece compressed.
  mutating func learn(textSize: Int, compressedSize: Int) {
    guard textSize > 0, compressedSize > 0 else { return }
    ratio = (ratio + Double(textSize) / Double(compressedSize)) / 2
  }

  private mutating func cut(_ complete: inout [Piece]) {
    guard !current.text.isEmpty else { return }
    complete.append(current)
    completeCount += 1
    current = Piece()
  }

  fileprivate static func size(of note: BlockNote) -> Int {
    var bytes: [UInt8] = []
    note.append(to: &bytes)
    return bytes.count
  }
}

extension BlockCutter.Piece {
  /// Takes a note.
  fileprivate mutating func add(_ note: BlockNote) {
    var note = note
    if case .entries(let first, _)? = notes.last, case .entries(_, let last) = note {
      notesCount -= BlockCutter.size(of: notes.removeLast())
      note = .entries(first: first, last: last)
    }
    notes.append(note)
    notesCount += BlockCutter.size(of: note)
  }
}
#endif
