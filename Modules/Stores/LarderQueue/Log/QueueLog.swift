import Larder
import LarderFiles

/// The files of an open queue: the segments that frames are appended to, and the lock.
///
/// All methods block.
struct QueueLog: Sendable {
  let folder: QueueFolder
  let files: SegmentFiles
  let lock: FileLock?

  /// The files that must be at their paths whenever the queue writes.
  var opened: OpenedFiles
  let identity: UInt64

  /// The name of the codec of new items.
  ///
  /// If the current segment states another one, the next write begins a new segment.
  var codecName: String

  var segment: SegmentFile
  /// The append log of the current segment; `nil` until the first write since the queue was opened.
  var log: AppendLog?
  /// The end of the current segment when the queue was opened.
  let found: FoundEnd
  private var hasBegunWriting = false
  var nextFrame: UInt64
  /// A Boolean value that indicates whether creating the next segment has failed in a way that may have left its file.
  var mayHaveNext = false
  /// The size of the current segment up to the last successful append.
  ///
  /// Only a failed append can follow.
  var acknowledgedSize: Int64
  /// The size of the current segment when it was created, including the header.
  var initialSize: Int64
  /// The sizes of the segments before the current one that are needed.
  var olderSizes: [UInt32: Int64]
  /// The sizes of unneeded segments that are not removed yet.
  var leftovers: [UInt32: Int64] = [:]
  /// A Boolean value that indicates whether removing an unneeded segment has failed since the current segment was
  /// begun.
  var hasFailedToRemove = false
  /// The readers that need all segments, by their random numbers.
  var pins: Set<UInt64> = []
  /// The damaged ranges of the segments.
  ///
  /// They are copied to separate files before a segment is removed.
  var damagedPlaces: [UInt32: [Range<Int64>]]
  /// The paths of empty files that record missing segments, or the missing end of one.
  private(set) var notes: [String]
  /// The end of the log according to the end mark.
  var mark: SegmentEnd?
  /// A Boolean value that indicates whether the last frame marks the log as closed.
  var isMarkedClosed: Bool
  var reserve: SpaceReserve
  /// The cleaning in progress.
  var cleaning: Cleaning?
  /// Segments with live data that cannot be read.
  ///
  /// They are not removed.
  var unreadable: Set<UInt32> = []
  /// Segments whose damage could not be copied.
  ///
  /// They stay until the next opening.
  var withheld: Set<UInt32> = []

  /// The end of the last segment when the queue was opened.
  struct FoundEnd: Sendable {
    /// The valid size of the segment, in bytes.
    var size: Int64
    /// The number of bytes that are known to be durable.
    ///
    /// The following ones must be rewritten before the first acknowledgement.
    var durableSize: Int64
    /// The number of the next frame.
    var nextFrame: UInt64
    /// A Boolean value that indicates whether the last frame marks the log as closed.
    var isMarkedClosed: Bool
    /// A Boolean value that indicates whether the end is damaged.
    ///
    /// Bytes appended there could complete a damaged frame by chance.
    var isDamaged = false
  }

  /// The state of the other files when the queue was opened.
  struct FoundFiles: Sendable {
    var olderSizes: [UInt32: Int64] = [:]
    var damagedPlaces: [UInt32: [Range<Int64>]] = [:]
    var notes: [String] = []
    var mark: SegmentEnd?
  }

  /// Creates a log from files that were read.
  ///
  /// Nothing is written before the first call of ``makeReady(_:at:mayUseReserve:)``.
  ///
  /// - Parameters:
  ///   - folder: The folder of the queue.
  ///   - lock: The lock, and the files that are held open.
  ///   - segment: The last segment.
  ///   - found: The end of the last segment.
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

  /// The number of the current segment.
  var number: UInt32 { segment.header.number }

  var segmentCount: Int { olderSizes.count + 1 }

  /// The segments in order, with their valid sizes.
  var sizes: [SegmentEnd] {
    olderSizes.map { SegmentEnd(number: $0, size: $1) }.sorted { $0.number < $1.number }
      + [SegmentEnd(number: number, size: acknowledgedSize)]
  }

  /// The size of all needed segments, in bytes.
  var neededSize: Int64 { olderSizes.values.reduce(size, +) }

  /// The size of all segments, in bytes.
  var totalSize: Int64 { leftovers.values.reduce(neededSize, +) }

  /// The valid size of the current segment, in bytes.
  var size: Int64 { log?.size ?? found.size }

  var durableSize: Int64 { log?.durableSize ?? found.durableSize }

  /// Returns whether frames can be appended now.
  ///
  /// If not, ``makeReady(_:at:mayUseReserve:)`` must run first.
  ///
  /// A segment takes only as many items with ids as the space reserve has room to remember, because remembering them is
  /// what frees the segment on a full disk.
  func isReady(for ledger: QueueLedger) -> Bool {
    !isSealed && size - initialSize < segmentLimit && ledger.uses[number].idBytes < reserve.idLimit
  }

  /// The size, in bytes, at which the log rolls over to a new segment.
  var segmentLimit: Int64 {
    reserve.isSpent ? min(folder.segmentSize, reserve.segmentLimit) : folder.segmentSize
  }

  /// A Boolean value that indicates whether no later segment existed.
  var isNewest: Bool { (mark?.number ?? 0) <= number }

  /// A Boolean value that indicates whether nothing can be appended to the current segment, because nothing was written
  /// since the queue was opened, because a failure left it or the next segment, which records its end, in an unknown
  /// state, or because it states another codec.
  var isSealed: Bool { log.map { $0.failure != nil } ?? true || mayHaveNext || !hasPresentCodec }

  /// A Boolean value that indicates whether the current segment states the codec of new items.
  var hasPresentCodec: Bool { segment.header.codecName == codecName }

