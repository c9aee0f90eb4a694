extension DataStore {
  /// Writes every value of an older version again, so all values have the newest version.
  ///
  /// ```swift
  /// let outcome = try await users.migrateAll { progress in
  ///   print(progress.examinedCount, "entries")
  /// }
  /// ```
  ///
  /// The walk reads the keys in ascending order and updates `batchSize` of them at a time. An update is one atomic step
  /// of the store that reads the values with their migrations and writes them back. Other readers and writers can use
  /// the store during the walk, and every value is readable at every moment.
  ///
  /// If your program ends during the walk, call the method again. Values that already have the newest version have the
  /// same bytes as before, so a store does not write them. To skip the entries that were already examined, continue
  /// behind ``RewriteProgress/lastKey``:
  ///
  /// ```swift
  /// try await users.migrateAll(in: KeyRange.all.after(lastKey))
  /// ```
  ///
  /// An entry that cannot be migrated stays as it is, and the walk continues. It is counted in the result. This is the
  /// case if the value cannot be read, has a newer version, or is too large in the new form.
  ///
  /// - Parameters:
  ///   - range: The range of keys to examine. Defaults to all keys.
  ///   - batchSize: The maximum number of entries of an update, from 1. Other writers wait for that long. Defaults to
  ///     256.
  ///   - progress: A closure that receives the progress after each update. An error that it throws ends the walk.
  ///     Defaults to a closure that does nothing.
  /// - Returns: The progress at the end.
  /// - Throws: ``StoreError`` with `invalidArgument` if `batchSize` is less than 1; `unsupported` if the entries of the
  ///   store expire, because an update gives them a new time to live: call the method on the store below the expiring
  ///   one, whose values contain their deadlines; as ``keys(in:limit:order:)`` and ``update(_:_:)-([StoreKey],_)``.
  ///   `CancellationError`; the error that `progress` throws.
  @discardableResult
  public func migrateAll(
    in range: KeyRange = .all, batchSize: Int = 256, progress: (RewriteProgress) throws -> Void = { _ in }
  ) async throws -> RewriteProgress {
    try information.checkIsNoQueue(for: "migrateAll()", during: .update)
    return try await rewrite(range, batchSize: batchSize, calling: "migrateAll()", progress)
  }

  /// Encrypts every value again that is not encrypted with the primary key, so older keys are no longer needed.
  ///
  /// ```swift
  /// try await ring.rotate()
  /// let outcome = try await notes.reencrypt { progress in
  ///   save(progress.cursor)
  /// }
  /// ```
  ///
  /// The method needs a codec that encrypts. It passes the stored bytes to that codec that encrypts a value again if the
  /// bytes need another key than the primary one. All other values have the same bytes as before, so a store does not
  /// write them.
  ///
  /// The walk is that of ``migrateAll(in:batchSize:progress:)``: in ascending order, in small atomic steps, beside other
  /// readers and writers. If your program ends during the walk, call the method again, from the beginning or after the last
  /// ``RewriteProgress/cursor``.
  ///
  /// An entry that cannot be read stays as it is, for example because its key is missing or its bytes are damaged. It is
  /// counted in the result, and the walk continues. Remove an old key only if ``RewriteProgress/failureCount`` is 0, and
  /// only if no other store needs it.
  ///
  /// - Parameters:
  ///   - range: The range of keys to examine. Defaults to all keys.
  ///   - cursor: The position to continue after, from an earlier call. Defaults to `nil`, for the beginning of the
  ///     range.
  ///   - batchSize: The maximum number of entries of an update, from 1. Other writers wait for that long. Defaults to
  ///     256.
  ///   - progress: A closure that receives the progress after each update. An error that it throws ends the walk.
  ///     Defaults to a closure that does nothing.
  /// - Returns: The progress at the end.
  /// - Throws: ``StoreError`` with `invalidArgument` if `batchSize` is less than 1 or the cursor is of a descending order;
  ///   `unsupported` if the entries of the store expire, as ``migrateAll(in:batchSize:progress:)``; as
  ///   ``keys(in:limit:order:)`` and ``update(_:_:)-([StoreKey],_)``. `CancellationError`; the error that `progress` throws.
  @discardableResult
  public func reencrypt(
    in range: KeyRange = .all, after cursor: PageCursor? = nil, batchSize: Int = 256,
    progress: (RewriteProgress) throws -> Void = { _ in }
  ) async throws -> RewriteProgress {
    if let cursor, cursor.order != .ascending {
      throw StoreError(
        .invalidArgument, during: .update, store: information.name,
        message: "the cursor is from a walk in descending order; pass a cursor of `reencrypt`")
    }
    let remaining = cursor.map { range.after($0.key) } ?? range
    return try await rewrite(remaining, batchSize: batchSize, calling: "reencrypt()", progress)
  }

  /// Reads all values of a range and writes them back, without those that cannot be read or encoded.
  ///
  /// - Parameters:
  ///   - range: The range of keys to examine.
  ///   - batchSize: The maximum number of entries of an update.
  ///   - method: The name of the public method, for errors.
  ///   - progress: A closure that receives the progress after each update.
  private func rewrite(
    _ range: KeyRange, batchSize: Int, calling method: String, _ progress: (RewriteProgress) throws -> Void
  ) async throws -> RewriteProgress {
    try checkBatchSize(batchSize, for: .update)
    guard !AnyDataStore(self).expires else {
      throw StoreError(
        .unsupported, during: .update, store: information.name,
        message: "the entries expire, and writing them here would reset their deadlines; call \(method) on the store "
          + "below the expiring one")
    }
    let size = min(batchSize, information.maximumChangeCount ?? .max)
    var state = RewriteProgress()
    var remaining = range
    // The range after the keys that cannot be read, which lie between both.
    var next: KeyRange?
    while true {
      do {
        let keys = remaining.isEmpty ? [] : try await keys(in: remaining, limit: size, order: .ascending)
        guard let last = keys.last else {
          guard let following = next else { return state }
          (remaining, next) = (following, nil)
          continue
        }
        let rest = try remaining.rest(behind: last, of: information.name, during: .update)
        try await rewrite(keys, &state)
        state.examinedCount += keys.count
        state.lastKey = last
        remaining = rest
      } catch let error as StoreError {
        guard let lost = error.lostKeys, let before = remaining.part(before: lost), let after = range.part(after: lost)
        else { throw error }
        state.note(error)
        (remaining, next) = (before, after)
        continue
      }
      try progress(state)
    }
  }

  /// Writes the values of some keys back, without those that cannot be read or encoded.
  private func rewrite(_ keys: [StoreKey], _ state: inout RewriteProgress) async throws {
    var keys = keys
    while !keys.isEmpty {
      do {
        // The codec returns the stored bytes of a value that needs no change, and the store then does not write it.
        try await update(keys) { slots in
          // Not those that were removed since their keys were read.
          for index in slots.indices where slots[index] != nil { slots[index] = slots[index] }
        }
        return
      } catch let error as StoreError where error.concernsOneEntry {
        guard let key = error.key, let index = keys.firstIndex(of: key) else { throw error }
        keys.remove(at: index)
        state.note(error)
      }
    }
  }
}

