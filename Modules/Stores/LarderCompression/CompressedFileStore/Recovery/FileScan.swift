#if Compression
import Larder

/// Goes through a compressed file from its beginning to its end, and finds out what of it is good, what is the torn
/// tail of a batch that never happened, and what is damaged.
///
/// Of a file that was closed it is known where it ends, so whatever is wrong before is damage. Of another, bytes that are
/// no block are a torn tail unless a later block says that the batch which should stand there was durable. What is wrong
/// with the head and the base, which come into being whole, is damage in any case.
struct FileScan {
  private let size: Int64
  /// Where the blocks begin that are looked for.
  private let start: Int64
  private var finder: BlockFinder
  private var ahead: NotesFinder
  private var recovery: FileRecovery
  private var offset: Int64 = 0

  /// What the file says about its end, if it does.
  private var mark: EndMark?

  /// Up to where blocks are expected, and the last of their batches, if that is known.
  private var known: (end: Int64, batch: UInt64)?

  /// Goes through a file.
  ///
  /// - Parameters:
  ///   - size: How many bytes it has.
  ///   - known: Where its blocks end and the last of their batches, if the caller knows that; else the file may say.
  ///   - inflaters: Decompress it.
  ///   - read: Reads bytes of it.
  /// - Throws: ``FileProblem``; what `read` throws.
  static func scan(
    size: Int64, upTo known: (end: Int64, batch: UInt64)? = nil, inflaters: StreamPool<Inflater>,
    read: @escaping (Range<Int64>) throws -> [UInt8]
  ) throws -> FoundFile {
    let found = try FileIdentity.identify(FileWindow(size: size, read: read), inflaters: inflaters)
    guard let (head, source) = found else {
      return try Version1Scan.scan(size: size, inflaters: inflaters, read: read)
    }
    func finder() -> BlockFinder {
      BlockFinder(FileWindow(size: size, read: read), salt: head.salt, inflaters: inflaters)
    }
    guard source == .notes || size >= head.end else {
      throw FileProblem.damaged(at: size, reason: "the file ends within its beginning")
    }
    var scan = FileScan(size: size, head: head, source: source, finder: finder(), ahead: NotesFinder(finder()))
    scan.known = known
    return try scan.run()
  }

  private init(
    size: Int64, head: FileHead, source: FileIdentity.Source, finder: BlockFinder, ahead: NotesFinder
  ) {
    self.size = size
    self.finder = finder
    self.ahead = ahead
    recovery = FileRecovery(head, source)
    start = source == .notes ? 0 : head.markOffset
    offset = start
  }

  private mutating func run() throws -> FoundFile {
    try walk()
    recovery.finish(at: offset, lastBatch: known?.batch)
    let ending = try checkEnding()
    let isMarked = mark != nil
    let (size, completeEnd, soundEnd) = (size, recovery.completeEnd, recovery.soundEnd)
    // A writer removes the mark of the end of a file before it appends, so what stands behind one is of others.
    let isEnded = try ending == nil && finder.hasMarker(at: soundEnd)
    let behind = max(0, size - soundEnd - (isEnded ? Int64(BlockFrame.endOfFileMarker.count) : 0))
    let isTorn = try ending == nil && !isEnded && offset < size && finder.nextBlock(after: offset) != nil
    let tornOffset = offset
    return recovery.complete { found in
      if !isMarked { found.remarks.append(.init(offset: 0, message: "the mark of the end of the file is damaged")) }
      if let ending {
        found.isClosed = true
        found.end = ending.end
        found.remarks += ending.remarks
        found.foreignSize += ending.foreignSize
      } else if isEnded, behind > 0 {
        found.end = size
        found.foreignSize += behind
      } else {
        found.end = completeEnd
        found.tornSize = behind
      }
      if isTorn {
        found.remarks.append(
          .init(
            offset: tornOffset,
            message: "sound blocks stand behind bytes that were torn or are damaged; they count as torn, too"))
      }
      found.notesEnd = min(found.notesEnd, found.end)
    }
  }

  /// Takes block after block, up to the end of the file or to what is torn.
  private mutating func walk() throws {
    while offset < min(known?.end ?? size, size) {
      if let block = try finder.block(at: offset) {
        if mark == nil, !block.isContinuation, let found = EndMark(reading: block.text) {
          take(found)
        } else {
          do {
            try recovery.add(block)
          } catch let problem as FileRecovery.Malformed {
            throw FileProblem.damaged(at: offset, reason: problem.reason)
          }
        }
        offset = block.end
        continue
      }
      guard try isDamage() else { return }
      let limit = min(known?.end ?? size, size)
      let next = try finder.nextBlock(after: offset)
      let end = min(next?.offset ?? limit, limit)
      recovery.addHole(offset..<end, notes: try ahead.notes(about: offset..<end))
      offset = end
    }
  }

  /// Whether bytes that are no block were one once.
  private mutating func isDamage() throws -> Bool {
    if known != nil || recovery.isInBase || offset == start { return true }
    // What never was a block of this file stands between two that follow each other.
    if let next = try finder.nextBlock(after: offset), !next.isContinuation,
      let (start, _) = BlockStart.read(next.text), recovery.isExpected(start)
    {
      return true
    }
    return try ahead.isDurable(max(recovery.expectedBatch, 1), from: offset)
  }

  private mutating func take(_ found: EndMark) {
    if case .closed(let end, let batch, _) = found {
      // No store ends before its beginning.
      guard end >= start else { return }
      if known == nil { known = (end, batch) }
    }
    mark = found
  }

  // MARK: The end

  /// Compares the end of a file that was closed with what the mark says.
  ///
  /// - Returns: Where the next block goes, and what is wrong; `nil` if the file was not closed.
  private mutating func checkEnding() throws -> (end: Int64, remarks: [FoundFile.Remark], foreignSize: Int64)? {
    guard case .closed(let end, _, let wholeSize) = mark else { return nil }
    var place = end
    while place < size, let block = try finder.block(at: place), BlockStart.read(block.text)?.start.part == .ending {
      place = block.end
    }
    if try finder.hasMarker(at: place) { place += Int64(BlockFrame.endOfFileMarker.count) }
    var remarks: [FoundFile.Remark] = []
    if size < wholeSize {
      remarks.append(.init(offset: size, message: "the file was cut: it had \(wholeSize) bytes when it was closed"))
    } else if place != wholeSize {
      remarks.append(.init(offset: place, message: "the end of the file is damaged, behind the last entry"))
    }
    if size > wholeSize {
      remarks.append(
        .init(offset: wholeSize, message: "\(size - wholeSize) bytes stand behind the end that no store has written"))
      return (size, remarks, size - wholeSize)
    }
    if place != wholeSize, size > place { return (size, remarks, size - place) }
    // What stands between the last batch and the end of the file has notes only, which are written anew.
    return (min(end, size), remarks, 0)
  }
}
#endif
