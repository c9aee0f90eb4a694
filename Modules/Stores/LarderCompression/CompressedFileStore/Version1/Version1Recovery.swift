#if Compression
import Larder

/// Builds the index of a file of version 1 from its blocks, one after another, as they are found when it is opened.
///
/// It knows nothing of files or of compression: it is told what stands where, and what is damaged.
///
/// A batch takes effect once its last block has been seen. What a damaged block did is taken from its notes, or else
/// from its text, whichever is still sound: removals are made, and of what was set it is known that it is lost. Where
/// both are damaged it is known between which keys the loss lies, as long as it is in the base, where keys are in
/// order; elsewhere every entry that is not written again afterwards may have been changed by it, and counts as lost.
struct Version1Recovery {
  /// What makes a file unusable.
  enum Problem: Error, Equatable {
    /// A block stands where it does not belong.
    case misplaced
    /// A block is sound, and what it says makes no sense.
    case malformed(String)
  }

  /// What is known of a block that is damaged.
  enum Evidence {
    /// Its header is sound.
    case header(Version1Header)
    /// Its text is sound.
    case text([UInt8])
    /// Nothing is.
    case nothing
  }

  /// A line that goes on in the next block.
  private struct OpenLine {
    var key: StoreKey
    var place: EntryPlace
  }

  private(set) var index = CompressedFileIndex()

  /// Where blocks are damaged.
  private(set) var damage: [Int64] = []

  /// The number of the last batch that is complete.
  private(set) var lastBatch: UInt64 = 0

  /// Up to where the file is good: behind the last block of a complete batch.
  private(set) var completeEnd: Int64 = 0

  /// The end of the base, or of the head where there is no base.
  private(set) var baseEnd: Int64 = 0

  /// The bytes of text up to there.
  private(set) var baseTextSize: Int64 = 0

  /// What the complete part of the file has.
  private(set) var blockCount = 0
  private(set) var textSize: Int64 = 0

  private(set) var codecName: String?

  /// Whether a base is being read.
  ///
  /// It was written at once and durably, so no crash explains what is missing of it.
  private(set) var isInBase = false

  private var pending: [Change<EntryPlace>] = []
  private var pendingBlockCount = 0
  private var pendingTextSize: Int64 = 0
  private var nextNumber: UInt32 = 0
  private var openLine: OpenLine?

  /// Whether nothing is known of the head but the codec, if that.
  private var isHeadLost = false

  /// Whether blocks may be missing, since some were damaged beyond recognition.
  private var isLoose = false

  /// Where damage in the base has begun whose end is not known yet, and behind which key.
  private var openGap: (block: Int64, lowerBound: StoreKey)?

  /// The key behind all that the base has had so far.
  private var baseBound: StoreKey = ""

  /// The batch that the next block belongs to.
  var expectedBatch: UInt64 { lastBatch + 1 }

  // MARK: Sound blocks

  /// Takes a block that is sound.
  ///
  /// - Parameters:
  ///   - header: Its header.
  ///   - text: Its text.
  ///   - block: Where it begins.
  ///   - end: Where it ends.
  /// - Throws: ``Problem``.
  mutating func add(_ header: Version1Header, text: [UInt8], at block: Int64, end: Int64) throws {
    switch header.kind {
    case .head:
      guard block == 0 else { throw Problem.misplaced }
      do {
        codecName = try StoreLine.codecName(ofHead: text[...])
      } catch let problem as StoreLine.Problem {
        throw Problem.malformed(problem.message)
      }
      blockCount += 1
      textSize += Int64(text.count)
      endHead(header, end: end)
    case .base, .batch:
      guard block > 0 else { throw Problem.misplaced }
      try place(header)
      do {
        if header.flags.contains(.beginsWithinLine), openLine == nil { try loseBeginning(of: header, in: block) }
        if header.kind == .base, let gap = openGap, let first = try firstKey(of: header, text: text) {
          lose(KeyRange(from: gap.lowerBound, upTo: first), in: gap.block)
          openGap = nil
        }
        try read(text, beginsWithinLine: header.flags.contains(.beginsWithinLine), at: block)
      } catch let problem as StoreLine.Problem {
        throw Problem.malformed(problem.message)
      }
      isLoose = false
      finishBlock(header, textSize: text.count, end: end)
    }
  }

  private mutating func endHead(_ header: Version1Header, end: Int64) {
    lastBatch = header.batch
    isInBase = !header.flags.contains(.isLast)
    completeEnd = end
    baseEnd = end
    baseTextSize = textSize
  }

