import Larder

/// Verifies a store that has no verification of its own: reads every entry, one by one, so that damage to one hides none
/// of the others.
enum EntryByEntryVerification {
  /// Reads every entry.
  ///
  /// - Throws: What the store throws, other than damage, which is in the report.
  static func report(on store: some DataStore) async throws -> VerificationReport {
    var report = VerificationReport(entryCount: 0)
    for try await key in store.keys(in: .all) {
      report.entryCount += 1
      do {
        _ = try await store.value(forKey: key)
      } catch let error as StoreError where error.code == .corrupted {
        report.findings.append(VerificationReport.Finding(damage: error, key: key))
      }
    }
    return report
  }
}

extension VerificationReport.Finding {
  /// The damage that a store reports by an error.
  ///
  /// - Parameters:
  ///   - error: The error.
  ///   - key: The key that was read; `nil` to take that of the error, where it has one.
  init(damage error: StoreError, key: StoreKey? = nil) {
    self.init(key: key ?? error.key, place: error.store, message: error.fullMessage)
  }
}
