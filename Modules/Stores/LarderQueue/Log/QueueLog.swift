import Larder
import LarderFiles

/// The files of a queue, for the one object that has them open: segments to which frames are appended, and the lock.
///
/// Everything here blocks.
struct QueueLog: Sendable {
  let folder: QueueFolder
  let files: SegmentFiles
  let lock: FileLock?

  /// The files that must be at their paths whenever the queue writes.
  var opened: OpenedFiles
  let identity: UInt64
  let codecName: String

  var segment: SegmentFile
  /// The end of the current segment; `nil` until the first write since the queue was opened.
  var log: AppendLog?
  /// Where opening found the end of the current segment.
  let found: FoundEnd
  private var hasBegunWriting = false
  var nextFrame: UInt64
  /// Whether making the next segment has failed, but its file may be there.
  var mayHaveNext = false
  /// Behind it stands at most what failed.
  var acknowledgedSize: Int64
  /// How many bytes of the current segment were there from its beginning, the header included.
  var initialSize: Int64
  /// The sizes of the segments before the current one that are needed.
  var olderSizes: [UInt32: Int64]
  /// The sizes of unneeded segments that are not removed yet.
  var leftovers: [UInt32: Int64] = [:]
  /// Whether one of them could not be removed since the current segment was begun.
  var hasFailedToRemove = false
  /// How many readers need the segments to stay.
  var pinCount = 0
  /// The damaged places of the segments, which are kept in files of their own before a segment is removed.
  var damagedPlaces: [UInt32: [Range<Int64>]]
  /// Empty files that are to say by their names what is missing: segments, or the end of one.
  private(set) var notes: [String]
  /// The end of the log according to the name of a file.
  var mark: SegmentEnd?
  /// Whether the last frame is that of closing.
  var isMarkedClosed: Bool
  var reserve: SpaceReserve
  /// The cleaning that is going on.
  var cleaning: Cleaning?
  /// Segments in which something cannot be read that is needed: they stay.
  var unreadable: Set<UInt32> = []
  /// Segments whose damage could not be kept elsewhere: they stay until the next opening.
  var withheld: Set<UInt32> = []

  /// The end of the last segment as opening found it.
  struct FoundEnd: Sendable {
    /// How many bytes of the segment count.
    var size: Int64
    /// How many of them are known to be durable; what follows must be written anew before the first acknowledgement.
    var durableSize: Int64
    /// The number of the next frame.
    var nextFrame: UInt64
    /// Whether the last frame is that of closing.
    var isMarkedClosed: Bool
    /// Whether the end is damaged: what is appended there could make a whole frame of it again, by chance.
    var isDamaged = false
  }

  /// The other files as opening found them.
  struct FoundFiles: Sendable {
    var olderSizes: [UInt32: Int64] = [:]
    var damagedPlaces: [UInt32: [Range<Int64>]] = [:]
    var notes: [String] = []
    var mark: SegmentEnd?
  }

  /// Takes over files that were read; nothing is written before the first call of ``makeReady(_:at:mayUseReserve:)``.
  ///
  /// - Parameters:
  ///   - folder: The folder.
  ///   - lock: The lock, and the files that are held open.
  ///   - segment: The last segment.
  ///   - found: Where it ends.
  ///   - others: The other files.
  init(
    folder: QueueFolder, lock: (lock: FileLock?, opened: OpenedFiles), segment: SegmentFile, found: FoundEnd,
    others: FoundFiles
  ) {
    self.folder = folder
    files = SegmentFiles(folder: folder)
    self.lock = lock.lock
    opened = lock.opened
    self.segment = segment
    self.found = found
    acknowledgedSize = found.size
    initialSize = segment.headerLength + segment.header.initialLength
    nextFrame = found.nextFrame
    olderSizes = others.olderSizes
    damagedPlaces = others.damagedPlaces
    notes = others.notes
    mark = others.mark
    isMarkedClosed = found.isMarkedClosed
    identity = segment.header.identity
    codecName = segment.header.codecName
    reserve = SpaceReserve(in: folder)
    files.insert(segment.file, forSegment: segment.header.number)
    opened.note(segment.attributes.identity, at: segment.path, as: .data)
  }

