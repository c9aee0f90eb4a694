public import Larder

/// A store that writes to two others, to move a running program from one to the other.
///
/// ```swift
/// let mirror = try MirroredStore(primary: old, secondary: new)
/// try await mirror.repair()  // copies what is missing, while the program reads and writes
/// try await mirror.promoteSecondary()
/// ```
///
/// Reads come from the primary store. A write goes to the primary, with all its guarantees, and then to the secondary.
/// Writes of different keys run at the same time; those of the same key run one after another, so both stores get them in
/// the same order.
///
/// A write that the primary has made succeeds. If the secondary then fails, the write is missing there: the error is
/// reported, ``isSynchronized`` becomes `false`, and ``repair(in:after:batchSize:progress:)`` copies the difference. The same is
/// needed after the process died, which may have been between the two writes.
///
/// All writes to both stores must be made through the same mirror. Closing it closes both stores.
public final class MirroredStore<Primary: DataStore, Secondary: DataStore>: DataStore
where Primary.Value: Equatable, Secondary.Value == Primary.Value {
  /// The type of the values in both stores.
  public typealias Value = Primary.Value

  /// A closure that receives the error of each write that the secondary store has not made.
  public typealias FailureHandler = @Sendable (_ error: any Error) -> Void

  private struct State: Sendable {
    var isSwitched = false
    var isSynchronized = false
    /// The number of writes after which the stores may differ.
    var failureCount = 0
  }

  /// The store that was the primary at the beginning.
  public let primary: Primary

  /// The store that was the secondary at the beginning.
  public let secondary: Secondary

  /// The lower of the limits and the weaker of the promises of both stores, under the name of the first primary.
  public let information: StoreInformation

  private let onSecondaryFailure: FailureHandler
  private let first: AnyDataStore<Value>
  private let second: AnyDataStore<Value>
  private let state = Locked(State())
  private let locks = KeyLocks()
  private let operations = RunningOperations()

  /// Creates a store that writes to two others.
  ///
  /// - Parameters:
  ///   - primary: The store to read from.
  ///   - secondary: The store that follows. It may have entries already.
  ///   - allowsPlainCopies: A Boolean value that indicates whether the secondary may store the values of an encrypted
  ///     primary in plain form. Defaults to `false`.
  ///   - onSecondaryFailure: A closure that receives the error of each write that the secondary has not made. Defaults to
  ///     a closure that does nothing; ``isSynchronized`` tells of the failure in any case.
  /// - Throws: `StoreError` with `unsupported` if the entries of one of the stores expire: mirror the stores below the
  ///   expiring ones, whose values contain their deadlines; or if encrypted values would be copied in plain form.
  public init(
    primary: Primary, secondary: Secondary, allowsPlainCopies: Bool = false,
    onSecondaryFailure: @escaping FailureHandler = { _ in }
  ) throws {
    self.primary = primary
    self.secondary = secondary
    self.onSecondaryFailure = onSecondaryFailure
    first = AnyDataStore(primary)
    second = AnyDataStore(secondary)
    var information = primary.information
    let other = secondary.information
    // The cases are ordered from the strongest promise to the weakest.
    for durability in Durability.allCases where [information.durability, other.durability].contains(durability) {
      information.durability = durability
    }
    information.maximumKeyLength = min(information.maximumKeyLength, other.maximumKeyLength)
    information.maximumValueSize = [information.maximumValueSize, other.maximumValueSize].compactMap(\.self).min()
    information.maximumChangeCount = [information.maximumChangeCount, other.maximumChangeCount].compactMap(\.self).min()
    if other.access != .readWrite { information.access = other.access }
    if other.sharing == .exclusive { information.sharing = .exclusive }
    information.reportedCommits = nil
    if other.readsMayBeCopies != false { information.readsMayBeCopies = other.readsMayBeCopies }
    // A value that is encrypted in one of the stores is a secret for other layers. One of a store in memory is where its copy is.
    if other.valuesAtRest == .encrypted || information.valuesAtRest == .absent {
      information.valuesAtRest = other.valuesAtRest
    }
    self.information = information
    try primary.information.checkEncryption(
      ofCopies: other.valuesAtRest, in: other.name, allowsPlainCopies: allowsPlainCopies)
    try primary.information.checkKeepsEntries(for: "a mirror")
    try other.checkKeepsEntries(for: "a mirror")
  }

  /// A Boolean value that indicates whether both stores are known to have the same entries, apart from writes that are
  /// running.
  ///
  /// A complete ``repair(in:after:batchSize:progress:)`` sets it to `true`. A failed write to the secondary sets it to `false`.
  public var isSynchronized: Bool { state.withLock { $0.isSynchronized } }

  /// A Boolean value that indicates whether ``promoteSecondary()`` has exchanged the stores, so the first secondary is
  /// read.
  public var isSwitched: Bool { state.withLock { $0.isSwitched } }

  // MARK: Reading

  /// Returns the value of a key in the primary; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await running(.value) { try await current.value(forKey: key) }
  }

  /// Returns the values of several keys in the primary, in one snapshot; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await running(.values) { try await current.values(forKeys: keys) }
  }

  /// Returns the first entries of a range in the primary; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await running(.entries) { try await current.entries(in: range, limit: limit, order: order) }
  }

  /// Returns the first keys of a range in the primary; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await running(.keys) { try await current.keys(in: range, limit: limit, order: order) }
  }

  /// Returns the number of entries in a range of the primary; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await running(.count) { try await current.count(in: range) }
  }

  // MARK: Writing

  /// Applies several changes to the primary atomically, and then to the secondary; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    try await writing(.apply, LockedKeys(changes)) { current in
      try await current.apply(changes)
      return ((), changes)
    }
  }

  /// Reads and writes several values of the primary as one atomic step, and then writes them to the secondary; see
  /// `DataStore`.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    // The values of every run are kept until the end, so that none is released inside the store.
    let runs = Locked<[(isCommit: Bool, changes: [BatchChange<Value>])]>([])
    return try await writing(.update, LockedKeys(keys)) { current in
      let result = try await current.update(deciding: keys) { slots in
        let decision = body(&slots)
        let changes = slots.changes(of: keys)
        runs.withLock { $0.append((decision.isCommit, changes)) }
        return decision
      }
      let last = runs.withLock { $0.last }
      return (result, ChangeBatch(last.map { $0.isCommit ? $0.changes : [] } ?? []))
    }
  }

  /// Performs a write on the primary and then on the secondary, while no other write of its keys is running.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - keys: The keys that the write changes.
  ///   - body: A closure that writes to the primary, which it receives, and returns the changes for the secondary.
  private func writing<Result>(
    _ operation: StoreOperation, _ keys: LockedKeys,
    _ body: (AnyDataStore<Value>) async throws -> (Result, ChangeBatch<Value>)
  ) async throws -> Result {
    try await running(operation) {
      try await locks.withLock(of: keys) {
        // The stores are exchanged only while no write is running.
        let (result, changes): (Result, ChangeBatch<Value>)
        do {
          (result, changes) = try await body(current)
        } catch let error as StoreError where error.outcome == .unknown {
          noteDifference()
          throw error
        }
        guard !changes.isEmpty else { return result }
        let other = other
        do {
          // In a task of its own, because a cancellation must not come between the two writes.
          try await Task { try await other.apply(changes) }.value
        } catch {
          noteDifference()
          onSecondaryFailure(error)
        }
        return result
      }
    }
  }

  private func noteDifference() {
    state.withLock { state in
      state.isSynchronized = false
      state.failureCount += 1
    }
  }

  /// Ensures that every earlier write is durable in the primary, and if possible in the secondary; see `DataStore`.
  ///
  /// As for a write, a failure of the secondary is reported, and ``isSynchronized`` becomes `false`.
  public func synchronize() async throws {
    try await running(.synchronize) {
      let (current, other) = (current, other)
      try await current.synchronize()
      do {
        try await other.synchronize()
      } catch {
        noteDifference()
        onSecondaryFailure(error)
      }
    }
  }

  /// Waits for running operations, and closes both stores.
  ///
  /// - Throws: The first error of the two stores, both of which are closed in any case.
  public func close() async throws {
    await operations.close()
    var failure: (any Error)?
    do { try await secondary.close() } catch { failure = error }
    try await primary.close()
    if let failure { throw failure }
  }

  /// Runs an operation that closing waits for.
  private func running<Result>(_ operation: StoreOperation, _ body: () async throws -> Result) async throws -> Result {
    try await operations.run(operation, of: information, body)
  }

  /// The store that is read.
  private var current: AnyDataStore<Value> { isSwitched ? second : first }

  /// The store that follows.
  private var other: AnyDataStore<Value> { isSwitched ? first : second }

  // MARK: Differences

  /// Copies missing entries to the secondary, and removes entries that the primary does not have.
  ///
  /// The first repair copies the whole store. Your program can read and write in the meantime: a write waits only while the
  /// keys around its own are compared.
  ///
  /// ```swift
  /// try await mirror.repair { progress in print(progress.repairedCount, "entries were repaired") }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to compare. Defaults to all keys.
  ///   - cursor: The position to continue after, from an earlier repair. Defaults to `nil`, for the beginning. Only a
  ///     repair of all keys from the beginning makes ``isSynchronized`` true.
  ///   - batchSize: The maximum number of entries of each store in memory, from 1. Defaults to 1,000.
  ///   - progress: A closure that receives the progress after each batch. An error that it throws ends the repair.
  ///     Defaults to a closure that does nothing.
  /// - Returns: The progress at the end.
  /// - Throws: `StoreError` with `invalidArgument` if `batchSize` is less than 1 or the cursor is of a descending order;
  ///   `closed`; the errors of both stores. `CancellationError`; the error that `progress` throws. The batches before an
  ///   error are repaired.
  @discardableResult
  public func repair(
    in range: KeyRange = .all, after cursor: PageCursor? = nil, batchSize: Int = 1000,
    progress: (RepairProgress) throws -> Void = { _ in }
  ) async throws -> RepairProgress {
    try check(batchSize: batchSize, cursor)
    let batchSize = min(batchSize, information.maximumChangeCount ?? .max)
    return try await running(.apply) {
      let failureCount = state.withLock { $0.failureCount }
      var result = RepairProgress(cursor: cursor)
      var remaining = cursor.map { range.after($0.key) } ?? range
      while !remaining.isEmpty {
        try Task.checkCancellation()
        let keys = try await current.keys(in: remaining, limit: batchSize, order: .ascending)
        // The last part has no end, so that keys that only the secondary has are found, too.
        let end = keys.count == batchSize ? keys.last : nil
        let part = end.map { remaining.intersection(KeyRange(from: "", upTo: $0.successor)) } ?? remaining
        result.repairedCount += try await locks.withLock(of: LockedKeys(part)) {
          try await repair(part, batchSize: batchSize)
        }
        if let end { result.cursor = PageCursor(after: end, order: .ascending) }
        try progress(result)
        guard let end else { break }
        remaining = try remaining.rest(behind: end, of: information.name, during: .apply)
      }
      if range == .all && cursor == nil {
        state.withLock { $0.isSynchronized = $0.failureCount == failureCount }
      }
      return result
    }
  }

  /// Copies the differences in a locked range.
  ///
  /// - Returns: The number of keys that differed.
  private func repair(_ range: KeyRange, batchSize: Int) async throws -> Int {
    let (current, other) = (current, other)
    var count = 0
    var keys: [StoreKey] = []
    func copy() async throws {
      guard !keys.isEmpty else { return }
      let values = try await current.values(forKeys: keys)
      try await other.apply(
        ChangeBatch(zip(keys, values).map { key, value in value.map { .set(key, $0) } ?? .remove(key) }))
      count += keys.count
      keys = []
    }
    try await current.forEachDifference(from: other, in: range, batchSize: batchSize) { difference in
      keys.append(difference.key)
      if keys.count == batchSize { try await copy() }
    }
    try await copy()
    return count
  }

  /// Calls a closure with each key whose values differ in the two stores.
  ///
  /// Each difference is checked again while no write of its key is running, so a running write is no difference.
  ///
  /// ```swift
  /// var differenceCount = 0
  /// try await mirror.forEachDifference { _ in differenceCount += 1 }
  /// guard differenceCount == 0 else { throw NotEqualYet() }
  /// ```
  ///
  /// - Parameters:
  ///   - range: The range of keys to compare. Defaults to all keys.
  ///   - batchSize: The maximum number of entries of each store in memory, from 1. Defaults to 1,000.
  ///   - body: A closure that receives each difference, with the primary as the first store. An error that it throws ends
  ///     the comparison.
  /// - Throws: `StoreError` with `invalidArgument` if `batchSize` is less than 1; `closed`; the errors of both stores.
  ///   `CancellationError`; the error that `body` throws.
  public func forEachDifference(
    in range: KeyRange = .all, batchSize: Int = 1000, _ body: (StoreDifference) async throws -> Void
  ) async throws {
    try await running(.entries) {
      let (current, other) = (current, other)
      try await current.forEachDifference(from: other, in: range, batchSize: batchSize) { found in
        let only = KeyRange.only(found.key)
        var confirmed: StoreDifference?
        try await locks.withLock(of: LockedKeys(only)) {
          try await current.forEachDifference(from: other, in: only) { confirmed = $0 }
        }
        // Without the lock, because it may write to the key.
        if let confirmed { try await body(confirmed) }
      }
    }
  }

  /// Exchanges the two stores: reads come from the secondary from now on, which gets each write first.
  ///
  /// The former primary follows, so you can return to it. The exchange waits for running writes, and later ones wait for
  /// it. It is not recorded anywhere: after a restart, create the mirror with the stores in their new places.
  ///
  /// ```swift
  /// try await mirror.repair()
  /// try await mirror.promoteSecondary()  // from now on, the new store is read
  /// ```
  ///
  /// - Throws: `StoreError` with `conflict` if the stores are not known to be equal: call
  ///   ``repair(in:after:batchSize:progress:)`` first; `closed`. `CancellationError`.
  public func promoteSecondary() async throws {
    try await running(.write) {
      try await locks.withLock(of: LockedKeys(.all)) {
        let isSynchronized = state.withLock { state in
          if state.isSynchronized { state.isSwitched.toggle() }
          return state.isSynchronized
        }
        guard isSynchronized else {
          throw StoreError(
            .conflict, during: .write, store: information.name,
            message: "the stores may differ; call repair() to the end before the secondary becomes the primary")
        }
      }
    }
  }

  private func check(batchSize: Int, _ cursor: PageCursor?) throws {
    let message: String
    if batchSize < 1 {
      message = "batchSize must be at least 1, not \(batchSize)"
    } else if let cursor, cursor.order != .ascending {
      message = "the cursor is from pages in descending order; pass a cursor of `repair`"
    } else {
      return
    }
    throw StoreError(.invalidArgument, during: .apply, store: information.name, message: message)
  }
}

extension MirroredStore: CustomStringConvertible {
  /// The descriptions of both stores, in brackets.
  public var description: String { "MirroredStore[\(primary), \(secondary)]" }
}

/// The progress of ``MirroredStore/repair(in:after:batchSize:progress:)``.
public struct RepairProgress: Sendable, Hashable {
  /// The number of keys that differed, and were copied to the secondary or removed from it.
  public var repairedCount = 0

  /// The position up that the stores were compared to, or `nil` before the first batch.
  public var cursor: PageCursor?
}
