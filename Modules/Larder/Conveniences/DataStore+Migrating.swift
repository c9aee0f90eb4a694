extension DataStore {
  /// Writes every value of an older version again, so that all values have the newest version.
  ///
  /// ```swift
  /// let outcome = try await users.migrateAll { progress in
  ///   print(progress.examinedCount, "entries")
  /// }
  /// ```
  ///
  /// The walk reads the keys in ascending order and updates `batchSize` of them at a time. An update is one atomic step
  /// of the store, which reads the values with their migrations and writes them back. Other readers and writers can use
  /// the store during the walk, and every value is readable at every moment.
  ///
  /// If the program ends during the walk, call the method again. Values that already have the newest version have the
  /// same bytes as before, so a store does not write them. To skip the entries that were already examined, continue
  /// behind ``MigrationProgress/lastKey``:
  ///
  /// ```swift
  /// try await users.migrateAll(in: KeyRange.all.after(lastKey))
  /// ```
  ///
  /// An entry that cannot be migrated stays as it is, and the walk continues. It is counted in the result. This is the
  /// case if the value cannot be read, has a newer version, or is too large in the new form.
  ///
  /// - Parameters:
  ///   - range: The keys to examine. Defaults to all keys.
  ///   - batchSize: The maximum number of entries of an update, from 1. Other writers wait for that long. Defaults to
  ///     256.
  ///   - progress: A closure that receives the progress after each update. An error that it throws ends the walk.
  ///     Defaults to a closure that does nothing.
  /// - Returns: The progress at the end.
  /// - Throws: ``StoreError`` with `invalidArgument` if `batchSize` is less than 1; `unsupported` if the entries of the
  ///   store expire, because an update gives them a new time to live: call the method on the store below the expiring
  ///   one, whose values contain their deadlines; as ``keys(in:limit:order:)`` and ``update(_:_:)``.
  ///   `CancellationError`; the error that `progress` throws.
  @discardableResult
  public func migrateAll(
    in range: KeyRange = .all, batchSize: Int = 256, progress: (MigrationProgress) throws -> Void = { _ in }
  ) async throws -> MigrationProgress {
    try checkMigration(batchSize: batchSize)
    var state = MigrationProgress()
    var remaining = range
    while true {
      let keys = try await keys(in: remaining, limit: batchSize, order: .ascending)
      guard let last = keys.last else { return state }
      try await migrate(keys, &state)
      state.examinedCount += keys.count
      state.lastKey = last
      try progress(state)
      remaining = remaining.after(last)
    }
  }

  private func checkMigration(batchSize: Int) throws {
    guard batchSize >= 1 else {
      throw StoreError(
        .invalidArgument, during: .update, store: information.name,
        message: "batchSize must be at least 1, not \(batchSize)")
    }
    guard AnyDataStore(self).expiry == nil else {
      throw StoreError(
        .unsupported, during: .update, store: information.name,
        message: "the entries expire, and migrating them here would reset their deadlines; call migrateAll() on the "
          + "store below the expiring one")
    }
  }

  /// Writes the values of some keys back, without those that cannot be migrated.
  private func migrate(_ keys: [StoreKey], _ state: inout MigrationProgress) async throws {
    var keys = keys
    while !keys.isEmpty {
      do {
        // The store compares the bytes of the same values in the newest version with the stored ones.
        try await update(keys) { _ in }
        return
      } catch let error as StoreError where error.concernsStoredValue || error.code.isAboutEncoding {
        guard let key = error.key, let index = keys.firstIndex(of: key) else { throw error }
        keys.remove(at: index)
        state.note(error)
      }
    }
  }
}

/// The progress of ``DataStore/migrateAll(in:batchSize:progress:)``.
public struct MigrationProgress: Sendable {
  /// The maximum number of ``failures``.
  public static let failureLimit = 100

  /// The number of entries that were examined, including those that could not be migrated.
  public internal(set) var examinedCount = 0

  /// The last key that was examined, or `nil` if none was.
  public internal(set) var lastKey: StoreKey?

  /// The number of entries that could not be migrated.
  public private(set) var failureCount = 0

  /// The errors of the first entries that could not be migrated.
  ///
  /// There are at most ``failureLimit``, and each has a key.
  public private(set) var failures: [StoreError] = []

  mutating func note(_ failure: StoreError) {
    failureCount += 1
    if failures.count < MigrationProgress.failureLimit { failures.append(failure) }
  }
}

extension StoreError.Code {
  /// Whether the error is about the new bytes of one value.
  fileprivate var isAboutEncoding: Bool { self == .encodingFailed || self == .valueTooLarge }
}
