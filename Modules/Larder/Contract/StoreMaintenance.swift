/// What an operator does to a store beside reading and writing: statistics, verification, compaction, backup.
///
/// It is reached by ``StoreInformation/maintenance``, so that it works through any stack of decorators and through
/// ``AnyDataStore``.
public protocol StoreMaintenance: Sendable {
  /// Measures the store.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed`.
  func statistics() async throws -> StoreStatistics

  /// Reads everything that is stored, values included, and checks it.
  ///
  /// Damage is a finding, not an error: it is in the result.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed` where reading fails.
  func verify() async throws -> VerificationReport

  /// Gives back the space of what was overwritten and removed.
  ///
  /// - Throws: ``StoreError``: `unsupported` where the kind of store has nothing to give back; `closed`; `ioFailed`;
  ///   `full`.
  func compact() async throws

  /// Writes a complete copy of the store, as it is at one moment, that can be opened as a store of the same kind.
  ///
  /// - Parameters:
  ///   - path: Where the copy goes. Nothing may be there yet.
  ///   - compacting: Whether the copy leaves out free space that the store keeps, which may take longer. The copies of a
  ///     store that keeps none are compact either way.
  /// - Throws: ``StoreError``: `invalidArgument` where something is at `path` already; `closed`; `ioFailed`; `full`.
  func backup(to path: String, compacting: Bool) async throws
}

extension StoreMaintenance {
  /// Writes a complete copy of the store, free space included; see ``backup(to:compacting:)``.
  ///
  /// - Parameter path: Where the copy goes. Nothing may be there yet.
  /// - Throws: As ``backup(to:compacting:)``.
  public func backup(to path: String) async throws {
    try await backup(to: path, compacting: false)
  }
}
