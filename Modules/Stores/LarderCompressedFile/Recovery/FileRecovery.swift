#if Compression
import Larder

/// A recovery that builds the index of a compressed file from its blocks when it is opened.
///
/// It is independent of files and compression. It receives the blocks, and the holes between them, in file order.
///
/// A batch takes effect after its last block. The changes in a hole are known if later blocks have notes about them:
/// keys that were set in the hole are lost, and removals are applied. Without notes, a hole in the base lies between
/// two known keys, because the base is in key order. A hole elsewhere may have changed any entry, so all entries that
/// were last written before it are lost.
struct FileRecovery {
  /// A part of the file with missing blocks, which the next block identifies.
  private struct Hole {
    var range: Range<Int64>
    /// The changes of its blocks, if they are known.
    var notes: [BlockNotes.Block]?
    /// The keys of lines that continue in the hole.
    var cutKeys: [StoreKey] = []
  }

  var found: FoundFile

  /// The end of the last complete batch, and the end of all sound blocks after it.
  private(set) var completeEnd: Int64 = 0
  private(set) var soundEnd: Int64 = 0

  /// The last batch that any block states to be durable.
  private(set) var durableBatch: UInt64 = 0

  /// A Boolean value that indicates whether the base is being read.
  ///
  /// It was written as a whole, so a crash cannot explain missing parts of it.
  private(set) var isInBase = false

  /// A Boolean value that indicates whether the last part was a hole whose extent is not determined yet.
  var isInHole: Bool { hole != nil }

  /// The batch that the next block belongs to.
  var expectedBatch: UInt64 { found.layout.lastBatch + 1 }

  private var isHeadKnown = false
  private var pending: [BatchChange<EntryLocation>] = []
  private var pendingBlockCount = 0
  private var pendingTextSize: Int64 = 0
  private var pendingChangeSize: Int64 = 0
  /// The end of the part that notes have covered so far, which counts only when the batch of the notes is complete.
  private var pendingNotesEnd: Int64 = 0
  private var pendingUnnoted: ArraySlice<FoundFile.UnnotedBlock> = []
  private var nextNumber: UInt32 = 0
  /// A line that continues in the next block.
  private var openLine: (key: StoreKey, location: EntryLocation)?
  private var hole: Hole?

  /// The lower bound of the keys that may follow in the base.
  private var baseBound: StoreKey = ""

  /// Creates a recovery with a known header.
  ///
  /// - Parameters:
  ///   - head: The header.
  ///   - source: The place where the header was found.
  init(_ head: FileHead, _ source: FileIdentity.Source) {
    found = FoundFile(head: head, isWhole: source != .notes)
    guard source != .notes else { return }
    if source == .mark { found.damage.append(0) }
    let end = head.end
    isHeadKnown = true
    isInBase = head.hasBase
    found.layout.lastBatch = head.batch
    found.layout.blockCount = 2
    found.layout.textSize = Int64(head.line.count + head.line(of: .open).count)
    found.layout.baseTextSize = found.layout.textSize
    found.layout.baseEnd = end
    completeEnd = end
    soundEnd = end
  }

  // MARK: Blocks

  /// Adds a block.
  ///
  /// - Throws: ``StoreLine/Problem`` if the block has invalid content.
  mutating func add(_ block: Block) throws {
    guard !block.isContinuation else { return try addContinuation(block) }
    guard let (start, startEnd) = BlockStart.read(block.text) else {
      throw StoreLine.Problem(message: "the block has no start")
    }
    guard openLine == nil else { throw StoreLine.Problem(message: "the line before the block does not end") }
    durableBatch = max(durableBatch, start.durableBatch)
    pendingBlockCount += 1
    pendingTextSize += Int64(block.text.count)
    guard start.part != .ending else {
      if !isInBase, !isInHole, nextNumber == 0 { soundEnd = block.end }
      return
    }
    let changesStart = StoreText.changesStart(in: block.text, after: startEnd)
    try place(start, of: block, changesStart: changesStart)
    try read(block, from: changesStart)
    if let range = BlockNotes.range(in: block.text, at: startEnd) {
      pendingNotesEnd = max(pendingNotesEnd, range.upperBound)
      FileRecovery.removeNoted(&pendingUnnoted, upTo: pendingNotesEnd)
    }
    finishBlock(start, end: block.end)
  }

