import Larder
import LarderFiles

/// Opens the files of a queue: finds out what they hold, and leaves them so that they can be appended to.
///
/// Everything here blocks.
struct QueueRecovery {
  private let folder: QueueFolder
  private var ledger: QueueLedger
  private var report = RecoveryReport()
  private var olderSizes: [UInt32: Int64] = [:]
  private var damagedPlaces: [UInt32: [Range<Int64>]] = [:]

  /// What a queue is opened as.
  struct Opened: Sendable {
    var log: QueueLog
    var ledger: QueueLedger
    var report: RecoveryReport
    /// Changes that opening made to the ledger, to be written before anything else.
    var pending: [QueueRecord] = []
  }

  /// What was found out about the last segment before its frames are replayed.
  private struct Survey {
    /// How many bytes are known to be durable.
    var durable: Int64
    /// Where the part ends that counts.
    var cut: Int64
    var nextFrame: UInt64
    var isMarkedClosed = false
    /// Whether there are frames that are not known to be durable.
    var hasUnsafeFrames = false
  }

  private init(folder: QueueFolder, rules: QueueRules) {
    self.folder = folder
    ledger = QueueLedger(rules: rules)
  }

  /// Opens the files; nothing is written unless a queue is created.
  ///
  /// - Parameters:
  ///   - folder: Where they are.
  ///   - rules: The rules of the queue.
  ///   - leases: What becomes of leases that go on.
  ///   - now: The time, in microseconds since 1970.
  ///   - newCodecName: The name of the codec that suits new files.
  ///   - codec: Gives the codec, by the name of the one that the files state or that suits new ones.
  /// - Throws: ``StoreError``; what `codec` throws.
  static func open<Value>(
    _ folder: QueueFolder, rules: QueueRules, leases: LeasesOnOpening, at now: Int64,
    newCodecName: String, choosing codec: (_ name: String) throws -> any Codec<Value>
  ) throws -> (opened: Opened, codec: any Codec<Value>) {
    try folder.reportingFileErrors(during: .open, message: "the queue could not be opened") {
      var folder = folder
      folder.path = try preparedPath(folder)
      let lock = try folder.acquireLock(folder.lockPath, of: folder.path, access: folder.access)
      var files = OpenedFiles()
      if let lock { files.note(try lock.identity(), at: folder.lockPath, as: .lock) }
      let numbers = try folder.segmentNumbers()
      var recovery = QueueRecovery(folder: folder, rules: rules)
      guard let last = numbers.last else {
        let codec = try codec(newCodecName)
        var opened = try recovery.create(codecName: codec.name, lock: (lock, files))
        opened.ledger.begin(at: now)
        return (opened, codec)
      }
      let segment = try SegmentFile(
        last, in: folder, folder.access == .readWrite ? .readWrite : .read, during: .open)
      let codec = try codec(segment.header.codecName)
      guard codec.name == segment.header.codecName else {
        throw folder.error(
          .versionMismatch, during: .open,
          "\(folder.path) was written with the codec \(segment.header.codecName), not with \(codec.name); open it with that one"
        )
      }
      var opened = try recovery.recover(upTo: segment, numbers: numbers, lock: (lock, files))
      opened.ledger.begin(at: now)
      if leases == .void {
        opened.ledger.voidLeases(into: &opened.pending)
        opened.ledger.commit()
      }
      return (opened, codec)
    }
  }

