public import Larder
import LarderFiles

/// Peeking and counting.
extension QueueStore {
  /// Returns the items that would be received first, without leasing them.
  ///
  /// - Parameter max: The maximum number of items.
  /// - Returns: The items with their keys, in order of arrival.
  /// - Throws: `StoreError` with `invalidArgument` if `max` is negative; `corrupted` or `undecodable` if an item cannot
  ///   be decoded; `closed`; `ioFailed`.
  @concurrent
  public func peek(max: Int) async throws -> [StoreEntry<Element>] {
    try information.check(limit: max, for: .peek)
    return try await read(.peek) { ledger in
      ledger.firstDeliverable(max)
    }
  }

  /// Returns the number of items in each state, and the age of the oldest item.
  ///
  /// ```swift
  /// let statistics = try await queue.queueStatistics()
  /// print(statistics.counts.waiting, "items wait")
  /// ```
  ///
  /// - Throws: `StoreError` with `closed`.
  public func queueStatistics() async throws -> QueueStatistics {
    try await perform(.count, .looks) { core in
      let age = core.ledger.oldestArrival.map { arrival in
        let (age, overflows) = core.ledger.now.subtractingReportingOverflow(arrival)
        return Duration.microseconds(overflows ? .max : Swift.max(age, 0))
      }
      return QueueStatistics(counts: core.ledger.counts, oldestAge: age)
    }
  }
}

/// Maintenance runs in pieces, and the queue serves other calls in between.
extension QueueStore: MaintainableStore {
  /// Returns statistics of the queue; see `MaintainableStore/storeStatistics()`.
  public func storeStatistics() async throws -> StoreStatistics {
    let recovery = recovery
    return try await perform(.statistics, .looks) { core in
      let (counts, tallies) = (core.ledger.counts, core.ledger.tallies)
      let details: [(String, Int)] = [
        ("itemBytes", core.ledger.liveBytes), ("segments", core.log.segmentCount),
        ("enqueued", tallies.enqueued), ("delivered", tallies.delivered), ("redelivered", tallies.redelivered),
        ("acknowledged", tallies.acknowledged), ("released", tallies.released),
        ("deadLettered", tallies.deadLettered), ("deadExpired", tallies.deadExpired), ("dropped", tallies.dropped),
        ("isDiskFull", core.log.reserve.isSpent ? 1 : 0), ("tornBytes", recovery.tornBytes),
        ("damagedPlaces", recovery.damagedPlaces), ("damagedBytes", recovery.damagedBytes),
        ("missingSegments", recovery.missingSegments),
      ]
      return StoreStatistics(
        entryCount: counts.live, bytesOnDisk: core.log.totalSize,
        details: counts.details + details.map { StoreStatistics.Detail(name: $0, value: Int64($1)) })
    }
  }

  /// Works with a snapshot of the files on a separate thread, while other calls write.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - message: The message of an error that the file system causes.
  ///   - note: A closure that records the result before any of the files can be removed. It may run several times.
  ///   - body: A closure that works with the snapshot.
  private func withSnapshot<Result: Sendable>(
    _ operation: StoreOperation, message: String,
    noting note: @escaping @Sendable (inout QueueCore, Result) -> Void = { _, _ in },
    _ body: @escaping @Sendable (LogSnapshot) throws -> Result
  ) async throws -> Result {
    try await engine.keepingSegments(
      operation,
      finding: { core in
        LogSnapshot(
          folder: core.log.folder, segments: core.log.sizes, notes: core.log.notes,
          attributes: core.log.segment.attributes)
      },
      { snapshot in
        let executor = DispatchQueueExecutor(label: "Larder.QueueStore.maintenance")
        let value = try await executor.run {
          try snapshot.folder.reportingFileErrors(during: operation, message: message) { try body(snapshot) }
        }
        try await engine.perform(operation, .looks) { note(&$0, value) }
        return value
      })
  }