  /// Makes sure that a block follows those before it.
  private mutating func place(_ header: Version1Header) throws {
    if isHeadLost {
      // What the head would have said, the first block behind it says, too.
      isHeadLost = false
      isInBase = header.kind == .base
      lastBatch = isInBase ? header.batch : max(header.batch, 1) - 1
    }
    if isInBase {
      if header.kind == .base {
        guard header.batch == lastBatch, header.number == nextNumber || isLoose && header.number > nextNumber else {
          throw Problem.misplaced
        }
        return
      }
      // The end of the base was destroyed.
      guard isLoose else { throw Problem.misplaced }
      endBase()
      nextNumber = 0
    }
    guard header.kind == .batch else { throw Problem.misplaced }
    if header.batch == expectedBatch, header.number == nextNumber { return }
    guard isLoose, header.batch >= expectedBatch else { throw Problem.misplaced }
    if header.batch > expectedBatch {
      // What came before was complete, or it would not have been followed by another.
      completeBatch(header.batch - 1)
    } else {
      guard header.number >= nextNumber else { throw Problem.misplaced }
    }
  }

  /// Takes note that the line is lost in which a block begins: what stands before is.
  private mutating func loseBeginning(of header: Version1Header, in block: Int64) throws {
    switch Version1Note.notes(of: header.notes)?.first {
    case .set(let key), .entries(let key, _): pending.append(.set(key, .lost(in: block)))
    default: throw Problem.malformed("it begins within a line that its notes do not name")
    }
  }

  private func firstKey(of header: Version1Header, text: [UInt8]) throws -> StoreKey? {
    if case .entries(let first, _)? = Version1Note.notes(of: header.notes)?.first { return first }
    guard !header.flags.contains(.beginsWithinLine) else { return nil }
    return try StoreLine.change(text[...]).key
  }

  /// Takes the lines of a text.
  private mutating func read(_ text: [UInt8], beginsWithinLine: Bool, at block: Int64) throws {
    var start = text.startIndex
    if beginsWithinLine {
      let end = StoreText.lineEnd(in: text, from: start)
      let length = (end ?? text.endIndex) - start
      if let line = openLine {
        let place = EntryPlace(
          block: line.place.block, offset: line.place.textOffset, length: Int(line.place.length) + length)
        openLine = end == nil ? OpenLine(key: line.key, place: place) : nil
        if end != nil { pending.append(.set(line.key, place)) }
      }
      start += length
    } else if let line = openLine {
      guard isLoose else { throw Problem.misplaced }
      openLine = nil
      pending.append(.set(line.key, .lost(in: line.place.block)))
    }
    while start < text.endIndex {
      let end = StoreText.lineEnd(in: text, from: start)
      let line = text[start..<(end ?? text.endIndex)]
      let place = EntryPlace(block: block, offset: start, length: line.count)
      switch try StoreLine.change(line) {
      case .set(let key, _):
        baseBound = key.successor
        if end == nil { openLine = OpenLine(key: key, place: place) } else { pending.append(.set(key, place)) }
      case .remove(let key): pending.append(.remove(key))
      case .removeAll(let range): pending.append(.removeAll(range))
      }
      start += line.count
    }
  }

  private mutating func finishBlock(_ header: Version1Header, textSize: Int, end: Int64) {
    pendingBlockCount += 1
    pendingTextSize += Int64(textSize)
    nextNumber = header.number &+ 1
    // A base happens whatever becomes of it, so nothing of it has to wait in memory for its last block.
    if header.kind == .base { applyPending() }
    guard header.flags.contains(.isLast) else { return }
    if header.kind == .base {
      endBase()
      baseEnd = end
      baseTextSize = self.textSize
    } else {
      completeBatch(header.batch)
    }
    completeEnd = end
  }

  private mutating func endBase() {
    if let gap = openGap { lose(KeyRange(from: gap.lowerBound, upTo: nil), in: gap.block) }
    openGap = nil
    isInBase = false
    completeBatch(lastBatch)
  }

  /// Makes what the blocks of a batch say take effect.
  private mutating func completeBatch(_ batch: UInt64) {
    if let line = openLine { pending.append(.set(line.key, .lost(in: line.place.block))) }
    openLine = nil
    applyPending()
    blockCount += pendingBlockCount
    textSize += pendingTextSize
    pendingBlockCount = 0
    pendingTextSize = 0
    nextNumber = 0
    lastBatch = batch
  }

  private mutating func applyPending() {
    for change in pending { index.apply(change) }
    pending.removeAll(keepingCapacity: true)
  }

  // MARK: Damaged blocks

