import Larder
import LarderFiles

/// How space is given back that old segments take.
extension QueueLog {
  /// How much is written anew at a time, while others wait.
  private static let stepBytes = 256 << 10
  private static let stepLooks = 16_384
  /// How much of it is made durable at a time.
  private static let synchronizedBytes: Int64 = 2 << 20

  /// Whether ``reclaim(_:clockOffset:)`` has something to do.
  func needsReclaiming(_ ledger: inout QueueLedger) -> Bool {
    if hasRemovableLeftovers { return true }
    guard !isSealed else { return false }
    if let cleaning { return !cleaning.isAskedFor }
    return !olderSizes.isEmpty && (hasUnneededSegments(&ledger) || !targets(ledger).isEmpty)
  }

  private func hasUnneededSegments(_ ledger: inout QueueLedger) -> Bool {
    guard ledger.uses.mayHaveUnneeded else { return false }
    ledger.uses.mayHaveUnneeded = !ledger.uses.unneeded(among: olderSizes.keys.sorted(), keeping: withheld).isEmpty
    return ledger.uses.mayHaveUnneeded
  }

  /// Does one step of reclaiming the space of segments that are unneeded or hold little.
  ///
  /// - Parameters:
  ///   - ledger: What the queue holds.
  ///   - clockOffset: What is added to times as they are written, in microseconds.
  /// - Returns: Whether it was of use.
  /// - Throws: ``StoreError``; `FileError`.
  mutating func reclaim(_ ledger: inout QueueLedger, clockOffset: Int64) throws -> Bool {
    if hasRemovableLeftovers {
      removeLeftovers()
      return true
    }
    if cleaning == nil {
      if hasUnneededSegments(&ledger) {
        try beginSegment(&ledger, mayUseReserve: reserve.isSpent)
        removeLeftovers()
        return true
      }
      cleaning = Cleaning(targets: targets(ledger))
    }
    return try clean(&ledger, clockOffset: clockOffset)
  }

  /// Begins to write anew what older segments hold that is needed.
  mutating func beginCompacting(_ ledger: inout QueueLedger) throws {
    if size > initialSize { try beginSegment(&ledger, mayUseReserve: true) }
    cleaning = Cleaning(targets: Set(olderSizes.keys), isAskedFor: true)
  }

  /// Writes a piece of what is to be written anew; after the last the segments that are not needed any more can be removed.
  ///
  /// - Returns: Whether it was of use: not where it is over and nothing could go.
  /// - Throws: ``StoreError``; `FileError`. It is over then.
  @discardableResult
  mutating func clean(_ ledger: inout QueueLedger, clockOffset: Int64) throws -> Bool {
    guard var next = cleaning else { return false }
    do {
      if !isReady(for: ledger) { try beginSegment(&ledger, mayUseReserve: false) }
      let (records, said) = ledger.nextSurvivors(of: &next, bytes: QueueLog.stepBytes, looks: QueueLog.stepLooks)
      try rewrite(records, &ledger, clockOffset: clockOffset)
      next.unsaid.formUnion(unreadable)
      for segment in said { ledger.uses.moveGone(of: segment, to: number) }
      cleaning = next
      guard next.isOver else { return true }
      cleaning = nil
      ledger.uses.mayHaveUnneeded = true
      guard hasUnneededSegments(&ledger) else { return false }
      try beginSegment(&ledger, mayUseReserve: reserve.isSpent)
      return true
    } catch {
      cleaning = nil
      throw error
    }
  }

  private mutating func rewrite(_ records: [QueueRecord], _ ledger: inout QueueLedger, clockOffset: Int64) throws {
    guard !records.isEmpty else { return }
    var buffer = FrameBuffer()
    reset(&buffer, clockOffset: clockOffset)
    var written: [QueueRecord] = []
    for record in records {
      // Each stands for itself.
      buffer.beginCall()
      do throws(FileError) {
        written.append(try rewrite(record, into: &buffer))
      } catch {
        // What the disk refuses stays where it is, and the rest goes on.
        guard case .put(let state) = record, folder.isAboutOnePlace(error) else { throw error }
        unreadable.insert(state.item.place.segment)
      }
    }
    guard !written.isEmpty else { return }
    buffer.finish()
    try append(buffer, mayUseReserve: false, isDurable: false)
    // Not all of it when the segment is full, while others wait.
    if size - durableSize >= QueueLog.synchronizedBytes { try synchronize() }
    for record in written { ledger.apply(record, from: .decision) }
    ledger.commit()
  }

  /// Writes a record anew, with its payload where it has one.
  private func rewrite(_ record: QueueRecord, into buffer: inout FrameBuffer) throws(FileError) -> QueueRecord {
    guard case .put(var state) = record else {
      buffer.append(record)
      return record
    }
    // With the checksum that stands there: what is damaged is still to be found out.
    let (checksum, payload) = try files.readStored(state.item.place)
    state.item.place = buffer.place(payloadLength: payload.count)
    state.item.stateSegment = state.item.place.segment
    buffer.append(.put(state), payload: payload, checksum: checksum)
    return .put(state)
  }

  // MARK: What is worth while

  /// The segments whose needed parts are worth writing anew.
  private func targets(_ ledger: QueueLedger) -> Set<UInt32> {
    reserve.isSpent ? targetsOnFullDisk(ledger) : targetsWhereLogIsLong(ledger)
  }

  /// Where more than half of the log is dead weight behind old items, or there are many small segments: the oldest.
  ///
  /// Small ones several at once: as one goes another one comes.
  private func targetsWhereLogIsLong(_ ledger: QueueLedger) -> Set<UInt32> {
    let size = neededSize
    guard
      size > 2 * Int64(ledger.uses.totalCost) + 2 * folder.segmentSize
        || segmentCount > 2 * (Int(size / folder.segmentSize) + ledger.uses.totalIDBytes / reserve.idLimit) + 16
    else { return [] }
    var targets: Set<UInt32> = []
    var sum: Int64 = 0
    for (number, length) in olderSizes.sorted(by: { $0.key < $1.key }) where !unreadable.contains(number) {
      guard sum == 0 || sum + length <= folder.segmentSize else { break }
      targets.insert(number)
      sum += length
    }
    return targets
  }

  /// Where the reserve is spent: as many as a part of it is enough for, if they give back more than they take.
  private func targetsOnFullDisk(_ ledger: QueueLedger) -> Set<UInt32> {
    let allowance = min(reserve.size, max(reserve.budget, 0)) / 4
    var targets: Set<UInt32> = []
    var (freed, cost): (Int64, Int64) = (0, 0)
    let candidates = olderSizes.filter { !unreadable.contains($0.key) }.map { number, size in
      // What is gone is said in a few bytes, mostly.
      (number: number, size: size, cost: Int64(ledger.uses[number].cost) + 256)
    }
    // Those that give most for what they take come first.
    for candidate in candidates.sorted(by: { $0.cost * $1.size < $1.cost * $0.size }) {
      guard cost + candidate.cost <= allowance else { break }
      targets.insert(candidate.number)
      freed += candidate.size
      cost += candidate.cost
    }
    // What it gives is a fair part of what it takes, so that it comes to an end.
    return freed > cost + cost / 4 + reserve.segmentLimit / 2 ? targets : []
  }
}