  // MARK: Writing

  /// Prepares the log for new frames.
  ///
  /// The first call since the queue was opened removes the leftovers of earlier owners and records damage. Frames that
  /// are not known to be durable are rewritten to a new segment. Synchronizing them in place is not enough, because
  /// after a failed synchronization the next one can succeed without having written anything.
  ///
  /// - Parameters:
  ///   - ledger: The items of the queue.
  ///   - now: The time, in microseconds.
  ///   - mayUseReserve: A Boolean value that indicates whether the space reserve may be released for it.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func makeReady(_ ledger: inout QueueLedger, at now: Int64, mayUseReserve: Bool) throws {
    if !hasBegunWriting {
      try checkFiles(during: .apply)
      // A segment may be removed only after the name of the segment that replaces it is durable.
      try folder.fileSystem.synchronizeDirectory(at: folder.path)
      try tidyUp()
      hasBegunWriting = true
      try reserve.make(like: segment.attributes, at: now, in: number)
      if found.durableSize == found.size, !found.isDamaged, isNewest {
        log = try AppendLog(continuing: segment.file, at: found.size)
      }
    }
    if !isReady(for: ledger) { try beginSegment(&ledger, mayUseReserve: mayUseReserve) }
  }

  /// Throws an error if the files are not those that were opened, or if another program has written to them.
  ///
  /// Bytes appended to a segment that was restored in place would follow the items of the backup, and the positions of
  /// all newer items would be wrong.
  ///
  /// - Throws: ``StoreError``: `locked`; `conflict`; `ioFailed`.
  func checkFiles(during operation: StoreOperation) throws {
    try folder.check(opened, during: operation)
    // A failed append has left an unknown number of bytes.
    guard let log, log.failure == nil else { return }
    let size = try folder.reportingFileErrors(during: operation, message: "\(segment.path) could not be inspected") {
      try segment.file.size()
    }
    guard size == log.size else { throw changedError(segment.path, during: operation) }
  }

  /// Throws an error if another program has changed a segment before the current one.
  ///
  /// - Throws: ``StoreError``: `conflict`; `FileError`.
  func checkOlderSegments() throws {
    for (number, size) in olderSizes {
      let path = folder.segmentPath(number)
      // A segment that is missing, or longer because its end was torn, was found so when the queue was opened.
      guard let attributes = try folder.fileSystem.attributes(at: path), attributes.size < size else { continue }
      throw changedError(path, during: .apply)
    }
  }

  private func changedError(_ path: String, during operation: StoreOperation) -> StoreError {
    folder.error(
      .conflict, during: operation,
      "\(path) was changed by another program while the queue was open, so writing has stopped; close the queue and "
        + "open it again")
  }

  /// Removes the leftovers of earlier owners, and creates files that record missing segments.
  private mutating func tidyUp() throws {
    let names = try folder.fileSystem.contentsOfDirectory(at: folder.path)
    try folder.removeStaleTemporaryFiles(among: names)
    let noted = Set(names.filter(folder.isNoteOfDamage) + notes.map { FilePaths.split($0).name })
    for number in names.compactMap(folder.segmentNumber(ofName:))
    where number < segment.header.number && olderSizes[number] == nil
      // A missing segment that a user has restored too late is not ours to remove.
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

  /// Resets a buffer for frames that will be appended next.
  ///
  /// - Parameters:
  ///   - buffer: The buffer.
  ///   - clockOffset: The difference added to times when they are written, in microseconds.
  func reset(_ buffer: inout FrameBuffer, clockOffset: Int64) {
    buffer.reset(
      segment: number, salt: segment.header.salt, base: size, durable: durableSize, firstNumber: nextFrame,
      clockOffset: clockOffset)
  }

  /// Appends frames with the durability of the folder.
  ///
  /// - Parameters:
  ///   - frames: The frames, of which the last is finished.
  ///   - mayUseReserve: A Boolean value that indicates whether the space reserve may be released for it.
  ///   - isDurable: A Boolean value that indicates whether the frames must be synchronized immediately if the folder's
  ///     durability requires it. Defaults to `true`.
  /// - Throws: ``StoreError`` if the files were moved or replaced; `FileError`. If the log is not sealed afterward,
  ///   nothing was changed.
  mutating func append(_ frames: FrameBuffer, mayUseReserve: Bool, isDurable: Bool = true) throws {
    try checkFiles(during: .apply)
    try usingReserve(mayUseReserve) { log in try log.log?.append(frames.bytes) }
    reserve.spend(Int64(frames.bytes.count))
    if folder.durability == .synced, isDurable { try log?.synchronize() }
    acknowledgedSize = size
    nextFrame += UInt64(frames.count)
    isMarkedClosed = false
  }

  /// Runs a closure, and runs it again with the space reserve released if there was no room.
  mutating func usingReserve(_ mayUseReserve: Bool, _ body: (inout QueueLog) throws -> Void) throws {
    do {
      try body(&self)
    } catch let error as FileError where error.isOutOfRoom && mayUseReserve && reserve.isAvailable {
      try reserve.release(in: number)
      try body(&self)
    }
  }

  /// Synchronizes all appended frames with the disk.
  mutating func synchronize() throws(FileError) {
    try log?.synchronize()
  }

  // MARK: Closing

  /// A Boolean value that indicates whether the current segment has another name, under which another program could
  /// open it.
  private var hasOtherNames: Bool {
    get throws(FileError) { try segment.file.attributes().linkCount > 1 }
  }

  /// Marks the log as closed if anything was written, synchronizes it, and releases the lock.
  ///
  /// - Parameter ledger: The items of the queue.
  /// - Throws: ``StoreError``; `FileError`. The lock is released nevertheless.
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
    // The next opening would refuse a segment with several names.
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
