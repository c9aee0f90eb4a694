#if Compression
import Larder

/// A recovery that builds the index of a file of version 1 from its blocks when it is opened.
///
/// It is independent of files and compression. It receives the sound blocks and the damaged ones in file order.
///
/// A batch takes effect after its last block. The changes of a damaged block are taken from its notes, or else from its
/// text, if either is sound: removals are applied, and keys that were set are lost. If both are damaged, a loss in the
/// base lies between two known keys, because the base is in key order. A loss elsewhere may have changed any entry, so
/// all entries that are not written again afterwards are lost.
struct Version1Recovery {
  /// The reason why a file cannot be read.
  enum Problem: Error, Equatable {
    /// A block is not where it belongs.
    case misplaced
    /// A block is sound, but its content is invalid.
    case malformed(String)
  }

  /// The sound parts of a damaged block.
  enum Evidence {
    /// The header is sound.
    case header(Version1Header)
    /// The text is sound.
    case text([UInt8])
    /// No part is sound.
    case nothing
  }

  /// A line that continues in the next block.
  private struct OpenLine {
    var key: StoreKey
    var location: EntryLocation
  }

  private(set) var index = CompressedFileIndex()

  /// The offsets of damaged blocks.
  private(set) var damage: [Int64] = []

  /// The number of the last complete batch.
  private(set) var lastBatch: UInt64 = 0

  /// The end of the sound part of the file: the end of the last block of a complete batch.
  private(set) var completeEnd: Int64 = 0

  /// The end of the base, or of the header if there is no base.
  private(set) var baseEnd: Int64 = 0

  /// The total size of the texts up to that end, in bytes.
  private(set) var baseTextSize: Int64 = 0

  /// The number of blocks in the complete part of the file, and the total size of their texts.
  private(set) var blockCount = 0
  private(set) var textSize: Int64 = 0

  private(set) var codecName: String?

  /// Whether the base is being read.
  ///
  /// It was written as a whole and made durable, so a crash cannot explain missing parts of it.
  private(set) var isInBase = false

  private var pending: [Change<EntryLocation>] = []
  private var pendingBlockCount = 0
  private var pendingTextSize: Int64 = 0
  private var nextNumber: UInt32 = 0
  private var openLine: OpenLine?

  /// Whether the header is lost, except possibly for the codec.
  private var isHeadLost = false

  /// Whether blocks may be missing, because some were damaged beyond recognition.
  private var isLoose = false

  /// The beginning of damage in the base whose end is not known yet, and the lower bound of the affected keys.
  private var openGap: (block: Int64, lowerBound: StoreKey)?

  /// The lower bound of the keys that may follow in the base.
  private var baseBound: StoreKey = ""

  /// The batch that the next block belongs to.
  var expectedBatch: UInt64 { lastBatch + 1 }

  // MARK: Sound blocks

  /// Adds a sound block.
  ///
  /// - Parameters:
  ///   - header: The header of the block.
  ///   - text: The text of the block.
  ///   - block: The offset of the block in the file.
  ///   - end: The end of the block in the file.
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

  /// Checks that a block follows the previous ones.
  private mutating func place(_ header: Version1Header) throws {
    if isHeadLost {
      // The first block after the header repeats its content.
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
      // The end of the base is damaged.
      guard isLoose else { throw Problem.misplaced }
      endBase()
      nextNumber = 0
    }
    guard header.kind == .batch else { throw Problem.misplaced }
    if header.batch == expectedBatch, header.number == nextNumber { return }
    guard isLoose, header.batch >= expectedBatch else { throw Problem.misplaced }
    if header.batch > expectedBatch {
      // The previous batch was complete, since another one follows it.
      completeBatch(header.batch - 1)
    } else {
      guard header.number >= nextNumber else { throw Problem.misplaced }
    }
  }