  /// Checks that a block follows the previous ones, and determines the loss in between.
  private mutating func place(_ start: BlockStart, of block: Block, changesStart: Int) throws {
    let isExpected = isExpected(start)
    if !isHeadKnown {
      isHeadKnown = true
      isInBase = start.part == .base
      found.layout.lastBatch = isInBase ? start.batch : start.batch - min(start.batch, 1)
    }
    defer { hole = nil }
    if isExpected {
      guard let hole else { return }
      loseCutLines(of: hole)
      // A hole before the first block is the header or the end mark.
      if hole.cutKeys.isEmpty, hole.range.lowerBound >= found.layout.baseEnd, found.layout.baseEnd > 0 {
        found.layout.foreignSize += hole.range.upperBound - hole.range.lowerBound
      }
      return
    }
    try checkOrder(of: start)
    if hole == nil { found.damage.append(block.offset) }
    let firstKey = changesStart < block.text.count ? try StoreLine.change(block.text[changesStart...]).key : nil
    // The base ended in the hole, and no batch is missing after it.
    let isAfterBase = start.part == .batch && start.batch == expectedBatch && start.number == 0
    let offset = hole?.range.lowerBound ?? block.offset
    loseChanges(
      at: offset, areInBase: isInBase && (start.part == .base || isAfterBase),
      upTo: start.part == .base ? firstKey : nil)
    if start.part == .batch {
      if isInBase { endBase(at: offset) }
      if start.batch > expectedBatch { completeBatch(start.batch - 1) }
    }
    nextNumber = start.number
  }

  /// Returns whether a block with this start directly follows the previous one.
  func isExpected(_ start: BlockStart) -> Bool {
    guard isHeadKnown else { return start.number == 0 && (start.part == .base || start.batch == 1) }
    let part: BlockStart.Part = isInBase ? .base : .batch
    let batch = isInBase ? found.layout.lastBatch : expectedBatch
    return start.part == part && start.batch == batch && start.number == nextNumber
  }

  private func checkOrder(of start: BlockStart) throws {
    let isLater =
      switch start.part {
      case .base: isInBase && start.batch == found.layout.lastBatch && start.number >= nextNumber
      case .batch where isInBase: start.batch >= expectedBatch
      default: start.batch > expectedBatch || start.batch == expectedBatch && start.number >= nextNumber
      }
    guard isLater else { throw StoreLine.Problem(message: "blocks are out of order") }
  }

  private mutating func addContinuation(_ block: Block) throws {
    pendingBlockCount += 1
    pendingTextSize += Int64(block.text.count)
    // The line began in the hole or before it.
    guard !isInHole else { return }
    guard let line = openLine else {
      throw StoreLine.Problem(message: "the block continues a line that no block began")
    }
    let location = EntryLocation(
      block: line.location.block, offset: line.location.textOffset, length: Int(line.location.length) + block.text.count
    )
    pendingChangeSize += Int64(block.text.count)
    // The blocks in which a line continues are one block without changes.
    if let last = pendingUnnoted.last, last.changes.isEmpty, last.range.upperBound == block.offset {
      pendingUnnoted.removeLast()
      pendingUnnoted.append(.init(range: last.range.lowerBound..<block.end, changes: []))
    } else {
      pendingUnnoted.append(.init(range: block.offset..<block.end, changes: []))
    }
    openLine = (line.key, location)
    guard block.text.last == UInt8(ascii: "\n") else { return }
    openLine = nil
    pending.append(.set(line.key, location))
  }

  private mutating func read(_ block: Block, from start: Int) throws {
    var changes: [BatchChange<Void>] = []
    defer { pendingUnnoted.append(.init(range: block.offset..<block.end, changes: changes)) }
    try StoreText.forEachChange(in: block.text, from: start) { change, range, isWhole in
      changes.append(change)
      pendingChangeSize += Int64(range.count)
      let location = EntryLocation(block: block.offset, offset: range.lowerBound, length: range.count)
      guard isWhole else {
        guard case .set(let key, _) = change else { throw StoreLine.Problem(message: "a line does not end") }
        openLine = (key, location)
        if isInBase { baseBound = key.successor }
        return
      }
      if isInBase, let key = change.key { baseBound = key.successor }
      pending.append(change.mapValue { _, _ in location })
    }
  }

  private mutating func finishBlock(_ start: BlockStart, end: Int64) {
    nextNumber = start.number &+ 1
    // A base always takes effect, so its changes need not stay in memory until its last block.
    if start.part == .base {
      applyPending()
      takeNotes()
    }
    guard start.isLast, openLine == nil else { return }
    if start.part == .base { endBase(at: end) } else { completeBatch(start.batch) }
    completeEnd = end
    soundEnd = end
  }

  private mutating func endBase(at end: Int64) {
    isInBase = false
    completeBatch(found.layout.lastBatch)
    found.layout.baseEnd = end
    found.layout.baseTextSize = found.layout.textSize
    completeEnd = end
    soundEnd = end
  }

