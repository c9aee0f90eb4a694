import Larder
import LarderFiles

/// Statistics, verification, compaction and backup of a ``QueueStore``.
struct QueueStoreMaintenance<Element: Sendable>: StoreMaintenance {
  let engine: QueueEngine
  let coder: QueueCoder<Element>
  let recovery: RecoveryReport

  func statistics() async throws -> StoreStatistics {
    let recovery = recovery
    return try await engine.maintain(.statistics) { core in
      let (counts, tallies) = (core.ledger.counts, core.ledger.tallies)
      let details: [(String, Int)] = [
        ("waiting", counts.waiting), ("delayed", counts.delayed), ("leased", counts.leased), ("dead", counts.dead),
        ("itemBytes", core.ledger.liveBytes), ("segments", core.log.segmentCount),
        ("enqueued", tallies.enqueued), ("delivered", tallies.delivered), ("redelivered", tallies.redelivered),
        ("acknowledged", tallies.acknowledged), ("released", tallies.released),
        ("deadLettered", tallies.deadLettered), ("dropped", tallies.dropped),
        ("tornBytes", recovery.tornBytes), ("damagedPlaces", recovery.damagedPlaces),
        ("damagedBytes", recovery.damagedBytes), ("missingSegments", recovery.missingSegments),
      ]
      return StoreStatistics(
        entryCount: counts.live, bytesOnDisk: core.log.totalSize,
        details: details.map { StoreStatistics.Detail(name: $0, value: Int64($1)) })
    }
  }

  func verify() async throws -> VerificationReport {
    let coder = coder
    return try await engine.maintain(.verify) { core in
      let items = core.ledger.items(in: .all, limit: .max, order: .ascending)
      var report = VerificationReport(entryCount: items.count)
      for slice in stride(from: 0, to: items.count, by: 1024) {
        let part = Array(items[slice..<min(slice + 1024, items.count)])
        for (item, payload) in zip(part, try core.payloads(of: part)) {
          guard case .failure = coder.result(of: payload, forKey: item.key, during: .verify) else { continue }
          report.findings.append(
            VerificationReport.Finding(
              key: item.key, place: core.log.place(of: item.place), message: "the value cannot be decoded"))
        }
      }
      report.findings += try core.log.damage().map {
        VerificationReport.Finding(key: nil, place: $0, message: "what stands there is no record of the queue")
      }
      return report
    }
  }

  func compact() async throws {
    try engine.information.checkWritable(for: .compact)
    try await engine.maintain(.compact) { try $0.log.compact(&$0.ledger) }
  }

  func backup(to path: String, compacting: Bool) async throws {
    if compacting { try engine.information.checkWritable(for: .backup) }
    try await engine.maintain(.backup) { core in
      if compacting { try core.log.compact(&core.ledger) }
      try core.log.backup(to: path)
    }
  }
}
