import Larder
import LarderFiles

/// Statistics, verification, compaction and backup of a ``QueueStore``, in pieces between which other calls are served.
struct QueueStoreMaintenance<Element: Sendable>: StoreMaintenance {
  let engine: QueueEngine
  let coder: QueueCoder<Element>
  let recovery: RecoveryReport

  private func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    guard engine.running.begin() else { throw engine.information.closedError(for: operation) }
    defer { engine.running.end() }
    return try await body()
  }

  func statistics() async throws -> StoreStatistics {
    let recovery = recovery
    return try await running(.statistics) {
      try await engine.maintain(.statistics) { core in
        let (counts, tallies) = (core.ledger.counts, core.ledger.tallies)
        let details: [(String, Int)] = [
          ("waiting", counts.waiting), ("delayed", counts.delayed), ("leased", counts.leased), ("dead", counts.dead),
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
          details: details.map { StoreStatistics.Detail(name: $0, value: Int64($1)) })
      }
    }
  }

  /// Does something with the files as they are now, on a thread of its own, while others write.
  ///
  /// - Parameters:
  ///   - operation: What is asked for.
  ///   - message: What an error of the disk means, for people to read.
  ///   - note: Takes over what it has come to, before any of the files may go.
  ///   - body: Does it.
  private func withSnapshot<Result: Sendable>(
    _ operation: StoreOperation, message: String,
    noting note: @escaping @Sendable (inout QueueCore, Result) -> Void = { _, _ in },
    _ body: @escaping @Sendable (LogSnapshot) throws -> Result
  ) async throws -> Result {
    // Alone, so that it does not run again when what others want cannot be written.
    let snapshot = try await engine.maintain(operation, .alone) { core in
      core.log.pinCount += 1
      return LogSnapshot(
        folder: core.log.folder, segments: core.log.sizes, notes: core.log.notes,
        attributes: core.log.segment.attributes)
    }
    let executor = DispatchQueueExecutor(label: "Larder.QueueStore.maintenance")
    let result: Swift.Result<Result, any Error> = await executor.run {
      Swift.Result {
        try snapshot.folder.reportingFileErrors(during: operation, message: message) { try body(snapshot) }
      }
    }
    try await engine.maintain(operation, .alone) { core in
      if case .success(let value) = result { note(&core, value) }
      core.log.pinCount -= 1
      core.log.removeLeftovers()
    }
    return try result.get()
  }

  func verify() async throws -> VerificationReport {
    try await running(.verify) {
      var report = VerificationReport(entryCount: 0)
      var range = KeyRange.all
      while true {
        let part = range
        let items = try await engine.readablePayloads(.verify, of: { $0 }) { core in
          core.ledger.items(in: part, limit: 256, order: .ascending)
        }
        guard let last = items.last else { break }
        report.entryCount += items.count
        for (item, payload) in items {
          guard case .failure(let error) = coder.result(of: payload, forKey: item.key, during: .verify) else {
            continue
          }
          report.findings.append(
            VerificationReport.Finding(
              key: item.key, place: "\(engine.folder.segmentPath(item.place.segment)), byte \(item.place.offset)",
              message: error.code == .ioFailed ? "the value cannot be read" : "the value cannot be decoded"))
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
        VerificationReport.Finding(key: nil, place: $0.place, message: "what stands there is no record of the queue")
      }
      return report
    }
  }

  /// Dead letters of which the bytes are damaged; that one cannot be decoded is why it died, perhaps.
  private func damagedDeadLetters() async throws -> [VerificationReport.Finding] {
    var findings: [VerificationReport.Finding] = []
    var sequence: UInt64 = 0
    while true {
      let start = sequence
      let letters = try await engine.readablePayloads(.verify, of: \.item) {
        $0.ledger.deadLetters(256, after: start)
      }
      guard let last = letters.last else { return findings }
      for (letter, payload) in letters {
        if case .success(.some) = payload { continue }
        let (key, place) = (letter.item.key, letter.item.place)
        findings.append(
          VerificationReport.Finding(
            key: key, place: "\(engine.folder.segmentPath(place.segment)), byte \(place.offset)",
            message: "the dead letter is damaged, or cannot be read"))
      }
      sequence = last.found.item.sequence
    }
  }

  func compact() async throws {
    try engine.information.checkWritable(for: .compact)
    try await running(.compact) { try await compactInPieces() }
  }

  private func compactInPieces() async throws {
    try await engine.maintain(.compact, .alone) { core in try core.log.beginCompacting(&core.ledger) }
    var goesOn = true
    while goesOn {
      goesOn = try await engine.maintain(.compact, .alone) { core in
        guard core.log.cleaning != nil else {
          core.log.removeLeftovers()
          return core.log.hasRemovableLeftovers
        }
        do {
          try core.log.clean(&core.ledger, clockOffset: core.clockOffset)
        } catch let error as FileError where error.isOutOfRoom {
          // What there is no room to move stays where it is.
        }
        return core.log.cleaning != nil || core.log.hasRemovableLeftovers
      }
    }
  }

  func backup(to path: String, compacting: Bool) async throws {
    if compacting { try engine.information.checkWritable(for: .backup) }
    try await running(.backup) {
      if compacting { try await compactInPieces() }
      try await withSnapshot(.backup, message: "the backup could not be written") { try $0.copy(to: path) }
    }
  }
}