  /// Applies the changes of a batch.
  private mutating func completeBatch(_ batch: UInt64) {
    applyPending()
    takeNotes()
    found.layout.blockCount += pendingBlockCount
    found.layout.textSize += pendingTextSize
    found.layout.changeSize += pendingChangeSize
    (pendingBlockCount, pendingTextSize, pendingChangeSize) = (0, 0, 0)
    nextNumber = 0
    found.layout.lastBatch = batch
  }

  private mutating func applyPending() {
    for change in pending { found.index.apply(change) }
    pending.removeAll(keepingCapacity: true)
  }

  /// Takes the notes of blocks that remain in the file into account.
  private mutating func takeNotes() {
    found.notesEnd = max(found.notesEnd, pendingNotesEnd)
    found.unnoted += pendingUnnoted
    pendingUnnoted = []
    FileRecovery.removeNoted(&found.unnoted, upTo: found.notesEnd)
  }

  /// Removes the blocks that notes cover from blocks whose offsets ascend.
  private static func removeNoted(_ blocks: inout ArraySlice<FoundFile.UnnotedBlock>, upTo notesEnd: Int64) {
    while let first = blocks.first, first.range.lowerBound < notesEnd { blocks.removeFirst() }
  }

  // MARK: Holes

  /// Adds a part of the file whose blocks are missing.
  ///
  /// - Parameters:
  ///   - range: The part of the file.
  ///   - notes: The changes of its blocks, if they are known.
  mutating func addHole(_ range: Range<Int64>, notes: [BlockNotes.Block]?) {
    found.damage.append(range.lowerBound)
    var newHole = Hole(range: range, notes: notes)
    if let hole {
      newHole.range = hole.range.lowerBound..<range.upperBound
      newHole.cutKeys = hole.cutKeys
      if let first = hole.notes, let second = notes { newHole.notes = first + second } else { newHole.notes = nil }
    }
    if let line = openLine {
      newHole.cutKeys.append(line.key)
      openLine = nil
    }
    hole = newHole
    if let notes {
      let start = (pendingUnnoted.last ?? found.unnoted.last)?.range.upperBound ?? 0
      for block in notes where block.offset >= max(found.notesEnd, start) {
        pendingUnnoted.append(.init(range: block.offset..<range.upperBound, changes: block.changes))
      }
    } else {
      // Later notes cannot cover blocks that are lost.
      pendingNotesEnd = max(pendingNotesEnd, range.upperBound)
    }
  }

  private mutating func loseCutLines(of hole: Hole) {
    for key in hole.cutKeys { pending.append(.set(key, .lost(in: hole.range.lowerBound))) }
  }

  /// Loses the entries that missing blocks may have changed.
  ///
  /// - Parameters:
  ///   - offset: The offset of the hole, or of the first damage if the previous part was a block.
  ///   - areInBase: A Boolean value that indicates whether the blocks belong to the base, so they changed no earlier
  ///     entry.
  ///   - bound: The first key after the blocks in the base, or `nil` if the base ends with them. Defaults to `nil`.
  private mutating func loseChanges(at offset: Int64, areInBase: Bool, upTo bound: StoreKey? = nil) {
    if let hole, areInBase || hole.notes != nil { loseCutLines(of: hole) }
    if let notes = hole?.notes { return lose(notes, in: offset) }
    applyPending()
    if areInBase {
      found.index.lose(KeyRange(from: baseBound, upTo: bound), in: offset)
    } else {
      found.index.loseAll(before: offset)
    }
  }

  private mutating func lose(_ notes: [BlockNotes.Block], in offset: Int64) {
    for block in notes {
      for change in block.changes {
        if isInBase, let key = change.key { baseBound = max(baseBound, key.successor) }
        pending.append(change.mapValue { _, _ in .lost(in: offset) })
      }
    }
  }

  // MARK: The end

  /// Ends the recovery after the last block.
  ///
  /// - Parameters:
  ///   - end: The end of the blocks.
  ///   - known: The last batch of the file, if it is known. Otherwise the last durable batch counts as the last one.
  mutating func finish(at end: Int64, lastBatch known: UInt64?) {
    let lastBatch = known ?? durableBatch
    let isMissing = lastBatch > found.layout.lastBatch
    let offset = hole?.range.lowerBound ?? end
    if isInBase || isMissing {
      if hole == nil { found.damage.append(end) }
      if let line = openLine { pending.append(.set(line.key, .lost(in: offset))) }
      openLine = nil
      loseChanges(at: offset, areInBase: isInBase && !isMissing)
      if isInBase { endBase(at: end) }
      if isMissing { completeBatch(lastBatch) }
      completeEnd = end
    } else if known != nil, let hole, hole.range.lowerBound >= found.layout.baseEnd {
      // No batch is missing, so the hole never contained one.
      found.layout.foreignSize += hole.range.upperBound - hole.range.lowerBound
    }
    hole = nil
    soundEnd = max(soundEnd, completeEnd)
  }
}
#endif
