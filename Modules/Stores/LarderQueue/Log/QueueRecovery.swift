import Larder
import LarderFiles

/// The opening of a queue: it replays the files and prepares them for appending.
///
/// All methods block.
struct QueueRecovery {
  private let folder: QueueFolder
  private var ledger: QueueLedger
  private var report = RecoveryReport()
  private var others = QueueLog.FoundFiles()

  /// An open queue.
  struct Opened: Sendable {
    var log: QueueLog
    var ledger: QueueLedger
    var report: RecoveryReport
    /// The items that opening has changed.
    ///
    /// Their states are written before anything else.
    var pending = OpeningChanges()
  }

  private init(folder: QueueFolder, rules: QueueRules) {
    self.folder = folder
    ledger = QueueLedger(rules: rules)
  }

  /// Opens the files.
  ///
  /// Nothing is written, except to create a queue.
  ///
  /// - Parameters:
  ///   - folder: The folder of the queue.
  ///   - rules: The rules of the queue.
  ///   - leases: The treatment of running leases.
  ///   - now: The time, in microseconds since 1970.
  ///   - newCodecName: The name of the codec for a new queue.
  /// - Throws: ``StoreError``.
  static func open(
    _ folder: QueueFolder, rules: QueueRules, leases: LeasesOnOpening, at now: Int64, newCodecName: String
  ) throws -> Opened {
    try folder.reportingFileErrors(during: .open, message: "the queue could not be opened") {
      var folder = folder
      folder.path = try preparedPath(folder)
      let lock = try folder.acquireLock(folder.lockPath, of: folder.path, access: folder.access)
      var files = OpenedFiles()
      if let lock { files.note(try lock.identity(), at: folder.lockPath, as: .lock) }
      let names = try folder.fileSystem.contentsOfDirectory(at: folder.path)
      let numbers = names.compactMap(folder.segmentNumber(ofName:)).sorted()
      var recovery = QueueRecovery(folder: folder, rules: rules)
      recovery.others.mark = names.compactMap(folder.end(ofName:)).max { ($0.number, $0.size) < ($1.number, $1.size) }
      var opened: Opened
      if let last = numbers.last {
        let segment = try SegmentFile(
          last, in: folder, folder.access == .readWrite ? .readWrite : .read, during: .open)
        opened = try recovery.recover(upTo: segment, numbers: numbers, lock: (lock, files))
      } else {
        opened = try recovery.create(codecName: newCodecName, lock: (lock, files))
      }
      opened.pending = opened.ledger.begin(at: now)
      if leases == .void {
        opened.pending.items += opened.ledger.voidLeases()
        opened.ledger.commit()
      }
      return opened
    }
  }

  /// Returns the path of the folder, after checking that it contains a queue or can become one.
  private static func preparedPath(_ folder: QueueFolder) throws -> String {
    let fileSystem = folder.fileSystem
    let parent = FilePaths.split(folder.path).directory
    guard try fileSystem.attributes(at: parent) != nil else {
      throw folder.error(.notFound, during: .open, "the folder \(parent) does not exist; create it first")
    }
    var folder = folder
    folder.path = try fileSystem.canonicalPath(of: folder.path)
    let path = folder.path
    guard let attributes = try fileSystem.attributes(at: path) else {
      guard folder.createsIfMissing else {
        throw folder.error(.notFound, during: .open, "there is no queue at \(path)")
      }
      try fileSystem.createDirectories(at: path)
      return path
    }
    guard attributes.kind == .directory else {
      throw folder.error(
        .unrecognizedFormat, during: .open, "\(path) is not a folder, as a queue must be; it was left unchanged")
    }
    let names = try fileSystem.contentsOfDirectory(at: path)
    // A foreign folder must not get a lock file. If there is one, its owner may be removing segments.
    if let last = names.compactMap(folder.segmentNumber(ofName:)).max() {
      if !names.contains(FilePaths.split(folder.lockPath).name) {
        _ = try SegmentFile(last, in: folder, .read, during: .open)
      }
      return path
    }
    guard names.allSatisfy(folder.isOwnName) else {
      throw folder.error(
        .unrecognizedFormat, during: .open,
        "the folder \(path) contains other files and no queue; it was left unchanged")
    }
    guard folder.createsIfMissing else { throw folder.error(.notFound, during: .open, "there is no queue in \(path)") }
    return path
  }

