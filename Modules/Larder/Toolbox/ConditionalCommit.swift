/// Changes of several entries that belong together, with the stored values that they were planned from.
///
/// A store of bytes has no lock that a caller could hold while it reads, decides and writes. Read first, plan the changes,
/// and perform them in one update, which makes them only if what you have read is still stored:
///
/// ```swift
/// let isSold = try await base.information.repeating(.update) { _ -> Bool? in
///   let stock = try await base.value(forKey: "stock")
///   guard let stock, stock[0] > 0 else { return false }
///   var commit = ConditionalCommit<Never>()
///   commit.require(stock, forKey: "stock")
///   commit.setValue([stock[0] - 1], forKey: "stock")
///   commit.setValue(customer, forKey: "sales/17")
///   return try await base.perform(commit).isPerformed ? true : nil
/// }
/// ```
///
/// A change that depends on a record which many writers change, such as a total, is better computed within the update, so
/// that it never becomes stale; see ``computeValue(forKey:_:)``.
///
/// This is plain state without any I/O. `Refusal` is the reason for which such a computation can refuse the commit, or
/// `Never`.
public struct ConditionalCommit<Refusal: Sendable>: Sendable {
  /// The outcome of a commit.
  public enum Outcome: Sendable {
    /// All changes were made.
    case performed
    /// A stored value is not what the commit was planned from. Nothing was changed.
    case isStale
    /// A computation has refused the commit. Nothing was changed.
    case refused(Refusal)

    /// A Boolean value that indicates whether all changes were made.
    public var isPerformed: Bool {
      if case .performed = self { true } else { false }
    }
  }

  /// The result of a computation within the update.
  public enum ComputedChange: Sendable {
    /// The entry stays as it is.
    case keep
    /// The entry gets a value, or is removed.
    case set([UInt8]?)
    /// The commit is stale.
    case isStale
    /// The commit is refused.
    case refuse(Refusal)
  }

  /// Computes a change within the update.
  ///
  /// - Parameter stored: A closure that returns the value of a key before the commit, or `nil` if it is missing. Only keys
  ///   that the commit requires, reads or changes have one.
  public typealias Computation = @Sendable (_ stored: (StoreKey) -> [UInt8]?) -> ComputedChange

  /// The requirement and the change of an entry.
  private struct Entry: Sendable {
    /// The value that must be stored, where an inner `nil` is a missing key, or `nil` for any.
    var required: [UInt8]??
    /// The new value, where an inner `nil` removes the key, or `nil` for no change.
    var new: [UInt8]??
    /// A computation of the new value.
    var computation: Computation?
  }

  private var entries: [StoreKey: Entry] = [:]

  /// Creates a commit without conditions and changes.
  public init() {}

  /// A Boolean value that indicates whether the commit changes nothing, whatever it requires.
  public var isEmpty: Bool { entries.values.allSatisfy { $0.new == nil && $0.computation == nil } }

  /// The keys of all entries that the commit requires, reads or changes.
  public var keys: some Collection<StoreKey> & Sendable { entries.keys }

  /// The new values, without those that are computed, or `nil` for keys that are removed.
  public var changes: some Sequence<(key: StoreKey, value: [UInt8]?)> {
    entries.lazy.compactMap { key, entry in entry.new.map { (key, $0) } }
  }

  /// Returns whether the commit requires, reads or changes the value of a key.
  ///
  /// - Parameter key: The key.
  public func concerns(_ key: StoreKey) -> Bool { entries[key] != nil }

  /// Returns the value that a key has after the commit, as far as it is known before.
  ///
  /// - Parameter key: The key.
  /// - Returns: The new value, else the required one, where an inner `nil` is a missing key; or `nil` if the commit neither
  ///   sets nor requires the value.
  public func plannedValue(forKey key: StoreKey) -> [UInt8]?? {
    entries[key].flatMap { $0.new ?? $0.required }
  }

  /// Requires that a key has a value when the commit is performed.
  ///
  /// If it is required twice, the first value counts, because it was read first.
  ///
  /// - Parameters:
  ///   - value: The value, or `nil` if the key must be missing.
  ///   - key: The key.
  public mutating func require(_ value: [UInt8]?, forKey key: StoreKey) {
    if entries[key]?.required == nil { entries[key, default: Entry()].required = .some(value) }
  }

  /// Reads the value of a key for the computations, whatever it is.
  ///
  /// - Parameter key: The key.
  public mutating func read(_ key: StoreKey) {
    if entries[key] == nil { entries[key] = Entry() }
  }

  /// Sets or removes a value.
  ///
  /// The last change of a key counts. A value that is stored already is not written again.
  ///
  /// - Parameters:
  ///   - value: The value, or `nil` to remove the key.
  ///   - key: The key.
  public mutating func setValue(_ value: [UInt8]?, forKey key: StoreKey) {
    entries[key, default: Entry()].new = .some(value)
  }

  /// Computes a change within the update, from the values that are stored then.
  ///
  /// ```swift
  /// commit.computeValue(forKey: "total") { stored in
  ///   let total = stored("total").flatMap { Total($0) } ?? Total()
  ///   return total.bytes + size <= limit ? .set(total.adding(size).record) : .refuse(.isFull)
  /// }
  /// ```
  ///
  /// It takes the place of ``setValue(_:forKey:)`` for this key, and of another computation.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - computation: The computation. It runs in the update, possibly several times, and must not block.
  public mutating func computeValue(forKey key: StoreKey, _ computation: @escaping Computation) {
    entries[key, default: Entry()].computation = computation
  }

  // MARK: Performing

