import Larder
import LarderFiles

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// How segments come and go.
extension QueueLog {
  /// Begins a new segment, behind everything that is in order in the current one.
  ///
  /// Frames in the current one that are not durable, since a synchronization failed, are written again. Segments that are no
  /// longer needed are removed afterwards.
  ///
  /// - Parameters:
  ///   - ledger: What the queue holds.
  ///   - mayUseReserve: Whether the reserve may be given back for it.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func beginSegment(_ ledger: inout QueueLedger, mayUseReserve: Bool) throws {
    try checkFiles(during: .apply)
    if log?.failure == nil { try log?.synchronize() }
    let end = durableSize
    let unneeded = unneededSegments(ledger, mayUseReserve: mayUseReserve)
    let unsafe = unneeded.contains(number) ? end..<end : end..<max(end, acknowledgedSize)
    var needed = olderSizes
    needed[number] = end
    let list = needed.filter { !unneeded.contains($0.key) }.map { SegmentEnd(number: $0, size: $1) }
    let next: SegmentDraft
    do {
      next = try draft(after: list.sorted { $0.number < $1.number }, copying: unsafe, ledger)
      try write(next, mayUseReserve: mayUseReserve)
    } catch let error as FileError
      where error.isOutOfRoom && log == nil && !mayHaveNext && isOfPresentVersion && !found.isDamaged
    {
      // There is no room for a copy of what an earlier owner left: to write it once more where it is takes none.
      try rewriteInPlace(end..<max(end, acknowledgedSize))
      return
    } catch let error as FileError where error.isOutOfRoom && segment.header.version < SegmentHeader.version {
      throw folder.error(
        .full, during: .apply,
        """
        the disk is full, and the queue was written in version \(segment.header.version) of the format: it can be read, but \
        before anything is taken out of it, a file of the present version must be begun; free \(reserve.size >> 10) KiB or more
        """, isRetryable: true)
    }
    let file = try SegmentFile(next.header.number, in: folder, .readWrite, during: .apply)
    let nextLog = try AppendLog(continuing: file.file, at: file.size)
    mayHaveNext = false
    if !unsafe.isEmpty { ledger.moveEnd(of: number, next.offsets, to: next.header.number) }
    olderSizes[number] = end
    opened.forget(segment.path)
    opened.note(file.attributes.identity, at: file.path, as: .data)
    segment = file
    log = nextLog
    nextFrame = 1 + UInt64(next.frames.count)
    acknowledgedSize = nextLog.size
    initialSize = nextLog.size
    isMarkedClosed = false
    reserve.spend(nextLog.size)
    files.insert(file.file, forSegment: number)
    ledger.segment = number
    drop(unneeded, &ledger)
    try setMark(SegmentEnd(number: number, size: nextLog.size))
  }

  /// The segments that can go, with their damage kept elsewhere: the next opening does not scan what is in no list.
  private mutating func unneededSegments(_ ledger: QueueLedger, mayUseReserve: Bool) -> Set<UInt32> {
    while true {
      let unneeded = ledger.uses.unneeded(among: olderSizes.keys.sorted() + [number], keeping: withheld)
      let withheldBefore = withheld
      for number in unneeded {
        do {
          try usingReserve(mayUseReserve) { try $0.keepDamage(of: number) }
        } catch {
          // It stays in the list, and so do those that say what of it is gone.
          withheld.insert(number)
        }
      }
      if withheld == withheldBefore { return unneeded }
    }
  }

  /// A segment that is to be written.
  private struct SegmentDraft {
    var header: SegmentHeader
    var frames: FrameBuffer
    /// Where payloads were in the segment before, and where they will be.
    var offsets: [UInt32: UInt32]
  }

  private func draft(
    after older: [SegmentEnd], copying unsafe: Range<Int64>, _ ledger: QueueLedger
  ) throws -> SegmentDraft {
    let number = max(number, mark?.number ?? 0) + 1
    guard number < .max >> 1 else {
      throw folder.error(.full, during: .apply, "the queue has used up the numbers of its segments")
    }
    var header = SegmentHeader(
      number: number, identity: identity, salt: .random(in: 1 ... .max), nextSequence: ledger.nextSequence,
      initialLength: 0, codecName: codecName)
    var frames = FrameBuffer()
    frames.reset(
      segment: number, salt: header.salt, base: Int64(header.bytes.count), durable: 0, firstNumber: 1)
    frames.append(.segments(older))
    frames.finish()
    let offsets = unsafe.isEmpty ? [:] : try copy(unsafe, into: &frames)
    frames.finish()
    header.initialLength = Int64(frames.bytes.count)
    return SegmentDraft(header: header, frames: frames, offsets: offsets)
  }

  /// Writes the records of a part of the current segment anew.
  ///
  /// - Returns: Where payloads were, and where they will be.
  private func copy(_ range: Range<Int64>, into frames: inout FrameBuffer) throws -> [UInt32: UInt32] {
    let (header, headLength) = (segment.header, Int64(QueueFrame.headLength(inVersion: segment.header.version)))
    let bytes = try segment.file.readAll(from: range.lowerBound, upTo: range.upperBound)
    var offsets: [UInt32: UInt32] = [:]
    var scanner = segment.scanner(upTo: range.upperBound)
    while let found = try scanner.next() {
      guard case .frame(_, let offset, let body) = found, offset >= range.lowerBound else {
        guard case .damage(let damage) = found, damage.upperBound > range.lowerBound else { continue }
        throw FileError(.read, path: segment.path, errorNumber: EIO)
      }
      guard
        let records = QueueRecord.records(
          of: body, segment: header.number, offset: offset + headLength, version: header.version)
        // That there is damage was noted, and it is kept with the file.
      else { continue }
      for record in records {
        guard case .put(var state) = record else {
          frames.append(record)
          continue
        }
        let start = Int(Int64(state.item.place.offset) - range.lowerBound)
        let payload = bytes[(start + 4)..<(start + 4 + Int(state.item.place.length))]
        let place = frames.place(payloadLength: payload.count)
        offsets[state.item.place.offset] = place.offset
        state.item.place = place
        frames.append(.put(state), payload: payload)
      }
    }
    return offsets
  }

  private mutating func write(_ draft: SegmentDraft, mayUseReserve: Bool) throws {
    let wasSealed = mayHaveNext
    try usingReserve(mayUseReserve) { log in
      log.mayHaveNext = true
      do {
        try QueueLog.writeSegment(
          draft.header, frames: draft.frames.bytes, like: log.segment.attributes, in: log.folder)
      } catch {
        // Before the renaming nothing has happened.
        log.mayHaveNext = wasSealed || [.rename, .synchronizeDirectory].contains((error as? FileError)?.operation)
        throw error
      }
    }
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

  /// Writes a part of the current segment once more, with the same bytes, and makes it durable.
  private mutating func rewriteInPlace(_ range: Range<Int64>) throws {
    for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 20) {
      let bytes = try segment.file.readAll(from: start, upTo: min(start + 1 << 20, range.upperBound))
      try bytes.withUnsafeBytes { try segment.file.writeAll($0, at: start) }
    }
    log = try AppendLog(continuing: segment.file, at: found.size)
  }

  /// Lets the file that says how far the log has come say something else.
  mutating func setMark(_ end: SegmentEnd) throws {
    guard end != mark else { return }
    let path = folder.endPath(end)
    do {
      if let mark {
        try folder.fileSystem.rename(folder.endPath(mark), to: path)
      } else {
        try makeEmptyFile(path)
      }
    } catch let error as FileError where folder.hasLost(error) {
      // Somebody has removed it.
      try makeEmptyFile(path)
    }
    mark = end
  }

  // MARK: Removing

  /// Lets go of segments that the current one, which is durable, does not need.
  ///
  /// Their files stay until ``removeLeftovers()``.
  private mutating func drop(_ unneeded: Set<UInt32>, _ ledger: inout QueueLedger) {
    for number in unneeded {
      guard let size = olderSizes.removeValue(forKey: number) else { continue }
      leftovers[number] = size
    }
    ledger.uses.remove(unneeded)
    hasFailedToRemove = false
  }

  /// How many bytes of segments are removed at a time: file systems take some milliseconds for that.
  private static let removalLimit: Int64 = 32 << 20

  /// Whether ``removeLeftovers()`` has something to do.
  var hasRemovableLeftovers: Bool { pinCount == 0 && !leftovers.isEmpty && !hasFailedToRemove }

  /// Removes unneeded segments that are not being read, only so many bytes at a time that other calls need not wait long.
  mutating func removeLeftovers() {
    guard pinCount == 0 else { return }
    var removed: Int64 = 0
    for (number, size) in leftovers.sorted(by: { $0.key < $1.key }) where removed < QueueLog.removalLimit {
      files.remove(number)
      do {
        let isGone = try removeFile(ofSegment: number, isDamaged: damagedPlaces[number] != nil)
        leftovers[number] = nil
        guard isGone else { continue }
        reserve.gain(size)
        removed += size
      } catch {
        // Nothing is lost but space: it is tried again with the next segment, and at the next opening.
        hasFailedToRemove = true
      }
    }
  }

  /// Removes the file of an unneeded segment, or keeps it under another name where something in it cannot be read: the disk
  /// may give that later, or to a program that saves data.
  ///
  /// - Parameters:
  ///   - number: The segment.
  ///   - isDamaged: Whether anything in it is noted as damaged.
  /// - Returns: Whether it was removed.
  mutating func removeFile(ofSegment number: UInt32, isDamaged: Bool) throws -> Bool {
    try keepDamage(of: number)
    let path = folder.segmentPath(number)
    let isRemoved = try !isDamaged || isReadable(number)
    if isRemoved {
      try folder.fileSystem.removeFile(at: path)
    } else {
      try folder.fileSystem.rename(path, to: folder.damagePath(segment: number, offset: 0))
    }
    damagedPlaces[number] = nil
    unreadable.remove(number)
    return isRemoved
  }

  /// Whether the disk gives every byte of a segment.
  private func isReadable(_ number: UInt32) throws -> Bool {
    let file = try folder.fileSystem.open(folder.segmentPath(number), .read)
    let size = try file.attributes().size
    for start in stride(from: 0, to: size, by: 1 << 20) {
      guard try file.readable(from: start, upTo: min(start + 1 << 20, size)).isWhole else { return false }
    }
    return true
  }

  /// Notes a damaged place, which is kept in a file of its own before the segment is removed.
  mutating func note(damage range: Range<Int64>, of segment: UInt32) {
    guard damagedPlaces[segment]?.contains(where: { $0.overlaps(range) }) != true else { return }
    damagedPlaces[segment, default: []].append(range)
  }

  /// Copies the damaged places of a segment into files of their own, with zeros for what cannot be read.
  func keepDamage(of number: UInt32) throws {
    guard let ranges = damagedPlaces[number] else { return }
    let file = try folder.fileSystem.open(folder.segmentPath(number), .read)
    for range in ranges {
      let path = folder.damagePath(segment: number, offset: range.lowerBound)
      guard try folder.fileSystem.attributes(at: path) == nil else { continue }
      try folder.fileSystem.replaceFile(at: path, like: segment.attributes) { writer in
        for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 20) {
          try writer.write(file.readable(from: start, upTo: min(start + 1 << 20, range.upperBound)).bytes)
        }
      }
    }
  }
}