/// The progress of ``DataStore/migrateAll(in:batchSize:progress:)`` or
/// ``DataStore/reencrypt(in:after:batchSize:progress:)``.
///
/// ```swift
/// let outcome = try await users.migrateAll()
/// for failure in outcome.failures { print(failure) }
/// ```
public struct RewriteProgress: Sendable {
  /// The maximum number of ``failures``.
  public static let failureLimit = 100

  /// The number of entries that were examined, including those that could not be written again.
  public internal(set) var examinedCount = 0

  /// The last key that was examined, or `nil` if there isn't one.
  public internal(set) var lastKey: StoreKey?

  /// The position after ``lastKey``, at which another call can continue, or `nil` if no entry was examined.
  public var cursor: PageCursor? { lastKey.map { PageCursor(after: $0) } }

  /// The number of entries that could not be written again.
  ///
  /// A range of keys that cannot be read because of damage counts as one.
  public private(set) var failureCount = 0

  /// The errors of the first entries that could not be written again.
  ///
  /// There are at most ``failureLimit``. Each has a key, or an ``UnreadableKeysError`` with a range of keys.
  public private(set) var failures: [StoreError] = []

  mutating func note(_ failure: StoreError) {
    failureCount += 1
    if failures.count < RewriteProgress.failureLimit { failures.append(failure) }
  }
}

extension StoreError {
  /// A Boolean value that indicates whether a value cannot be read or written again, so others may be.
  ///
  /// A codec reports `full` if its key cannot encrypt any more values.
  fileprivate var concernsOneEntry: Bool {
    code != .full && (isValueUnreadable || code == .encodingFailed || code == .valueTooLarge)
  }
}