  private mutating func create(codecName: String, lock: (lock: FileLock?, opened: OpenedFiles)) throws -> Opened {
    guard folder.createsIfMissing else {
      throw folder.error(.notFound, during: .open, "there is no queue in \(folder.path)")
    }
    // A process may have crashed after creating the folder and before synchronizing it.
    try folder.fileSystem.synchronizeDirectory(at: FilePaths.split(folder.path).directory)
    // If all segments were removed, the new one must not have the number of an old one.
    let number = (others.mark?.number ?? 0) + 1
    guard number < .max >> 1 else {
      throw folder.error(
        .corrupted, during: .open, "the queue in \(folder.path) has no segment numbers left; create a new queue")
    }
    if let mark = others.mark {
      noteMissing(mark.number...mark.number)
      reserve(SegmentHeader.longestSegment)
    }
    var frames = FrameBuffer()
    var header = SegmentHeader(
      number: number, identity: .random(in: 1 ... .max), salt: .random(in: 1 ... .max),
      nextSequence: ledger.nextSequence,
      initialLength: 0, codecName: codecName)
    frames.reset(segment: number, salt: header.salt, base: Int64(header.bytes.count), durable: 0, firstNumber: 1)
    frames.append(.segments([]))
    frames.finish()
    header.initialLength = Int64(frames.bytes.count)
    var attributes = try folder.fileSystem.attributes(at: folder.path)
    attributes?.permissions = 0o600
    try QueueLog.writeSegment(header, frames: frames.bytes, like: attributes, in: folder)
    let segment = try SegmentFile(number, in: folder, .readWrite, during: .open)
    let end = QueueLog.FoundEnd(size: segment.size, durableSize: segment.size, nextFrame: 2, isMarkedClosed: true)
    return opened(segment, found: end, lock: lock)
  }

  private mutating func opened(
    _ segment: SegmentFile, found: QueueLog.FoundEnd, lock: (lock: FileLock?, opened: OpenedFiles)
  ) -> Opened {
    ledger.segment = segment.header.number
    let log = QueueLog(folder: folder, lock: lock, segment: segment, found: found, others: others)
    return Opened(log: log, ledger: ledger, report: report)
  }

  // MARK: Recovering

  private mutating func recover(
    upTo last: SegmentFile, numbers: [UInt32], lock: (lock: FileLock?, opened: OpenedFiles)
  ) throws -> Opened {
    let (found, list) = try findEnd(of: last)
    let older = try olderSegments(than: last, list: list, numbers: numbers)
    for end in older {
      let segment = try SegmentFile(end.number, in: folder, .read, during: .open)
      guard segment.header.identity == last.header.identity else {
        throw folder.error(
          .corrupted, during: .open,
          "\(segment.path) belongs to another queue; it was left unchanged. Move it elsewhere")
      }
      try replay(segment, upTo: end.size)
      others.olderSizes[end.number] = min(end.size, segment.size)
    }
    try replay(last, upTo: found.size)
    report.tornBytes = Int(last.size - found.size)
    noteCutEnd(of: last)
    return opened(last, found: found, lock: lock)
  }

  /// Returns the needed segments before the last one that exist, with their ends, and records missing ones.
  private mutating func olderSegments(
    than last: SegmentFile, list: [SegmentEnd]?, numbers: [UInt32]
  ) throws -> [SegmentEnd] {
    let present = Set(numbers)
    // If the list is damaged, all existing segments count as needed.
    let needed = list ?? numbers.filter { $0 < last.header.number }.map { SegmentEnd(number: $0, size: .max) }
    // If the newest segment is missing, the list is outdated, and its missing segments may have been removed on
    // purpose.
    if (others.mark?.number ?? 0) <= last.header.number {
      for end in needed where !present.contains(end.number) { noteMissing(end.number...end.number) }
    }
    return try needed.filter { present.contains($0.number) }.map { end in
      guard end.size == .max else { return end }
      return SegmentEnd(
        number: end.number, size: try SegmentFile(end.number, in: folder, .read, during: .open).size)
    }
  }

  /// The maximum number of missing segments that are recorded individually.
  private static let noteLimit = 1024

  private mutating func noteMissing(_ numbers: ClosedRange<UInt32>) {
    report.missingSegments += numbers.count
    let folder = folder
    others.notes += numbers.prefix(max(QueueRecovery.noteLimit - others.notes.count, 0)).map(folder.missingPath)
  }

  /// Records data lost at the end of the log, if the end mark shows that the log had come further.
  private mutating func noteCutEnd(of last: SegmentFile) {
    guard let mark = others.mark else { return }
    if mark.number > last.header.number {
      let numbers = (last.header.number + 1)...mark.number
      noteMissing(numbers)
      // The contents of the missing segments are unknown.
      reserve(SegmentHeader.longestSegment * Int64(min(numbers.count, QueueRecovery.noteLimit)))
    } else if mark.number == last.header.number, mark.size > last.size {
      report.damagedPlaces += 1
      report.damagedBytes += Int(clamping: mark.size - last.size)
      // Appended frames will take the place of the missing bytes.
      others.notes.append(folder.damagePath(segment: mark.number, offset: last.size))
      reserve(mark.size - last.size)
    }
  }

