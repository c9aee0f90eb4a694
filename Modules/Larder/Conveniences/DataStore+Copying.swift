extension DataStore where Value: Equatable {
  /// Copies the entries of a range to another store.
  ///
  /// ```swift
  /// let old = try await JSONFileStore<User>(path: "users.json")
  /// let new = try await LMDBStore<User>(path: "users")
  /// try await old.copy(to: new) { progress in
  ///   print(progress.copiedCount + progress.equalCount, "entries")
  /// }
  /// ```
  ///
  /// A batch of entries at a time is read, compared with those of the destination, written in one commit, and read again
  /// to verify it. Values that the destination already has are not written, so you can complete an interrupted copy by
  /// calling the method again, or from its last ``CopyProgress/cursor``. Other keys of the destination stay.
  ///
  /// Changes of other writers during the copy may be missing in the destination. To move a store that is in use, see
  /// `MirroredStore`.
  ///
  /// - Parameters:
  ///   - destination: The store to copy to.
  ///   - range: The range of keys to copy. Defaults to all keys.
  ///   - cursor: The position to continue after, from an earlier copy. Defaults to `nil`, for the beginning.
  ///   - batchSize: The maximum number of entries in memory and in a commit, from 1. Defaults to 1,000.
  ///   - allowsPlainCopies: A Boolean value that indicates whether encrypted values may be copied to a store that does
  ///     not encrypt them. Defaults to `false`.
  ///   - progress: A closure that receives the progress after each commit. An error that it throws ends the copy.
  ///     Defaults to a closure that does nothing.
  /// - Returns: The progress at the end.
  /// - Throws: ``StoreError`` with `invalidArgument` if `batchSize` is less than 1 or the cursor is of a descending order;
  ///   `unsupported` if the entries of one of the stores expire: copy the store below the expiring one, whose values
  ///   contain their deadlines, or if encrypted values would be copied in plain form; `conflict` if the destination has another value than was written; the errors of the
  ///   stores. `CancellationError`; the error that `progress` throws. The batches before an error are copied.
  @discardableResult
  public func copy(
    to destination: some DataStore<Value>, in range: KeyRange = .all, after cursor: PageCursor? = nil,
    batchSize: Int = 1000, allowsPlainCopies: Bool = false, progress: (CopyProgress) throws -> Void = { _ in }
  ) async throws -> CopyProgress {
    try await copy(
      to: destination, in: range, after: cursor, batchSize: batchSize, allowsPlainCopies: allowsPlainCopies,
      progress: progress
    ) { $0 }
  }

  /// Calls a closure with each key whose values differ in two stores.
  ///
  /// ```swift
  /// try await old.forEachDifference(from: new) { print($0.key, $0.kind) }
  /// ```
  ///
  /// The keys come in ascending order. Changes of other writers in the meantime may appear as differences, and so do values
  /// that do not equal themselves, such as those with a NaN.
  ///
  /// - Parameters:
  ///   - other: The store to compare with.
  ///   - range: The range of keys to compare. Defaults to all keys.
  ///   - batchSize: The maximum number of entries of each store in memory, from 1. Defaults to 1,000.
  ///   - body: A closure that receives each difference. An error that it throws ends the comparison.
  /// - Throws: ``StoreError`` with `invalidArgument` if `batchSize` is less than 1; the errors of the stores.
  ///   `CancellationError`; the error that `body` throws.
  public func forEachDifference(
    from other: some DataStore<Value>, in range: KeyRange = .all, batchSize: Int = 1000,
    _ body: (StoreDifference) async throws -> Void
  ) async throws {
    try checkBatchSize(batchSize, for: .entries)
    var remaining = range
    while !remaining.isEmpty {
      try Task.checkCancellation()
      let own = try await entries(in: remaining, limit: batchSize, order: .ascending)
      let others = try await other.entries(in: remaining, limit: batchSize, order: .ascending)
      // Both have been read up to the end of the shorter full batch.
      let ends = [own, others].filter { $0.count >= batchSize }.compactMap { $0.last?.key }
      let end = ends.min()
      for difference in StoreDifference.all(between: own, and: others) {
        guard end.map({ difference.key <= $0 }) ?? true else { break }
        try await body(difference)
      }
      guard let end else { return }
      remaining = try remaining.rest(behind: end, of: information.name, during: .entries)
    }
  }
}