  /// Marks the line in which a block begins as lost, because its beginning is lost.
  private mutating func loseBeginning(of header: Version1Header, in block: Int64) throws {
    switch Version1Note.notes(of: header.notes)?.first {
    case .set(let key), .entries(let key, _): pending.append(.set(key, .lost(in: block)))
    default: throw Problem.malformed("the block begins within a line that its notes do not name")
    }
  }

  private func firstKey(of header: Version1Header, text: [UInt8]) throws -> StoreKey? {
    if case .entries(let first, _)? = Version1Note.notes(of: header.notes)?.first { return first }
    guard !header.flags.contains(.beginsWithinLine) else { return nil }
    return try StoreLine.change(text[...]).key
  }

  /// Reads the lines of a text.
  private mutating func read(_ text: [UInt8], beginsWithinLine: Bool, at block: Int64) throws {
    var start = text.startIndex
    if beginsWithinLine {
      let end = StoreText.lineEnd(in: text, from: start)
      let length = (end ?? text.endIndex) - start
      if let line = openLine {
        let location = EntryLocation(
          block: line.location.block, offset: line.location.textOffset, length: Int(line.location.length) + length)
        openLine = end == nil ? OpenLine(key: line.key, location: location) : nil
        if end != nil { pending.append(.set(line.key, location)) }
      }
      start += length
    } else if let line = openLine {
      guard isLoose else { throw Problem.misplaced }
      openLine = nil
      pending.append(.set(line.key, .lost(in: line.location.block)))
    }
    while start < text.endIndex {
      let end = StoreText.lineEnd(in: text, from: start)
      let line = text[start..<(end ?? text.endIndex)]
      let location = EntryLocation(block: block, offset: start, length: line.count)
      switch try StoreLine.change(line) {
      case .set(let key, _):
        baseBound = key.successor
        if end == nil { openLine = OpenLine(key: key, location: location) } else { pending.append(.set(key, location)) }
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
    // A base always takes effect, so its changes need not stay in memory until its last block.
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

  /// Applies the changes of a batch.
  private mutating func completeBatch(_ batch: UInt64) {
    if let line = openLine { pending.append(.set(line.key, .lost(in: line.location.block))) }
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

  /// Adds a damaged block that was durable.
  ///
  /// - Parameters:
  ///   - evidence: The sound parts of the block.
  ///   - block: The offset of the block in the file.
  ///   - end: The end of the block, or the offset of the next sound block.
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
      guard let notes = Version1Note.notes(of: header.notes) else { throw Problem.malformed("the notes are invalid") }
      // The notes also include the line that began before the block.
      openLine = nil
      for note in notes { lose(note, in: block) }
      finishBlock(header, textSize: 0, end: end)
    case .text(let text):
      do {
        try lose(text, in: block)
      } catch is StoreLine.Problem {
        // The text begins within a line, so that line and the following ones are lost.
        loseUnknown(in: block)
      }
      isLoose = true
    case .nothing:
      loseUnknown(in: block)
      isLoose = true
    }
    // The end is sound, whatever happens to this block.
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
      // A line that began in the previous block and counted as sound ends here.
      lose(first...last, in: block)
      baseBound = last.successor
    case .codec: break
    }
  }

  private mutating func lose(_ text: [UInt8], in block: Int64) throws {
    var start = text.startIndex
    var changes: [Change<EntryLocation>] = []
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
    if let line = openLine { pending.append(.set(line.key, .lost(in: line.location.block))) }
    openLine = nil
    if isInBase {
      openGap = openGap ?? (block, baseBound)
    } else {
      // This includes the changes of the interrupted batch.
      applyPending()
      index.loseAll(before: block)
    }
  }

  private mutating func lose(_ range: KeyRange, in block: Int64) {
    // The pending changes of a base have smaller keys, so they do not overlap the range.
    index.lose(range, in: block)
  }

  // MARK: The end

  /// Ends the recovery after the last block.
  ///
  /// - Parameters:
  ///   - end: The end of the sound part.
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