  /// Reserves every sequence number that lost bytes may have contained.
  ///
  /// Each number took more than one byte.
  private mutating func reserve(_ bytes: Int64) {
    let next = ledger.nextSequence.addingReportingOverflow(UInt64(max(bytes, 0)))
    ledger.reserve(
      nextSequence: next.overflow
        ? QueueRecord.greatestSequence + 1 : min(next.partialValue, QueueRecord.greatestSequence + 1))
  }

  /// Returns the valid end of the last segment, and the list of other segments that it needs, if it has one.
  private func findEnd(of segment: SegmentFile) throws -> (QueueLog.FoundEnd, list: [SegmentEnd]?) {
    let start = segment.headerLength
    // The lengths are untrusted, because they come from the file.
    var durable = start.addingSaturating(segment.header.initialLength)
    if let mark = others.mark, mark.number == segment.header.number { durable = max(durable, mark.size) }
    durable = min(segment.size, durable)
    var list: [SegmentEnd]?
    var frames: [(frame: QueueFrame, offset: Int64)] = []
    var damage: [Range<Int64>] = []
    var isMarkedClosed = false
    var scanner = segment.scanner(upTo: segment.size)
    while let found = try scanner.next() {
      switch found {
      case .frame(let frame, let offset, let body):
        if offset == start {
          let records = QueueRecord.records(of: body, segment: segment.header.number, offset: offset)
          if case .segments(let segments)? = records?.first {
            list = segments.filter { $0.number < segment.header.number }
          }
        }
        // Of the frames that are certainly durable, only the last one is needed.
        if offset < durable { frames.removeAll(keepingCapacity: true) }
        frames.append((frame, offset))
        durable = max(durable, frame.isClosing ? offset : frame.durable)
        isMarkedClosed = frame.isClosing
      case .damage(let range):
        damage.append(range)
        isMarkedClosed = false
      }
    }
    var cut = segment.size
    // Bytes that are not known to be durable may have holes. The frames before the first hole are valid, those after it
    // are not.
    if let hole = damage.first(where: { [durable] in $0.upperBound > durable }) {
      cut = max(hole.lowerBound, durable)
      isMarkedClosed = false
    }
    var kept = frames.prefix { $0.offset < cut }
    // A call whose last frame is missing did not take effect.
    while let last = kept.last, last.frame.isContinued, last.offset >= durable {
      cut = last.offset
      kept.removeLast()
    }
    let hasUnsafeFrames = kept.contains { $0.offset >= durable && !$0.frame.isClosing }
    let end = QueueLog.FoundEnd(
      size: cut, durableSize: hasUnsafeFrames ? durable : cut,
      nextFrame: kept.last.map { $0.frame.number + 1 } ?? 1, isMarkedClosed: isMarkedClosed,
      isDamaged: damage.contains { $0.lowerBound < cut && $0.upperBound >= cut })
    return (end, list)
  }

  /// Replays the frames of a segment before an offset.
  private mutating func replay(_ segment: SegmentFile, upTo end: Int64) throws {
    let (number, headLength) = (segment.header.number, QueueFrame.headLength)
    ledger.reserve(nextSequence: segment.header.nextSequence)
    var scanner = segment.scanner(upTo: min(end, segment.size))
    while let found = try scanner.next() {
      switch found {
      case .frame(_, let offset, let body):
        guard
          let records = QueueRecord.records(of: body, segment: number, offset: offset + Int64(headLength))
        else {
          note(damage: offset..<offset + Int64(headLength + body.count), of: segment)
          continue
        }
        for record in records { ledger.replay(record, in: number) }
      case .damage(let range):
        note(damage: range, of: segment)
      }
    }
    if end > segment.size {
      report.damagedPlaces += 1
      report.damagedBytes += Int(clamping: end - segment.size)
      others.damagedPlaces[number, default: []].append(segment.size..<end)
    }
  }

  /// Records a damaged range that is copied to a separate file before its segment is removed.
  private mutating func note(damage range: Range<Int64>, of segment: SegmentFile) {
    report.damagedPlaces += 1
    report.damagedBytes += range.count
    others.damagedPlaces[segment.header.number, default: []].append(range)
    reserve(Int64(range.count))
  }
}