extension DataStore {
  /// Copies the entries of a range to a store of other values.
  ///
  /// As ``copy(to:in:after:batchSize:allowsPlainCopies:progress:)``, with a closure that converts each value.
  ///
  /// - Parameters:
  ///   - destination: The store to copy to.
  ///   - range: The range of keys to copy. Defaults to all keys.
  ///   - cursor: The position to continue after, from an earlier copy. Defaults to `nil`, for the beginning.
  ///   - batchSize: The maximum number of entries in memory and in a commit, from 1. Defaults to 1,000.
  ///   - allowsPlainCopies: A Boolean value that indicates whether encrypted values may be copied to a store that does
  ///     not encrypt them. Defaults to `false`.
  ///   - progress: A closure that receives the progress after each commit. An error that it throws ends the copy.
  ///     Defaults to a closure that does nothing.
  ///   - convert: A closure that returns the value for the destination, or `nil` to omit the entry. An error that it
  ///     throws ends the copy.
  /// - Returns: The progress at the end.
  /// - Throws: As ``copy(to:in:after:batchSize:allowsPlainCopies:progress:)``; the error that `convert` throws.
  @discardableResult
  public func copy<Other: Equatable>(
    to destination: some DataStore<Other>, in range: KeyRange = .all, after cursor: PageCursor? = nil,
    batchSize: Int = 1000, allowsPlainCopies: Bool = false, progress: (CopyProgress) throws -> Void = { _ in },
    converting convert: (Value) throws -> Other?
  ) async throws -> CopyProgress {
    try checkBatchSize(batchSize, for: .apply)
    try checkCanBeCopied(to: destination, allowsPlainCopies: allowsPlainCopies)
    if let cursor, cursor.order != .ascending {
      throw StoreError(
        .invalidArgument, during: .page, store: information.name,
        message: "the cursor is from pages in descending order; pass a cursor of `copy`")
    }
    var state = CopyProgress(cursor: cursor)
    let size = min(batchSize, destination.information.maximumChangeCount ?? .max)
    for try await page in pages(of: range, size: size).starting(after: cursor) {
      let entries = try page.entries.compactMap { entry in
        try convert(entry.value).map { StoreEntry(key: entry.key, value: $0) }
      }
      let keys = entries.map(\.key)
      let changed = zip(entries, try await destination.values(forKeys: keys)).filter { $0.value != $1 }.map(\.0)
      if !changed.isEmpty {
        try await destination.apply(ChangeBatch(changed.map { .set($0.key, $0.value) }))
        // A value with a NaN does not even equal itself.
        for (entry, value) in zip(changed, try await destination.values(forKeys: changed.map(\.key)))
        where entry.value != value && (value == nil || entry.value == entry.value) {
          throw StoreError(
            .conflict, during: .values, store: destination.information.name, key: entry.key,
            message: "the store does not have the value that was copied to it; another writer may have changed it")
        }
      }
      state.copiedCount += changed.count
      state.equalCount += entries.count - changed.count
      state.cursor = page.entries.last.map { PageCursor(after: $0.key, order: .ascending) } ?? state.cursor
      try progress(state)
    }
    return state
  }

  /// Checks that copies of the entries in another store lose neither deadlines nor their encryption.
  ///
  /// ``copy(to:in:after:batchSize:allowsPlainCopies:progress:)`` calls it, and so can a program that copies entries in another way.
  ///
  /// ```swift
  /// try damaged.checkCanBeCopied(to: rescued)
  /// ```
  ///
  /// - Parameters:
  ///   - destination: The store to copy to.
  ///   - allowsPlainCopies: A Boolean value that indicates whether encrypted values may be copied to a store that does
  ///     not encrypt them. Defaults to `false`.
  /// - Throws: ``StoreError`` with `unsupported` if the entries of one of the stores expire, if one of them is a queue, or if encrypted
  ///   values would be copied in plain form.
  public func checkCanBeCopied(to destination: some DataStore, allowsPlainCopies: Bool = false) throws {
    try checkNotExpiring()
    try destination.checkNotExpiring()
    let other = destination.information
    try information.checkEncryption(
      ofCopies: other.valuesAtRest, in: other.name, allowsPlainCopies: allowsPlainCopies, during: .apply)
  }

  func checkBatchSize(_ size: Int, for operation: StoreOperation) throws {
    guard size < 1 else { return }
    throw StoreError(
      .invalidArgument, during: operation, store: information.name,
      message: "batchSize must be at least 1, not \(size)")
  }

  private func checkNotExpiring() throws {
    try information.checkIsNoQueue(for: "a copy", during: .apply)
    guard AnyDataStore(self).expires else { return }
    throw StoreError(
      .unsupported, during: .apply, store: information.name,
      message: "copying entries that expire would lose their deadlines; copy the store below the expiring one")
  }
}

/// The progress of ``DataStore/copy(to:in:after:batchSize:allowsPlainCopies:progress:)``.
///
/// ```swift
/// try await old.copy(to: new, after: savedCursor) { progress in
///   save(progress.cursor)  // an interrupted copy continues here
/// }
/// ```
public struct CopyProgress: Sendable, Hashable {
  /// The number of entries that were written to the destination.
  public var copiedCount = 0

  /// The number of entries that the destination already had, with equal values.
  public var equalCount = 0

  /// The position after the last entry that was examined, or `nil` before the first one.
  public var cursor: PageCursor?

  /// Creates the progress of a copy that has not begun.
  ///
  /// - Parameter cursor: The position after which it begins. Defaults to `nil`, for the beginning.
  public init(cursor: PageCursor? = nil) {
    self.cursor = cursor
  }
}

/// A key whose values differ in two stores; see ``DataStore/forEachDifference(from:in:batchSize:_:)``.
public struct StoreDifference: Sendable, Hashable {
  /// The three ways two stores can differ.
  public enum Kind: Sendable, Hashable {
    /// Only the first store has the key.
    case onlyInFirst
    /// Only the second store, the one compared with, has the key.
    case onlyInSecond
    /// Both stores have the key, with different values.
    case value
  }

  /// The key.
  public var key: StoreKey

  /// The way the stores differ.
  public var kind: Kind

  /// Creates a difference.
  public init(key: StoreKey, kind: Kind) {
    self.key = key
    self.kind = kind
  }

  /// Returns the differences between two lists of entries in ascending order.
  static func all<Value: Equatable>(
    between first: [StoreEntry<Value>], and second: [StoreEntry<Value>]
  ) -> [StoreDifference] {
    var differences: [StoreDifference] = []
    var (first, second) = (first[...], second[...])
    while let key = [first.first?.key, second.first?.key].compactMap(\.self).min() {
      let own = first.first?.key == key ? first.popFirst() : nil
      let other = second.first?.key == key ? second.popFirst() : nil
      switch (own, other) {
      case (let own?, let other?) where own.value != other.value:
        differences.append(StoreDifference(key: key, kind: .value))
      case (.some, nil): differences.append(StoreDifference(key: key, kind: .onlyInFirst))
      case (nil, .some): differences.append(StoreDifference(key: key, kind: .onlyInSecond))
      default: break
      }
    }
    return differences
  }
}
