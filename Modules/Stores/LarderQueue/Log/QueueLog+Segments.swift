import Larder
import LarderFiles

/// Creating and removing segments.
extension QueueLog {
  /// Begins a new segment after the last durable frame of the current one.
  ///
  /// Frames of the current segment that are not durable, because a synchronization failed, are rewritten to the new
  /// one. Unneeded segments are removed afterward.
  ///
  /// - Parameters:
  ///   - ledger: The items of the queue.
  ///   - mayUseReserve: A Boolean value that indicates whether the space reserve may be released for it.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func beginSegment(_ ledger: inout QueueLedger, mayUseReserve: Bool) throws {
    try checkFiles(during: .apply)
    try checkOlderSegments()
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
      where error.isOutOfRoom && log == nil && !mayHaveNext && isNewest && hasPresentCodec && !found.isDamaged
    {
      // There is no room to copy the frames of an earlier owner, but rewriting them in place needs none.
      try rewriteInPlace(end..<max(end, acknowledgedSize))
      return
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

  /// Returns the segments that can be removed, after copying their damage.
  ///
  /// The next opening scans no segment that is missing from the list.
  private mutating func unneededSegments(_ ledger: QueueLedger, mayUseReserve: Bool) -> Set<UInt32> {
    while true {
      let unneeded = ledger.uses.unneeded(among: olderSizes.keys.sorted() + [number], keeping: withheld)
      let withheldBefore = withheld
      for number in unneeded {
        do {
          try usingReserve(mayUseReserve) { try $0.keepDamage(of: number) }
        } catch {
          // The segment stays in the list, and so do the segments that record which of its items are gone.
          withheld.insert(number)
        }
      }
      if withheld == withheldBefore { return unneeded }
    }
  }

  /// A segment that is not written yet.
  private struct SegmentDraft {
    var header: SegmentHeader
    var frames: FrameBuffer
    /// The offsets of payloads in the current segment, with their offsets in the new one.
    var offsets: [UInt32: UInt32]
  }

  private func draft(
    after older: [SegmentEnd], copying unsafe: Range<Int64>, _ ledger: QueueLedger
  ) throws -> SegmentDraft {
    let number = max(number, mark?.number ?? 0) + 1
    guard number < .max >> 1 else {
      throw folder.error(.full, during: .apply, "the queue has no segment numbers left; create a new queue")
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

  /// Copies the records of a range of the current segment.
  ///
  /// - Returns: The old offsets of payloads, with their new ones.
  private func copy(_ range: Range<Int64>, into frames: inout FrameBuffer) throws -> [UInt32: UInt32] {
    let (number, headLength) = (segment.header.number, Int64(QueueFrame.headLength))
    let bytes = try segment.file.readAll(from: range.lowerBound, upTo: range.upperBound)
    var offsets: [UInt32: UInt32] = [:]
    var scanner = segment.scanner(upTo: range.upperBound)
    while let found = try scanner.next() {
      guard case .frame(_, let offset, let body) = found, offset >= range.lowerBound else {
        guard case .damage(let damage) = found, damage.upperBound > range.lowerBound else { continue }
        throw FileError.unreadable(segment.path)
      }
      guard
        let records = QueueRecord.records(of: body, segment: number, offset: offset + headLength)
        // The damage was recorded, and its bytes are preserved with the file.
      else { continue }
      for record in records {
        guard case .put(let state) = record else {
          frames.append(record)
          continue
        }
        let start = Int(Int64(state.item.place.offset) - range.lowerBound)
        let payload = bytes[(start + 4)..<(start + 4 + Int(state.item.place.length))]
        offsets[state.item.place.offset] = frames.append(state, payload: payload).offset
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
        // Before the renaming, a failure leaves no file.
        log.mayHaveNext = wasSealed || (error as? FileError)?.leavesReplacementInDoubt == true
        throw error
      }
    }
  }

  /// Writes the file of a new segment.
  ///
  /// - Parameters:
  ///   - header: The header of the segment.
  ///   - frames: The frames after the header.
  ///   - existing: The attributes whose permissions and owner the file gets.
  ///   - folder: The folder of the queue.
  /// - Throws: `FileError`.
  static func writeSegment(
    _ header: SegmentHeader, frames: [UInt8], like existing: FileAttributes?, in folder: QueueFolder
  ) throws {
    try folder.fileSystem.replaceFile(at: folder.segmentPath(header.number), like: existing) { writer in
      try writer.write(header.bytes)
      try writer.write(frames)
    }
  }

  /// Rewrites a range of the current segment with the same bytes, and synchronizes it.
  private mutating func rewriteInPlace(_ range: Range<Int64>) throws {
    for start in stride(from: range.lowerBound, to: range.upperBound, by: 1 << 20) {
      let bytes = try segment.file.readAll(from: start, upTo: min(start + 1 << 20, range.upperBound))
      try segment.file.writeAll(bytes, at: start)
    }
    log = try AppendLog(continuing: segment.file, at: found.size)
  }

  /// Moves the end mark, whose name records how far the log has certainly come.
  mutating func setMark(_ end: SegmentEnd) throws {
    guard end != mark else { return }
    let path = folder.endPath(end)
    do {
      if let mark {
        try folder.fileSystem.rename(folder.endPath(mark), to: path)
      } else {
        try makeEmptyFile(path)
      }
    } catch let error as FileError where error.isMissing {
      // Another program has removed the mark.
      try makeEmptyFile(path)
    }
    mark = end
  }

  // MARK: Removing

  /// Drops segments that the current segment, which is durable, does not need.
  ///
  /// Their files stay until ``removeLeftovers()`` is called.
  private mutating func drop(_ unneeded: Set<UInt32>, _ ledger: inout QueueLedger) {
    for number in unneeded {
      guard let size = olderSizes.removeValue(forKey: number) else { continue }
      leftovers[number] = size
    }
    ledger.uses.remove(unneeded)
    hasFailedToRemove = false
  }

  /// The size, in bytes, of the segments that are removed in one step.
  ///
  /// File systems take some milliseconds to remove them.
  private static let removalLimit: Int64 = 32 << 20

  /// A Boolean value that indicates whether ``removeLeftovers()`` can remove a segment.
  var hasRemovableLeftovers: Bool { pins.isEmpty && !leftovers.isEmpty && !hasFailedToRemove }

  /// Removes unneeded segments that are not being read, in steps short enough for waiting calls.
  mutating func removeLeftovers() {
    guard pins.isEmpty else { return }
    var removed: Int64 = 0
    for (number, size) in leftovers.sorted(by: { $0.key < $1.key }) where removed < QueueLog.removalLimit {
      do {
        let isGone = try removeFile(ofSegment: number, isDamaged: damagedPlaces[number] != nil)
        files.remove(number)
        leftovers[number] = nil
        guard isGone else { continue }
        reserve.gain(size)
        removed += size
      } catch {
        // Only space is lost. Another attempt follows with the next segment and at the next opening.
        hasFailedToRemove = true
      }
    }
  }

  /// Removes the file of an unneeded segment.
  ///
  /// If some of its damaged bytes cannot be read, the file is renamed instead, because a later attempt or a recovery
  /// program may read them.
  ///
  /// - Parameters:
  ///   - number: The number of the segment.
  ///   - isDamaged: A Boolean value that indicates whether damage in the segment is recorded.
  /// - Returns: A Boolean value that indicates whether the file was removed.
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

  /// Returns whether the disk can read every byte of a segment.
  private func isReadable(_ number: UInt32) throws -> Bool {
    let file = try folder.fileSystem.open(folder.segmentPath(number), .read)
    let size = try file.attributes().size
    for start in stride(from: 0, to: size, by: 1 << 20) {
      guard try file.readable(from: start, upTo: min(start + 1 << 20, size)).isWhole else { return false }
    }
    return true
  }

  /// Records a damaged range that is copied to a separate file before its segment is removed.
  mutating func note(damage range: Range<Int64>, of segment: UInt32) {
    guard damagedPlaces[segment]?.contains(where: { $0.overlaps(range) }) != true else { return }
    damagedPlaces[segment, default: []].append(range)
  }

  /// Copies the damaged ranges of a segment to separate files, with zeros for bytes that cannot be read.
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