  /// Performs the commit on the slots of an update, or leaves all of them unassigned.
  ///
  /// - Parameters:
  ///   - slots: The slots.
  ///   - indices: The position of the slot of each of ``keys``. Without one of them, the commit is stale.
  public func perform(on slots: inout UpdateSlots<[UInt8]>, at indices: [StoreKey: Int]) -> Outcome {
    let before = slots
    func stored(_ key: StoreKey) -> [UInt8]? { indices[key].flatMap { before[$0] } }
    for (key, entry) in entries {
      guard let index = indices[key] else { return .isStale }
      if let required = entry.required, before[index] != required { return .isStale }
    }
    // A refusal counts only if everything that the commit was planned from is current.
    var refusal: Refusal?
    var changes: [(index: Int, value: [UInt8]?)] = []
    for (key, entry) in entries {
      guard let index = indices[key] else { continue }
      switch entry.computation?(stored) ?? entry.new.map({ .set($0) }) ?? .keep {
      case .keep: break
      case .set(let value): if value != before[index] { changes.append((index, value)) }
      case .isStale: return .isStale
      case .refuse(let reason): refusal = reason
      }
    }
    if let refusal { return .refused(refusal) }
    for (index, value) in changes { slots[index] = value }
    return .performed
  }
}

extension [ConditionalCommit<Never>] {
  /// Performs several commits on the slots of an update, in order, each only if it is current after the preceding ones.
  ///
  /// - Parameters:
  ///   - slots: The slots.
  ///   - indices: The position of the slot of each key of the commits.
  ///   - isWanted: A closure that gets the position of a commit and the number of those before it that are performed, and
  ///     returns whether it is still wanted.
  /// - Returns: The positions of the commits that were performed, in ascending order.
  public func perform(
    on slots: inout UpdateSlots<[UInt8]>, at indices: [StoreKey: Int],
    where isWanted: (_ index: Int, _ performedCount: Int) -> Bool = { _, _ in true }
  ) -> [Int] {
    var performed: [Int] = []
    for (number, commit) in enumerated() where isWanted(number, performed.count) {
      if commit.perform(on: &slots, at: indices).isPerformed { performed.append(number) }
    }
    return performed
  }
}

extension DataStore where Value == [UInt8] {
  /// Performs a commit in one update.
  ///
  /// - Parameter commit: The commit. Without any keys, it is performed by doing nothing.
  /// - Returns: What became of it.
  /// - Throws: The errors of `update(deciding:_:)`.
  public func perform<Refusal>(
    _ commit: ConditionalCommit<Refusal>
  ) async throws -> ConditionalCommit<Refusal>.Outcome {
    let keys = Array(commit.keys)
    guard !keys.isEmpty else { return .performed }
    let indices = Dictionary(uniqueKeysWithValues: zip(keys, 0...))
    return try await update(deciding: keys) { slots in
      let outcome = commit.perform(on: &slots, at: indices)
      return outcome.isPerformed ? .commit(outcome) : .discard(outcome)
    }
  }

  /// Performs several commits in one update, in order, each only if it is current after the preceding ones.
  ///
  /// - Parameters:
  ///   - commits: The commits.
  ///   - isWanted: A closure that gets the position of a commit and the number of those before it that are performed, and
  ///     returns whether it is still wanted. It must not block. By default, all of them are.
  /// - Returns: The positions of the commits that were performed, in ascending order.
  /// - Throws: The errors of `update(deciding:_:)`.
  public func perform(
    _ commits: [ConditionalCommit<Never>],
    where isWanted: @escaping @Sendable (_ index: Int, _ performedCount: Int) -> Bool = { _, _ in true }
  ) async throws -> [Int] {
    let keys = Array(commits.reduce(into: Set<StoreKey>()) { $0.formUnion($1.keys) })
    guard !keys.isEmpty else { return Array(commits.indices) }
    let indices = Dictionary(uniqueKeysWithValues: zip(keys, 0...))
    return try await update(deciding: keys) { slots in
      let performed = commits.perform(on: &slots, at: indices, where: isWanted)
      return performed.isEmpty ? .discard([]) : .commit(performed)
    }
  }
}

extension StoreInformation {
  /// Repeats an operation until its commit is not stale.
  ///
  /// - Parameters:
  ///   - operation: The operation, for errors.
  ///   - attempts: The maximum number of attempts. Defaults to 100.
  ///   - attempt: A closure that reads, plans and performs a commit, and returns `nil` if it was stale. Its argument is the
  ///     number of the attempt, from 0 on. From 1 on, a store that has a ``WriteGate`` holds it exclusively, so that only
  ///     other programs can interfere again.
  /// - Returns: The first result.
  /// - Throws: ``StoreError`` with a retryable `conflict`, with nothing changed, if every attempt was stale;
  ///   `CancellationError` between two attempts; the errors of `attempt`.
  public func repeating<Result>(
    _ operation: StoreOperation, attempts: Int = 100, _ attempt: (_ number: Int) async throws -> Result?
  ) async throws -> Result {
    for number in 0..<attempts {
      if number > 0 {
        await Task.yield()
        try Task.checkCancellation()
      }
      if let result = try await attempt(number) { return result }
    }
    throw contentionError(for: operation)
  }

  /// Returns the error of an operation whose commit was stale in every attempt.
  ///
  /// - Parameter operation: The operation.
  public func contentionError(for operation: StoreOperation) -> StoreError {
    StoreError(
      .conflict, during: operation, store: name,
      message: "other programs kept changing what the operation had read; try again", isRetryable: true)
  }
}