  /// The segment that is written.
  var number: UInt32 { segment.header.number }

  var segmentCount: Int { olderSizes.count + 1 }

  /// The bytes of each segment that count, in order.
  var sizes: [SegmentEnd] {
    olderSizes.map { SegmentEnd(number: $0, size: $1) }.sorted { $0.number < $1.number }
      + [SegmentEnd(number: number, size: acknowledgedSize)]
  }

  /// The bytes of the segments that are needed.
  var neededSize: Int64 { olderSizes.values.reduce(size, +) }

  /// The bytes of all segments.
  var totalSize: Int64 { leftovers.values.reduce(neededSize, +) }

  /// The bytes of the current segment that count.
  var size: Int64 { log?.size ?? found.size }

  var durableSize: Int64 { log?.durableSize ?? found.durableSize }

  /// Whether frames can be appended as things are; otherwise ``makeReady(_:at:mayUseReserve:)`` comes first.
  ///
  /// A segment takes only so many items with ids that there is room in the reserve to remember these: on a full disk it is
  /// what frees the segment.
  func isReady(for ledger: QueueLedger) -> Bool {
    !isSealed && size - initialSize < segmentLimit && ledger.uses[number].idBytes < reserve.idLimit
  }

  /// From how many bytes on a new segment is begun.
  var segmentLimit: Int64 {
    reserve.isSpent ? min(folder.segmentSize, reserve.segmentLimit) : folder.segmentSize
  }

  /// Whether frames of the present version can stand behind those of the current segment, and it is the newest one.
  var isOfPresentVersion: Bool { segment.header.version == SegmentHeader.version && (mark?.number ?? 0) <= number }

  /// Whether nothing may be appended to the current segment: nothing was written since the queue was opened, or the state
  /// of the segment is unknown after a failure, or that of the next one is, which says where this one ends.
  var isSealed: Bool { log.map { $0.failure != nil } ?? true || mayHaveNext }

  // MARK: Writing