  /// Takes a block that is damaged, though it was durable once.
  ///
  /// - Parameters:
  ///   - evidence: What is still sound of it.
  ///   - block: Where it begins.
  ///   - end: Where it ends, or where the next block begins that is sound.
  /// - Throws: ``Problem``.
  mutating func addDamaged(_ evidence: Evidence, at block: Int64, end: Int64) throws {
    damage.append(block)
    if block == 0 {
      try addDamagedHead(evidence, end: end)
      return
    }
    switch evidence {
    case .header(let header):
      try place(header)
      guard let notes = Version1Note.notes(of: header.notes) else { throw Problem.malformed("its notes make no sense") }
      // What had begun before is among the notes, too.
      openLine = nil
      for note in notes { lose(note, in: block) }
      finishBlock(header, textSize: 0, end: end)
    case .text(let text):
      do {
        try lose(text, in: block)
      } catch is StoreLine.Problem {
        // It begins within a line: then it is that line which is lost, and those behind it.
        loseUnknown(in: block)
      }
      isLoose = true
    case .nothing:
      loseUnknown(in: block)
      isLoose = true
    }
    // Whatever becomes of it, what stands behind is good.
    if !isInBase, pending.isEmpty, openLine == nil { completeEnd = end }
  }

  private mutating func addDamagedHead(_ evidence: Evidence, end: Int64) throws {
    switch evidence {
    case .header(let header):
      guard header.kind == .head, case .codec(let name)? = Version1Note.notes(of: header.notes)?.first else {
        throw Problem.misplaced
      }
      codecName = name
      endHead(header, end: end)
    case .text(let text):
      do {
        codecName = try StoreLine.codecName(ofHead: text[...])
      } catch let problem as StoreLine.Problem {
        throw Problem.malformed(problem.message)
      }
      fallthrough
    case .nothing:
      isHeadLost = true
      isInBase = true
      completeEnd = end
      baseEnd = end
    }
  }

  private mutating func lose(_ note: Version1Note, in block: Int64) {
    switch note {
    case .set(let key): pending.append(.set(key, .lost(in: block)))
    case .remove(let key): pending.append(.remove(key))
    case .removeAll(let range): pending.append(.removeAll(range))
    case .entries(let first, let last):
      if let gap = openGap {
        lose(KeyRange(from: gap.lowerBound, upTo: first), in: gap.block)
        openGap = nil
      }
      // A line that began in the block before and was taken for good ends here.
      lose(first...last, in: block)
      baseBound = last.successor
    case .codec: break
    }
  }

  private mutating func lose(_ text: [UInt8], in block: Int64) throws {
    var start = text.startIndex
    var changes: [Change<EntryPlace>] = []
    while start < text.endIndex {
      let end = StoreText.lineEnd(in: text, from: start) ?? text.endIndex
      switch try StoreLine.change(text[start..<end]) {
      case .set(let key, _): changes.append(.set(key, .lost(in: block)))
      case .remove(let key): changes.append(.remove(key))
      case .removeAll(let range): changes.append(.removeAll(range))
      }
      start = end
    }
    if isInBase, let gap = openGap, let first = changes.first?.key {
      lose(KeyRange(from: gap.lowerBound, upTo: first), in: gap.block)
      openGap = nil
    }
    if isInBase, let last = changes.last?.key { baseBound = last.successor }
    openLine = nil
    pending += changes
  }

  private mutating func loseUnknown(in block: Int64) {
    if let line = openLine { pending.append(.set(line.key, .lost(in: line.place.block))) }
    openLine = nil
    if isInBase {
      openGap = openGap ?? (block, baseBound)
    } else {
      // Of the batch that was interrupted, too.
      applyPending()
      index.loseAll(before: block)
    }
  }

  private mutating func lose(_ range: KeyRange, in block: Int64) {
    // What is pending of a base stands before this in key order, so the two do not meet.
    index.lose(range, in: block)
  }

  // MARK: The end

  /// Takes note that the file ends.
  ///
  /// - Parameters:
  ///   - end: Where its good part ends.
  ///   - durableBatch: The last batch that is known to have been durable.
  mutating func finish(at end: Int64, durableBatch: UInt64) {
    guard isInBase else {
      if durableBatch >= expectedBatch {
        completeBatch(durableBatch)
        completeEnd = end
      }
      return
    }
    // The end of the base is missing.
    if openGap == nil { openGap = (end, baseBound) }
    if damage.last != end { damage.append(end) }
    endBase()
    completeEnd = end
    baseEnd = end
  }
}
#endif
