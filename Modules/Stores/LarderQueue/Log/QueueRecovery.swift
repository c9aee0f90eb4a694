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

  /// What a queue is opened as.
  struct Opened: Sendable {
    var log: QueueLog
    var ledger: QueueLedger
    var report: RecoveryReport

    /// Ends every lease, durably.
    fileprivate mutating func voidLeases() throws {
      var records: [QueueRecord] = []
      ledger.voidLeases(into: &records)
      guard !records.isEmpty else { return }
      var buffer = log.makeBuffer()
      buffer.beginFrame()
      for record in records { buffer.append(record) }
      buffer.endFrame()
      try log.append(buffer)
      try log.synchronize()
      ledger.commit()
    }
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

  /// Opens the files.
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
      let lock = try lock(folder)
      let names = try folder.fileSystem.contentsOfDirectory(at: folder.path)
      try folder.removeStaleTemporaryFiles(among: names)
      let numbers = names.compactMap(folder.segmentNumber(ofName:)).sorted()
      var recovery = QueueRecovery(folder: folder, rules: rules)
      guard let last = numbers.last else {
        let codec = try codec(newCodecName)
        var opened = try recovery.create(codecName: codec.name, lock: lock)
        opened.ledger.begin(at: now)
        return (opened, codec)
      }
      let segment = try SegmentFile(last, in: folder, .readWrite, during: .open)
      let codec = try codec(segment.header.codecName)
      guard codec.name == segment.header.codecName else {
        throw folder.error(
          .versionMismatch, during: .open,
          "\(folder.path) was written with the codec \(segment.header.codecName), not with \(codec.name); open it with that one"
        )
      }
      var opened = try recovery.recover(upTo: segment, numbers: numbers, lock: lock)
      opened.ledger.begin(at: now)
      if leases == .void { try opened.voidLeases() }
      return (opened, codec)
    }
  }

  private static func lock(_ folder: QueueFolder) throws -> (lock: FileLock?, opened: OpenedFiles) {
    let lock = try folder.acquireLock(folder.lockPath, of: folder.path, access: .readWrite)
    var opened = OpenedFiles()
    if let lock { opened.note(try lock.identity(), at: folder.lockPath, as: .lock) }
    return (lock, opened)
  }

  /// Makes sure that there is a folder which is a queue's, or can become one.
  private static func preparedPath(_ folder: QueueFolder) throws -> String {
    let fileSystem = folder.fileSystem
    let parent = FilePaths.split(folder.path).directory
    guard try fileSystem.attributes(at: parent) != nil else {
      throw folder.error(.notFound, during: .open, "the folder \(parent) does not exist; make it first")
    }
    let path = try fileSystem.canonicalPath(of: folder.path)
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
    if names.contains(where: { folder.segmentNumber(ofName: $0) != nil }) { return path }
    // What is no queue must not gain a lock either.
    guard names.allSatisfy(folder.isOwnName) else {
      throw folder.error(
        .unrecognizedFormat, during: .open,
        "the folder \(path) has other things in it and no queue; it was left as it is")
    }
    guard folder.createsIfMissing else { throw folder.error(.notFound, during: .open, "there is no queue in \(path)") }
    return path
  }

  private mutating func create(codecName: String, lock: (lock: FileLock?, opened: OpenedFiles)) throws -> Opened {
    // The folder may have been made by someone who died before it was durable.
    try folder.fileSystem.synchronizeDirectory(at: FilePaths.split(folder.path).directory)
    let header = SegmentHeader(
      number: 1, firstSegment: 1, identity: .random(in: 1 ... .max), salt: .random(in: 1 ... .max), firstFrame: 1,
      nextSequence: 1, previousEnd: 0, initialLength: 0, codecName: codecName)
    try QueueLog.writeSegment(header, frames: [], in: folder)
    let segment = try SegmentFile(1, in: folder, .readWrite, during: .open)
    return try opened(segment, at: segment.size, nextFrame: 1, lock: lock, isMarkedClosed: true)
  }

  private mutating func opened(
    _ segment: SegmentFile, at size: Int64, nextFrame: UInt64, lock: (lock: FileLock?, opened: OpenedFiles),
    isMarkedClosed: Bool
  ) throws -> Opened {
    ledger.segment = segment.header.number
    let log = QueueLog(
      folder: folder, files: SegmentFiles(folder: folder), lock: lock.lock, opened: lock.opened, segment: segment,
      log: try AppendLog(continuing: segment.file, at: size), nextFrame: nextFrame, olderSizes: olderSizes,
      isMarkedClosed: isMarkedClosed)
    return Opened(log: log, ledger: ledger, report: report)
  }

  // MARK: Recovering

  private mutating func recover(upTo last: SegmentFile, numbers: [UInt32], lock: (lock: FileLock?, opened: OpenedFiles))
    throws -> Opened
  {
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
    let survey = try survey(last)
    // A segment is removed below only if the name of the one that does not need it is durable.
    try folder.fileSystem.synchronizeDirectory(at: folder.path)
    for number in numbers where number < first {
      try folder.fileSystem.removeFile(at: folder.segmentPath(number))
    }
    guard survey.hasUnsafeFrames else {
      try replay(last, upTo: survey.cut)
      report.tornBytes = Int(last.size - survey.cut)
      return try opened(
        last, at: survey.cut, nextFrame: survey.nextFrame, lock: lock, isMarkedClosed: survey.isMarkedClosed)
    }
    return try rewriteEnd(of: last, survey, lock: lock)
  }

  /// Finds out how much of the last segment counts.
  private func survey(_ segment: SegmentFile) throws -> Survey {
    let start = segment.headerLength
    var survey = Survey(
      durable: min(segment.size, start + segment.header.initialLength), cut: segment.size,
      nextFrame: segment.header.firstFrame)
    var frames: [(frame: QueueFrame, offset: Int64)] = []
    var damage: [Range<Int64>] = []
    var scanner = segment.scanner(upTo: segment.size)
    while let found = try scanner.next() {
      switch found {
      case .frame(let frame, let offset, _):
        frames.append((frame, offset))
        survey.durable = max(survey.durable, frame.isClosing ? offset : frame.durable)
        survey.isMarkedClosed = frame.isClosing
      case .damage(let range):
        damage.append(range)
        survey.isMarkedClosed = false
      }
    }
    // What is not known to be durable may have holes: up to the first of them it happened, beyond it not.
    let durable = survey.durable
    if let hole = damage.first(where: { $0.upperBound > durable }) {
      survey.cut = max(hole.lowerBound, durable)
      survey.isMarkedClosed = false
    }
    let kept = frames.prefix { $0.offset < survey.cut }
    if let last = kept.last { survey.nextFrame = last.frame.number + 1 }
    survey.hasUnsafeFrames = kept.contains { $0.offset >= durable && !$0.frame.isClosing }
    return survey
  }

  /// Writes anew, in a segment of its own, what is not known to be durable.
  ///
  /// To synchronize it where it stands would not do: after a synchronization that failed, the next one succeeds without
  /// having written anything.
  private mutating func rewriteEnd(of last: SegmentFile, _ survey: Survey, lock: (lock: FileLock?, opened: OpenedFiles))
    throws -> Opened
  {
    try replay(last, upTo: survey.durable)
    olderSizes[last.header.number] = survey.durable
    report.tornBytes = Int(last.size - survey.cut)
    let salt = UInt32.random(in: 1 ... .max)
    let frames = try QueueLog.copyFrames(of: last, survey.durable..<survey.cut, salt: salt, in: folder)
    let header = SegmentHeader(
      number: last.header.number + 1, firstSegment: last.header.firstSegment, identity: last.header.identity,
      salt: salt, firstFrame: survey.nextFrame - QueueLog.countFrames(frames), nextSequence: ledger.nextSequence,
      previousEnd: survey.durable, initialLength: Int64(frames.count), codecName: last.header.codecName)
    try QueueLog.writeSegment(header, frames: frames, in: folder)
    let segment = try SegmentFile(header.number, in: folder, .readWrite, during: .open)
    try replay(segment, upTo: segment.size)
    return try opened(segment, at: segment.size, nextFrame: survey.nextFrame, lock: lock, isMarkedClosed: false)
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
          try quarantine(offset..<offset + Int64(QueueFrame.headLength + body.count), of: segment)
          continue
        }
        for record in records { ledger.replay(record, in: number) }
      case .damage(let range):
        try quarantine(range, of: segment)
      }
    }
    if end > segment.size {
      report.damagedPlaces += 1
      report.damagedBytes += Int(clamping: end - segment.size)
    }
  }

  /// Keeps what is damaged in a file of its own, since the segment will be removed some day.
  private mutating func quarantine(_ range: Range<Int64>, of segment: SegmentFile) throws {
    report.damagedPlaces += 1
    report.damagedBytes += range.count
    // No sequence number is given again that stood there: each took more than a byte.
    ledger.reserve(nextSequence: ledger.nextSequence + UInt64(range.count))
    let path = folder.damagePath(segment: segment.header.number, offset: range.lowerBound)
    guard try folder.fileSystem.attributes(at: path) == nil else { return }
    try folder.fileSystem.replaceFile(at: path) { writer in
      for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 20) {
        try writer.write(segment.file.readAll(from: start, upTo: min(start + 1 << 20, range.upperBound)))
      }
    }
  }
}
