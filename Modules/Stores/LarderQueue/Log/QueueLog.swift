import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// The files of a queue, for the one object that has them open: segments to which frames are appended, and the lock.
///
/// Everything here blocks.
struct QueueLog: Sendable {
  let folder: QueueFolder
  let files: SegmentFiles
  private let lock: FileLock?

  /// The files that must be at their paths whenever the queue writes.
  private var opened: OpenedFiles
  private let identity: UInt64
  private let codecName: String

  private var segment: SegmentFile
  /// The end of the current segment; `nil` until the first write since the queue was opened.
  private var log: AppendLog?
  /// Where opening found the end of the current segment.
  private let found: FoundEnd
  private var hasBegunWriting = false
  private var nextFrame: UInt64
  /// Whether making the next segment has failed, but its file may be there.
  private var mayHaveNext = false
  /// Behind it stands at most what failed.
  private var acknowledgedSize: Int64
  /// The sizes of the segments before the current one.
  private var olderSizes: [UInt32: Int64]
  /// The damaged places of the segments, which are kept in files of their own before a segment is removed.
  private var damagedPlaces: [UInt32: [Range<Int64>]]
  /// Why a segment that nobody needs is still there.
  private var removalFailure: (any Error)?
  /// Whether the last frame is that of closing.
  private var isMarkedClosed: Bool

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
  }

  /// Takes over files that were read; nothing is written before the first call of ``makeReady(_:)``.
  ///
  /// - Parameters:
  ///   - folder: The folder.
  ///   - lock: The lock, and the files that are held open.
  ///   - segment: The last segment.
  ///   - found: Where it ends.
  ///   - olderSizes: The sizes of the segments before it.
  ///   - damagedPlaces: The damaged places of the segments.
  init(
    folder: QueueFolder, lock: (lock: FileLock?, opened: OpenedFiles), segment: SegmentFile, found: FoundEnd,
    olderSizes: [UInt32: Int64], damagedPlaces: [UInt32: [Range<Int64>]]
  ) {
    self.folder = folder
    files = SegmentFiles(folder: folder)
    self.lock = lock.lock
    opened = lock.opened
    self.segment = segment
    self.found = found
    acknowledgedSize = found.size
    nextFrame = found.nextFrame
    self.olderSizes = olderSizes
    self.damagedPlaces = damagedPlaces
    isMarkedClosed = found.isMarkedClosed
    identity = segment.header.identity
    codecName = segment.header.codecName
    files.insert(segment.file, forSegment: segment.header.number)
    opened.note(segment.attributes.identity, at: segment.path, as: .data)
  }

  /// The segment that is written.
  var number: UInt32 { segment.header.number }

  var segmentCount: Int { olderSizes.count + 1 }

  /// The bytes of each segment that count, in order.
  var sizes: [(number: UInt32, size: Int64)] {
    olderSizes.map { (number: $0, size: $1) }.sorted { $0.number < $1.number } + [(number: number, size: size)]
  }

  var totalSize: Int64 { olderSizes.values.reduce(size, +) }

  /// The bytes of the current segment that count.
  private var size: Int64 { log?.size ?? found.size }

  private var durableSize: Int64 { log?.durableSize ?? found.durableSize }

  /// The oldest segment that there is.
  var oldest: UInt32 { olderSizes.keys.min() ?? number }

  /// Whether frames can be appended as things are; otherwise ``makeReady(_:)`` comes first.
  var isReady: Bool { !isSealed && size < folder.segmentSize }

  /// Whether nothing may be appended to the current segment: nothing was written since the queue was opened, or the state
  /// of the segment is unknown after a failure, or that of the next one is, which says where this one ends.
  var isSealed: Bool { log.map { $0.failure != nil } ?? true || mayHaveNext }

  // MARK: Writing

  /// Makes sure that frames can be appended.
  ///
  /// The first call since the queue was opened removes what earlier owners left behind. Frames that are not known to be
  /// durable are written anew in a segment of their own: to synchronize them where they are is not enough, since after a
  /// failed synchronization the next one succeeds without having written anything.
  ///
  /// - Parameter ledger: What the queue holds.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func makeReady(_ ledger: inout QueueLedger) throws {
    if !hasBegunWriting {
      try checkFiles(during: .apply)
      // A segment is removed only if the name of the one that does not need it is durable.
      try folder.fileSystem.synchronizeDirectory(at: folder.path)
      let names = try folder.fileSystem.contentsOfDirectory(at: folder.path)
      try folder.removeStaleTemporaryFiles(among: names)
      for number in names.compactMap(folder.segmentNumber(ofName:)) where number < segment.header.firstSegment {
        try folder.fileSystem.removeFile(at: folder.segmentPath(number))
      }
      hasBegunWriting = true
      if found.durableSize == found.size { log = try AppendLog(continuing: segment.file, at: found.size) }
    }
    if !isReady { try beginSegment(&ledger) }
  }

  /// A buffer for frames that are to be appended next.
  func makeBuffer() -> FrameBuffer {
    var buffer = FrameBuffer()
    reset(&buffer)
    return buffer
  }

  /// Empties a buffer, for frames that are to be appended next.
  func reset(_ buffer: inout FrameBuffer) {
    buffer.reset(
      segment: number, salt: segment.header.salt, base: size, durable: durableSize, firstNumber: nextFrame)
  }

  /// Appends frames, as durably as the folder says.
  ///
  /// - Throws: ``StoreError`` if the files were moved or replaced; `FileError`. Nothing was changed where the log is not
  ///   sealed then.
  mutating func append(_ frames: FrameBuffer) throws {
    try checkFiles(during: .apply)
    try log?.append(frames.bytes)
    if folder.durability == .synced { try log?.synchronize() }
    acknowledgedSize = size
    nextFrame += UInt64(frames.count)
    isMarkedClosed = false
  }

  /// Makes everything durable that was appended.
  mutating func synchronize() throws(FileError) {
    try log?.synchronize()
  }

  /// Makes sure that the files of the queue are still at their paths; see ``StoreFiles/check(_:during:)``.
  func checkFiles(during operation: StoreOperation) throws {
    try folder.check(opened, during: operation)
  }

  // MARK: Segments

  /// Begins a new segment, behind everything that is in order in the current one.
  ///
  /// What was written to the current one, and is not durable since a synchronization failed, is written anew. What nobody
  /// needs any more is removed afterwards.
  ///
  /// - Parameter ledger: What the queue holds.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func beginSegment(_ ledger: inout QueueLedger) throws {
    try checkFiles(during: .apply)
    if log?.failure == nil { try log?.synchronize() }
    let end = durableSize
    let unsafe = end..<max(end, acknowledgedSize)
    var frames: [UInt8] = []
    let salt = UInt32.random(in: 1 ... .max)
    if !unsafe.isEmpty { frames = try QueueLog.copyFrames(of: segment, unsafe, salt: salt, in: folder) }
    let first = ledger.usage.keys.min() ?? number + 1
    let header = SegmentHeader(
      number: number + 1, firstSegment: max(first, oldest), identity: identity, salt: salt,
      firstFrame: nextFrame - QueueLog.countFrames(frames), nextSequence: ledger.nextSequence,
      previousEnd: end, initialLength: Int64(frames.count), codecName: codecName)
    let wasSealed = mayHaveNext
    mayHaveNext = true
    do {
      try QueueLog.writeSegment(header, frames: frames, like: segment.attributes, in: folder)
    } catch {
      // Before the renaming nothing has happened.
      mayHaveNext = wasSealed || [.rename, .synchronizeDirectory].contains((error as? FileError)?.operation)
      throw error
    }
    let next = try SegmentFile(header.number, in: folder, .readWrite, during: .apply)
    let nextLog = try AppendLog(continuing: next.file, at: next.size)
    mayHaveNext = false
    if !frames.isEmpty {
      ledger.moveEnd(of: number, from: unsafe.lowerBound, to: header.number, at: next.headerLength)
    }
    olderSizes[number] = end
    opened.forget(segment.path)
    opened.note(next.attributes.identity, at: next.path, as: .data)
    segment = next
    log = nextLog
    acknowledgedSize = nextLog.size
    isMarkedClosed = false
    files.insert(next.file, forSegment: number)
    ledger.segment = number
    removeSegments(before: header.firstSegment)
  }

  /// Removes segments that the current one, which is durable, does not need.
  private mutating func removeSegments(before first: UInt32) {
    removalFailure = nil
    for number in olderSizes.keys.sorted() where number < first {
      files.remove(number)
      do {
        try keepDamage(of: number)
        try folder.fileSystem.removeFile(at: folder.segmentPath(number))
        olderSizes[number] = nil
      } catch {
        // Nothing is lost but space: it is tried again with the next segment, and at the next opening.
        removalFailure = error
      }
    }
  }

  /// Copies the damaged places of a segment into files of their own.
  private mutating func keepDamage(of number: UInt32) throws {
    guard let ranges = damagedPlaces[number] else { return }
    let file = try folder.fileSystem.open(folder.segmentPath(number), .read)
    for range in ranges {
      let path = folder.damagePath(segment: number, offset: range.lowerBound)
      guard try folder.fileSystem.attributes(at: path) == nil else { continue }
      try folder.fileSystem.replaceFile(at: path, like: segment.attributes) { writer in
        for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 20) {
          try writer.write(file.readAll(from: start, upTo: min(start + 1 << 20, range.upperBound)))
        }
      }
    }
    damagedPlaces[number] = nil
  }

  /// Writes the file of a new segment.
  ///
  /// - Parameters:
  ///   - header: Its header.
  ///   - frames: The frames behind it.
  ///   - existing: The permissions and the owner that it gets.
  ///   - folder: The folder.
  /// - Throws: `FileError`.
  static func writeSegment(
    _ header: SegmentHeader, frames: [UInt8], like existing: FileAttributes?, in folder: QueueFolder
  ) throws {
    try folder.fileSystem.replaceFile(at: folder.segmentPath(header.number), like: existing) { writer in
      try writer.write(header.bytes)
      try writer.write(frames)
    }
  }

  /// The good frames of a part of a segment, as they are to stand in another.
  static func copyFrames(
    of segment: SegmentFile, _ range: Range<Int64>, salt: UInt32, in folder: QueueFolder
  ) throws -> [UInt8] {
    var scanner = segment.scanner(upTo: range.upperBound)
    var frames: [UInt8] = []
    while let found = try scanner.next() {
      guard case .frame(let frame, let offset, let body) = found, offset >= range.lowerBound else {
        guard case .damage(let damage) = found, damage.upperBound > range.lowerBound else { continue }
        throw FileError(.read, path: segment.path, errorNumber: EIO)
      }
      let start = frames.count
      QueueFrame.begin(in: &frames)
      frames.append(contentsOf: body)
      QueueFrame.end(in: &frames, at: start, number: frame.number, durable: 0, salt: salt)
    }
    return frames
  }

  static func countFrames(_ frames: [UInt8]) -> UInt64 {
    var count: UInt64 = 0
    var offset = 0
    while let head = QueueFrame(head: frames[offset...]) {
      offset += QueueFrame.headLength + head.bodyLength
      count += 1
    }
    return count
  }

  /// Gives back the space of segments that nobody needs, where there is enough of it to be worth while.
  ///
  /// - Parameter ledger: What the queue holds.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func reclaim(_ ledger: inout QueueLedger) throws {
    if !hasUnneededSegments(ledger) {
      // Small ones several at once: as one goes another one comes.
      var size: Int64 = 0
      for (old, length) in olderSizes.sorted(by: { $0.key < $1.key }) {
        guard size == 0 || size + length <= folder.segmentSize else { break }
        try moveItems(from: old, &ledger)
        size += length
      }
    }
    try beginSegment(&ledger)
    if let removalFailure { throw removalFailure }
  }

  /// Writes anew everything that is needed, and removes the rest.
  ///
  /// - Parameter ledger: What the queue holds.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func compact(_ ledger: inout QueueLedger) throws {
    let last = number
    try beginSegment(&ledger)
    for old in olderSizes.keys.sorted() where old <= last { try moveItems(from: old, &ledger) }
    if oldest != number { try beginSegment(&ledger) }
  }

  /// Whether ``reclaim(_:)`` has something to do.
  func needsReclaiming(_ ledger: QueueLedger) -> Bool {
    !olderSizes.isEmpty && !isSealed && (hasUnneededSegments(ledger) || needsCleaning(ledger))
  }

  private func hasUnneededSegments(_ ledger: QueueLedger) -> Bool {
    oldest < min(ledger.usage.keys.min() ?? number, number)
  }

  /// Whether more than half of the log is dead weight behind an old item, or there are many small segments.
  private func needsCleaning(_ ledger: QueueLedger) -> Bool {
    guard !olderSizes.isEmpty else { return false }
    let used = ledger.usage.values.reduce(0) { $0 + $1.bytes + 64 * $1.count }
    let size = totalSize
    return size > 2 * Int64(used) + 2 * folder.segmentSize || segmentCount > 2 * Int(size / folder.segmentSize) + 16
  }

  /// Writes anew what a segment holds that is needed, so that it can be removed.
  private mutating func moveItems(from old: UInt32, _ ledger: inout QueueLedger) throws {
    if !isReady { try beginSegment(&ledger) }
    var records = ledger.survivors(in: old)[...]
    while !records.isEmpty {
      var buffer = makeBuffer()
      var moved: [QueueRecord] = []
      buffer.beginFrame()
      while let record = records.first, buffer.bodyLength < 1 << 20 {
        records = records.dropFirst()
        moved.append(try rewrite(record, into: &buffer))
      }
      buffer.endFrame()
      try append(buffer)
      for record in moved { ledger.apply(record) }
      ledger.commit()
    }
  }

  /// Writes a record anew, with its payload where it has one.
  private func rewrite(_ record: QueueRecord, into buffer: inout FrameBuffer) throws -> QueueRecord {
    guard case .put(var state) = record else {
      buffer.append(record)
      return record
    }
    let item = state.item
    // With the checksum that stands there: what is damaged is still to be found out.
    let (checksum, payload) = try files.readStored(item.place)
    state.item.place = buffer.place(keyLength: item.key.count, phase: item.phase, payloadLength: payload.count)
    buffer.append(.put(state), payload: payload, checksum: checksum)
    return .put(state)
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
    if try isSealed || hasOtherNames { try beginSegment(&ledger) }
    try log?.synchronize()
    guard !isMarkedClosed else { return }
    var buffer = makeBuffer()
    buffer.beginFrame()
    buffer.endFrame()
    try log?.append(buffer.bytes)
    try log?.synchronize()
  }
}