  /// Makes sure that frames can be appended.
  ///
  /// The first call since the queue was opened removes what earlier owners left behind, and notes what is damaged. Frames
  /// that are not known to be durable are written anew in a segment of their own: to synchronize them where they are is
  /// not enough, since after a failed synchronization the next one succeeds without having written anything.
  ///
  /// - Parameters:
  ///   - ledger: What the queue holds.
  ///   - now: The time, in microseconds.
  ///   - mayUseReserve: Whether the reserve may be given back for it.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func makeReady(_ ledger: inout QueueLedger, at now: Int64, mayUseReserve: Bool) throws {
    if !hasBegunWriting {
      try checkFiles(during: .apply)
      // A segment is removed only if the name of the one that does not need it is durable.
      try folder.fileSystem.synchronizeDirectory(at: folder.path)
      try tidyUp()
      hasBegunWriting = true
      try reserve.make(like: segment.attributes, at: now, in: number)
      if found.durableSize == found.size, !found.isDamaged, isOfPresentVersion {
        log = try AppendLog(continuing: segment.file, at: found.size)
      }
    }
    if !isReady(for: ledger) { try beginSegment(&ledger, mayUseReserve: mayUseReserve) }
  }

  /// Removes what earlier owners left behind, and notes what is missing in files that stay.
  private mutating func tidyUp() throws {
    let names = try folder.fileSystem.contentsOfDirectory(at: folder.path)
    try folder.removeStaleTemporaryFiles(among: names)
    let noted = Set(names.filter(folder.isNoteOfDamage) + notes.map { FilePaths.split($0).name })
    for number in names.compactMap(folder.segmentNumber(ofName:))
    where number < segment.header.number && olderSizes[number] == nil
      // One that was missing, and that somebody has put back too late, is his.
      && !noted.contains(FilePaths.split(folder.missingPath(number)).name)
    {
      _ = try removeFile(
        ofSegment: number, isDamaged: noted.contains { folder.isNoteOfDamage($0, inSegment: number) })
    }
    for end in names.compactMap(folder.end(ofName:)) where end != mark {
      try folder.fileSystem.removeFile(at: folder.endPath(end))
    }
    for note in notes where !names.contains(FilePaths.split(note).name) { try makeEmptyFile(note) }
  }

  func makeEmptyFile(_ path: String) throws {
    let file = try folder.fileSystem.open(path, .createIfMissing)
    try file.adopt(segment.attributes)
    try file.close()
  }

  /// Empties a buffer, for frames that are to be appended next.
  ///
  /// - Parameters:
  ///   - buffer: The buffer.
  ///   - clockOffset: What is added to times as they are written, in microseconds.
  func reset(_ buffer: inout FrameBuffer, clockOffset: Int64) {
    buffer.reset(
      segment: number, salt: segment.header.salt, base: size, durable: durableSize, firstNumber: nextFrame,
      clockOffset: clockOffset)
  }

  /// Appends frames, as durably as the folder says.
  ///
  /// - Parameters:
  ///   - frames: The frames; the last is ended.
  ///   - mayUseReserve: Whether the reserve may be given back for it.
  ///   - isDurable: Whether they are to be durable at once where the folder says so; defaults to `true`.
  /// - Throws: ``StoreError`` if the files were moved or replaced; `FileError`. Nothing was changed where the log is not
  ///   sealed then.
  mutating func append(_ frames: FrameBuffer, mayUseReserve: Bool, isDurable: Bool = true) throws {
    try checkFiles(during: .apply)
    try usingReserve(mayUseReserve) { log in try log.log?.append(frames.bytes) }
    reserve.spend(Int64(frames.bytes.count))
    if folder.durability == .synced, isDurable { try log?.synchronize() }
    acknowledgedSize = size
    nextFrame += UInt64(frames.count)
    isMarkedClosed = false
  }

  /// Does something, and once more with the space of the reserve where there was no room.
  mutating func usingReserve(_ mayUseReserve: Bool, _ body: (inout QueueLog) throws -> Void) throws {
    do {
      try body(&self)
    } catch let error as FileError where error.isOutOfRoom && mayUseReserve && reserve.isThere {
      try reserve.give(in: number)
      try body(&self)
    }
  }

  /// Makes everything durable that was appended.
  mutating func synchronize() throws(FileError) {
    try log?.synchronize()
  }

  /// Makes sure that the files of the queue are still at their paths; see ``StoreFiles/check(_:during:)``.
  func checkFiles(during operation: StoreOperation) throws {
    try folder.check(opened, during: operation)
  }

  // MARK: Closing

  /// Whether the current segment has got another name since it was opened, under which it could be opened elsewhere.
  private var hasOtherNames: Bool {
    get throws(FileError) { try segment.file.attributes().linkCount > 1 }
  }

  /// Marks the log as closed if anything was written, makes it durable, and gives the lock back.
  ///
  /// - Parameter ledger: What the queue holds.
  /// - Throws: ``StoreError``; `FileError`. The lock is given back all the same.
  mutating func close(_ ledger: inout QueueLedger) throws {
    let result = Result { try markClosed(&ledger) }
    files.removeAll()
    let closing = Result { try segment.file.close() }
    try lock?.release()
    try result.get()
    try closing.get()
  }

  private mutating func markClosed(_ ledger: inout QueueLedger) throws {
    guard folder.access == .readWrite else { return }
    try checkFiles(during: .close)
    guard log != nil else { return }
    // A segment with several names would be refused at the next opening.
    if try isSealed || hasOtherNames { try beginSegment(&ledger, mayUseReserve: true) }
    try log?.synchronize()
    guard !isMarkedClosed else { return }
    var buffer = FrameBuffer()
    reset(&buffer, clockOffset: 0)
    buffer.appendClosingFrame()
    try usingReserve(true) { log in try log.log?.append(buffer.bytes) }
    try log?.synchronize()
    try setMark(SegmentEnd(number: number, size: size))
    try folder.fileSystem.synchronizeDirectory(at: folder.path)
  }
}
