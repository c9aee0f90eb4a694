#if Compression
import Larder
import LarderCompression

/// A scan of a compressed file from its beginning to its end that tells sound parts from damaged ones and from the
/// torn tail of an incomplete batch.
///
/// The end of a closed file is known, so every invalid part before it is damage. In other files, invalid bytes are a
/// torn tail, unless a later block states that the batch at their offset was durable. The header and the base were
/// written as a whole, so invalid bytes in them are always damage.
struct FileScan {
  private let size: Int64
  /// The offset of the first block to read.
  private let start: Int64
  private var offset: Int64
  private var finder: BlockFinder
  private var ahead: NotesFinder
  private var recovery: FileRecovery

  /// The end mark of the file, if it is readable.
  private var mark: EndMark?

  /// The end of the blocks and the last of their batches, if known.
  private var known: (end: Int64, batch: UInt64)?

  /// Scans a file.
  ///
  /// - Parameters:
  ///   - size: The size of the file, in bytes.
  ///   - known: The end of its blocks and the last of their batches, if the caller knows them. Defaults to `nil`, with
  ///     which the end mark counts.
  ///   - inflaters: The streams that decompress the blocks.
  ///   - read: A closure that reads a range of the file.
  /// - Throws: ``FileProblem``; any error of `read`.
  static func scan(
    size: Int64, upTo known: (end: Int64, batch: UInt64)? = nil, inflaters: StreamPool<ZlibInflater>,
    read: @escaping (Range<Int64>) throws -> [UInt8]
  ) throws -> FoundFile {
    let (head, source) = try FileIdentity.identify(FileWindow(size: size, read: read), inflaters: inflaters)
    func finder() -> BlockFinder {
      BlockFinder(FileWindow(size: size, read: read), salt: head.salt, inflaters: inflaters)
    }
    guard source == .notes || size >= head.end else {
      throw FileProblem.damaged(at: size, reason: "the file ends within its header")
    }
    let start = source == .notes ? 0 : head.markOffset
    var scan = FileScan(
      size: size, start: start, offset: start, finder: finder(), ahead: NotesFinder(finder()),
      recovery: FileRecovery(head, source), known: known)
    return try scan.run()
  }

  private mutating func run() throws -> FoundFile {
    try walk()
    recovery.finish(at: offset, lastBatch: known?.batch)
    var found = recovery.found
    if mark == nil { found.remarks.append(.init(offset: 0, message: "the end mark of the file is damaged")) }
    // A writer removes the end-of-file block before it appends, so bytes after one belong to other programs.
    let marker = Int64(BlockFrame.endOfFileMarker.count)
    let isEnded = try finder.window.hasMarker(at: recovery.soundEnd)
    let behind = max(0, size - recovery.soundEnd - (isEnded ? marker : 0))
    if let ending = try checkEnding() {
      found.isClosed = true
      found.layout.end = ending.end
      found.remarks += ending.remarks
      found.layout.foreignSize += ending.foreignSize
    } else if isEnded, behind > 0 {
      found.layout.end = size
      found.layout.foreignSize += behind
    } else {
      found.layout.end = recovery.completeEnd
      found.layout.tornSize = behind
      if try !isEnded && offset < size && finder.nextBlock(after: offset) != nil {
        found.remarks.append(
          .init(offset: offset, message: "sound blocks follow torn or damaged bytes; they count as torn, too"))
      }
    }
    found.notesEnd = min(found.notesEnd, found.layout.end)
    found.layout.appendStart = found.layout.end
    found.layout.durableBatch = found.layout.lastBatch
    return found
  }

