public import Larder

extension VerificationReport {
  /// Creates the report of a store.
  ///
  /// - Parameters:
  ///   - store: The name of the store.
  ///   - lines: The lines of `PRAGMA integrity_check` for the database.
  ///   - read: A closure that returns the first entries of a range, up to a limit: the key of each, and its problem, if
  ///     any.
  /// - Throws: The error that `read` throws, unless the check of the database has found the damage already.
  public init(
    ofStore store: String, integrityCheck lines: [String],
    read: @escaping @Sendable (_ range: KeyRange, _ limit: Int) async throws -> [(key: StoreKey, problem: String?)]
  ) async throws {
    self.init(entryCount: 0)
    for problem in lines where problem != "ok" {
      findings.append(Finding(key: nil, place: store, message: problem))
    }
    // The damage that the check of the structure found can also stop the scan.
    try await addEntries(of: store, read)
  }
}