  /// Makes sure that there is a folder which is a queue's, or can become one.
  private static func preparedPath(_ folder: QueueFolder) throws -> String {
    let fileSystem = folder.fileSystem
    let parent = FilePaths.split(folder.path).directory
    guard try fileSystem.attributes(at: parent) != nil else {
      throw folder.error(.notFound, during: .open, "the folder \(parent) does not exist; make it first")
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
        .unrecognizedFormat, during: .open, "\(path) is not a folder, as a queue is; it was left as it is")
    }
    let names = try fileSystem.contentsOfDirectory(at: path)
    // A foreign folder must not gain a lock. Where there is one, its owner may be removing segments.
    if let last = names.compactMap(folder.segmentNumber(ofName:)).max() {
      if !names.contains(FilePaths.split(folder.lockPath).name) {
        _ = try SegmentFile(last, in: folder, .read, during: .open)
      }
      return path
    }
    guard names.allSatisfy(folder.isOwnName) else {
      throw folder.error(
        .unrecognizedFormat, during: .open,
        "the folder \(path) has other things in it and no queue; it was left as it is")
    }
    guard folder.createsIfMissing else { throw folder.error(.notFound, during: .open, "there is no queue in \(path)") }
    return path
  }

  private mutating func create(codecName: String, lock: (lock: FileLock?, opened: OpenedFiles)) throws -> Opened {
    guard folder.createsIfMissing else {
      throw folder.error(.notFound, during: .open, "there is no queue in \(folder.path)")
    }
    // The folder may have been made by someone who died before it was durable.
    try folder.fileSystem.synchronizeDirectory(at: FilePaths.split(folder.path).directory)
    let header = SegmentHeader(
      number: 1, firstSegment: 1, identity: .random(in: 1 ... .max), salt: .random(in: 1 ... .max), firstFrame: 1,
      nextSequence: 1, previousEnd: 0, initialLength: 0, codecName: codecName)
    var attributes = try folder.fileSystem.attributes(at: folder.path)
    attributes?.permissions = 0o600
    try QueueLog.writeSegment(header, frames: [], like: attributes, in: folder)
    let segment = try SegmentFile(1, in: folder, .readWrite, during: .open)
    let end = QueueLog.FoundEnd(
      size: segment.size, durableSize: segment.size, nextFrame: 1, isMarkedClosed: true)
    return opened(segment, found: end, lock: lock)
  }

  private mutating func opened(
    _ segment: SegmentFile, found: QueueLog.FoundEnd, lock: (lock: FileLock?, opened: OpenedFiles)
  ) -> Opened {
    ledger.segment = segment.header.number
    let log = QueueLog(
      folder: folder, lock: lock, segment: segment, found: found, olderSizes: olderSizes, damagedPlaces: damagedPlaces)
    return Opened(log: log, ledger: ledger, report: report)
  }

  // MARK: Recovering

  private mutating func recover(
    upTo last: SegmentFile, numbers: [UInt32], lock: (lock: FileLock?, opened: OpenedFiles)
  ) throws -> Opened {
    let first = last.header.firstSegment
    let needed = numbers.filter { $0 >= first }
    report.missingSegments = Int(last.header.number - first) + 1 - needed.count
    // One at a time is open: there may be more of them than files may be open.
    let headers = try needed.map { number in
      number == last.header.number ? last.header : try SegmentFile(number, in: folder, .read, during: .open).header
    }
    for header in headers where header.identity != last.header.identity {
      throw folder.error(
        .corrupted, during: .open,
        "\(folder.segmentPath(header.number)) belongs to another queue; it was left as it is. Move it elsewhere")
    }
    for (header, next) in zip(headers, headers.dropFirst()) {
      let segment = try SegmentFile(header.number, in: folder, .read, during: .open)
      // Where the next one is missing, nobody knows where this one ends.
      let end = next.number == segment.header.number + 1 ? next.previousEnd : segment.size
      try replay(segment, upTo: end)
      olderSizes[segment.header.number] = min(end, segment.size)
    }
    let found = try findEnd(of: last)
    try replay(last, upTo: found.size)
    report.tornBytes = Int(last.size - found.size)
    return opened(last, found: found, lock: lock)
  }

  /// Finds out how much of the last segment counts.
  private func findEnd(of segment: SegmentFile) throws -> QueueLog.FoundEnd {
    let start = segment.headerLength
    var durable = min(segment.size, start + segment.header.initialLength)
    var frames: [(frame: QueueFrame, offset: Int64)] = []
    var damage: [Range<Int64>] = []
    var isMarkedClosed = false
    var scanner = segment.scanner(upTo: segment.size)
    while let found = try scanner.next() {
      switch found {
      case .frame(let frame, let offset, _):
        frames.append((frame, offset))
        durable = max(durable, frame.isClosing ? offset : frame.durable)
        isMarkedClosed = frame.isClosing
      case .damage(let range):
        damage.append(range)
        isMarkedClosed = false
      }
    }
    var cut = segment.size
    // What is not known to be durable may have holes: up to the first of them it happened, beyond it not.
    if let hole = damage.first(where: { [durable] in $0.upperBound > durable }) {
      cut = max(hole.lowerBound, durable)
      isMarkedClosed = false
    }
    let kept = frames.prefix { $0.offset < cut }
    let hasUnsafeFrames = kept.contains { $0.offset >= durable && !$0.frame.isClosing }
    return QueueLog.FoundEnd(
      size: cut, durableSize: hasUnsafeFrames ? durable : cut,
      nextFrame: kept.last.map { $0.frame.number + 1 } ?? segment.header.firstFrame, isMarkedClosed: isMarkedClosed)
  }

  /// Replays the frames of a segment up to a place, all of which should be good.
  private mutating func replay(_ segment: SegmentFile, upTo end: Int64) throws {
    let number = segment.header.number
    ledger.reserve(nextSequence: segment.header.nextSequence)
    var scanner = segment.scanner(upTo: min(end, segment.size))
    while let found = try scanner.next() {
      switch found {
      case .frame(_, let offset, let body):
        guard
          let records = QueueRecord.records(
            of: body, segment: number, offset: offset + Int64(QueueFrame.headLength))
        else {
          note(damage: offset..<offset + Int64(QueueFrame.headLength + body.count), of: segment)
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
    }
  }

  /// Notes a damaged place, which is kept in a file of its own before the segment is removed.
  private mutating func note(damage range: Range<Int64>, of segment: SegmentFile) {
    report.damagedPlaces += 1
    report.damagedBytes += range.count
    damagedPlaces[segment.header.number, default: []].append(range)
    // No sequence number is given again that stood there: each took more than a byte.
    ledger.reserve(nextSequence: ledger.nextSequence + UInt64(range.count))
  }
}