  /// Reads the blocks, up to the end of the file or to its torn tail.
  private mutating func walk() throws {
    while offset < min(known?.end ?? size, size) {
      if let block = try finder.block(at: offset) {
        if mark == nil, !block.isContinuation, let found = EndMark(reading: block.text) {
          take(found)
        } else {
          do {
            try recovery.add(block)
          } catch let problem as StoreLine.Problem {
            throw FileProblem.damaged(at: offset, reason: problem.message)
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

  /// Returns whether invalid bytes were a block.
  private mutating func isDamage() throws -> Bool {
    if known != nil || recovery.isInBase || offset == start { return true }
    // Bytes that were never a block of this file lie between two consecutive blocks.
    if let next = try finder.nextBlock(after: offset), !next.isContinuation,
      let (start, _) = BlockStart.read(next.text), recovery.isExpected(start)
    {
      return true
    }
    return try ahead.isDurable(max(recovery.expectedBatch, 1), from: offset)
  }

  private mutating func take(_ found: EndMark) {
    if case .closed(let end, let batch, _) = found {
      // A store never ends before its beginning.
      guard end >= start else { return }
      if known == nil { known = (end, batch) }
    }
    mark = found
  }

  // MARK: The end

  /// Compares the end of a closed file with its end mark.
  ///
  /// - Returns: The offset of the next block and the findings, or `nil` if the file was not closed.
  private mutating func checkEnding() throws -> (end: Int64, remarks: [FoundFile.Remark], foreignSize: Int64)? {
    guard case .closed(let end, _, let wholeSize) = mark else { return nil }
    var place = end
    while place < size, let block = try finder.block(at: place), BlockStart.read(block.text)?.start.part == .ending {
      place = block.end
    }
    if try finder.window.hasMarker(at: place) { place += Int64(BlockFrame.endOfFileMarker.count) }
    var remarks: [FoundFile.Remark] = []
    if size < wholeSize {
      remarks.append(
        .init(offset: size, message: "the file was truncated: it had \(wholeSize) bytes when it was closed"))
    } else if place != wholeSize {
      remarks.append(.init(offset: place, message: "the end of the file is damaged, after the last entry"))
    }
    if size > wholeSize {
      remarks.append(
        .init(offset: wholeSize, message: "\(size - wholeSize) bytes follow the end that no store has written"))
      return (size, remarks, size - wholeSize)
    }
    if place != wholeSize, size > place { return (size, remarks, size - place) }
    // Only notes are between the last batch and the end of the file, and they will be written again.
    return (min(end, size), remarks, 0)
  }
}

/// The result of scanning a file.
struct FoundFile {
  /// A block that no notes cover, or a damaged one whose changes notes at the end of the file have reported.
  struct UnnotedBlock: Sendable {
    var range: Range<Int64>
    var changes: [BatchChange<Void>]
  }

  /// A part of a file that is not as it was written.
  struct Remark: Equatable {
    var offset: Int64
    var message: String
  }

  /// The header of the file.
  var head: FileHead
  /// A Boolean value that indicates whether the header and the end mark are in place.
  ///
  /// If not, the file is never marked as closed.
  var isWhole: Bool
  var index = CompressedFileIndex()

  /// The offsets of damage.
  var damage: [Int64] = []
  /// Other findings.
  var remarks: [Remark] = []

  var layout = FileLayout()

  /// A Boolean value that indicates whether the file was closed, so all of it is known to be durable.
  var isClosed = false

  /// The end of the part of the file that remaining notes cover, and the blocks after it.
  var notesEnd: Int64 = 0
  var unnoted: ArraySlice<UnnotedBlock> = []
}

/// The layout of a file.
struct FileLayout: Sendable {
  /// The offset of the next block.
  var end: Int64 = 0
  /// The offset of the first block that was appended since this file was opened or created.
  var appendStart: Int64 = 0
  /// The end of the base, or of the header and the end mark if there is no base.
  var baseEnd: Int64 = 0
  var blockCount = 0
  var textSize: Int64 = 0
  /// The total size of the texts up to the end of the base, in bytes.
  var baseTextSize: Int64 = 0
  /// The total size of the lines that are changes, in bytes, including obsolete ones.
  var changeSize: Int64 = 0
  /// The number of the last batch, and of the last one that is known to be durable.
  var lastBatch: UInt64 = 0
  var durableBatch: UInt64 = 0
  /// The number of bytes of an incomplete batch at the end, which the first write removes.
  var tornSize: Int64 = 0
  /// The number of bytes that no store has written.
  var foreignSize: Int64 = 0
}

/// The reason why a file cannot be opened as a store.
struct FileProblem: Error {
  var code: StoreError.Code
  /// The rest of the sentence that the path of the file begins.
  var message: String

  /// The file was not written by Larder.
  static func foreign(_ message: String) -> FileProblem {
    FileProblem(code: .unrecognizedFormat, message: message)
  }

  /// The file has another version of the format.
  static func version(_ version: Int) -> FileProblem {
    let advice = version > StoreLine.version ? "update it" : "use the program that wrote the file"
    return FileProblem(
      code: .versionMismatch,
      message:
        "has version \(version) of the format; this version of Larder reads version \(StoreLine.version), so \(advice)")
  }

  /// The file is damaged beyond recovery.
  static func damaged(at offset: Int64, reason: String) -> FileProblem {
    FileProblem(code: .corrupted, message: "is damaged at byte \(offset): \(reason); it was left unchanged")
  }
}
#endif