  /// Reads and checks all stored data; see `MaintainableStore/verify()`.
  @concurrent
  public func verify() async throws -> VerificationReport {
    try await running(.verify) {
      var report = VerificationReport(entryCount: 0)
      var range = KeyRange.all
      while true {
        let part = range
        let items = try await engine.payloads(
          .verify, { $0 }, finding: { $0.ledger.items(in: part, limit: 256, order: .ascending) }
        )
        guard let last = items.last else { break }
        report.entryCount += items.count
        for (item, payload) in items {
          let value = coder.result(of: payload, item, during: .verify)
          guard case .failure(let error) = value else { continue }
          let message =
            error.code == .ioFailed ? "the value cannot be read" : VerificationReport.Finding.message(for: error)
          report.findings.append(finding(about: item, message))
        }
        range = range.after(last.found.key)
      }
      report.findings += try await damagedDeadLetters()
      let damage = try await withSnapshot(
        .verify, message: "the queue could not be read",
        noting: { core, damage in
          for (_, segment, range) in damage { if let segment { core.log.note(damage: range, of: segment) } }
        }
      ) { try $0.damage() }
      report.findings += damage.map {
        VerificationReport.Finding(key: nil, place: $0.place, message: "the bytes are not a valid record of the queue")
      }
      return report
    }
  }

  /// Returns a finding for each dead letter with damaged bytes.
  ///
  /// One that cannot be decoded is no finding, because that may be why it is a dead letter.
  private func damagedDeadLetters() async throws -> [VerificationReport.Finding] {
    var findings: [VerificationReport.Finding] = []
    var sequence: UInt64 = 0
    while true {
      let start = sequence
      let letters = try await engine.payloads(
        .verify, \.item, finding: { $0.ledger.deadLetters(256, after: start) })
      guard let last = letters.last else { return findings }
      for (letter, payload) in letters {
        if case .success(.some) = payload { continue }
        findings.append(finding(about: letter.item, "the dead letter is damaged, or cannot be read"))
      }
      sequence = last.found.item.sequence
    }
  }

  private func finding(about item: QueueItem, _ message: String) -> VerificationReport.Finding {
    let place = "\(engine.folder.segmentPath(item.place.segment)), byte \(item.place.offset)"
    return VerificationReport.Finding(key: item.key, place: place, message: message)
  }

  /// Returns unused space to the file system; see `MaintainableStore/compact()`.
  public func compact() async throws {
    try engine.information.checkWritable(for: .compact)
    try await running(.compact) { try await compactInPieces() }
  }

  private func compactInPieces() async throws {
    try await engine.perform(.compact, .alone) { core in try core.log.beginCompacting(&core.ledger) }
    var hasMore = true
    while hasMore {
      hasMore = try await engine.perform(.compact, .alone) { core in
        guard core.log.cleaning != nil else {
          core.log.removeLeftovers()
          return core.log.hasRemovableLeftovers
        }
        do {
          try core.log.clean(&core.ledger, clockOffset: core.clockOffset)
        } catch let error as FileError where error.isOutOfRoom {
          // Items that there is no room to move stay where they are.
        }
        return core.log.cleaning != nil || core.log.hasRemovableLeftovers
      }
    }
  }

  /// Writes a complete copy of the store; see `MaintainableStore/backup(to:compacting:)`.
  public func backup(to path: String, compacting: Bool) async throws {
    if compacting { try engine.information.checkWritable(for: .backup) }
    try await running(.backup) {
      if compacting { try await compactInPieces() }
      try await withSnapshot(.backup, message: "the backup could not be written") { try $0.copy(to: path) }
    }
  }
}

/// Damage and torn records found in the queue's files when it was opened.
///
/// After a crash, `tornBytes` is usually not zero: it counts the bytes of a record whose write had not returned. Any
/// other finding is damage. The damaged bytes are preserved beside the log in separate files named
/// `damaged-SEGMENT-OFFSET`. All other items are served.
public struct RecoveryReport: Sendable, Hashable {
  /// The number of bytes at the end of the log that were dropped, because they are no complete record or follow an
  /// incomplete one.
  public var tornBytes = 0

  /// The number of damaged ranges in the files, each of which may have held several records.
  public var damagedPlaces = 0

  /// The size of the damaged ranges, in bytes.
  public var damagedBytes = 0

  /// The number of missing segments.
  public var missingSegments = 0

  /// A Boolean value that indicates whether any file is damaged or missing.
  public var hasDamage: Bool { damagedPlaces > 0 || missingSegments > 0 }
}
