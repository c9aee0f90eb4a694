public import Larder

/// Compaction and backups concern the whole base.
extension StoreQueue: MaintainableStore where Base: MaintainableStore {
  /// Returns the number of items in each state, and the size of the whole base; see `MaintainableStore`.
  public func storeStatistics() async throws -> StoreStatistics {
    let counts = try await counts()
    let size = try await callingBase(.statistics) { try await base.storeStatistics().bytesOnDisk }
    return StoreStatistics(entryCount: counts.live, bytesOnDisk: size, details: counts.details)
  }

  /// Reads and checks all items and their states; see `MaintainableStore`.
  ///
  /// It does not check the other entries of the base. To check them, verify the base.
  public func verify() async throws -> VerificationReport {
    var report = try await verifyEachEntry()
    try await running(.verify) {
      for try await entry in base.entries(in: layout.states) {
        guard let sequence = layout.sequence(of: entry.key) else { continue }
        guard let item = ItemRecord(entry.value) else {
          add("the state of the item is damaged", nil, sequence, to: &report)
          continue
        }
        // In one snapshot, because the item may have changed since the state was read.
        let keys = [entry.key, layout.itemKey(item.key)]
        let stored = try await read(keys, .verify)
        if (stored[keys[0]] ?? nil) != nil, (stored[keys[1]] ?? nil).flatMap({ StoredItem($0) })?.sequence != sequence {
          add("the value of the item is missing, or is that of another item", item.key, sequence, to: &report)
        }
      }
      for try await entry in items.entries(in: .all) {
        guard let sequence = StoredItem(entry.value)?.sequence else { continue }
        let keys = [layout.itemKey(entry.key), layout.stateKey(sequence)]
        let stored = try await read(keys, .verify)
        let isCurrent = (stored[keys[0]] ?? nil).flatMap { StoredItem($0) }?.sequence == sequence
        if isCurrent, (stored[keys[1]] ?? nil) == nil {
          add("the item has no state, so it is never delivered", entry.key, sequence, to: &report)
        }
      }
    }
    return report
  }

  private func add(_ message: String, _ key: StoreKey?, _ sequence: UInt128, to report: inout VerificationReport) {
    report.findings.append(
      VerificationReport.Finding(key: key, place: "\(information.name), item \(sequence)", message: message))
  }
}
