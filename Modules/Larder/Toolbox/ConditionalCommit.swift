/// Changes of several entries that belong together, with the stored values that they were planned from.
///
/// A store of bytes has no lock that a caller could hold while it reads, decides and writes. Read first, plan the changes,
/// and perform them in one update, which makes them only if what you have read is still stored:
///
/// ```swift
/// let isSold = try await base.information.repeating(.update) { _ -> Bool? in
///   let stock = try await base.value(forKey: "stock")
///   guard let count = stock?.first, count > 0 else { return false }
///   var commit = ConditionalCommit<Never>()
///   commit.require(stock, forKey: "stock")
///   commit.setValue([count - 1], forKey: "stock")
///   commit.setValue(customer, forKey: "sales/17")
///   return try await base.perform(commit).isPerformed ? true : nil
/// }
/// ```
///
/// A change that depends on a record which many writers change, such as a total, is better computed within the update,
/// so it never becomes stale; see ``computeValue(forKey:reading:_:)``.
///
/// This is plain state without any I/O. `Refusal` is the reason why such a computation can refuse the commit, or
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
  /// - Parameter stored: A closure that returns the value of a key before the commit, or `nil` if it is missing. The commit
  ///   must require, read or change the key.
  public typealias Computation = @Sendable (_ stored: (StoreKey) -> [UInt8]?) -> ComputedChange

  private var entries: [StoreKey: PlannedEntry] = [:]

  /// The computations, by the number that their entries have.
  private var computations: [Computation] = []

  /// A Boolean value that indicates whether a key is required to have two values, so one of them was stale when it was
  /// read.
  private var isContradictory = false

  /// Creates a commit without conditions and changes.
  public init() {}

  /// Prepares the commit for a number of keys, so adding them does not move the others.
  ///
  /// - Parameter count: The number of all keys that the commit requires, reads or changes.
  public mutating func reserveCapacity(_ count: Int) {
    entries.reserveCapacity(count)
  }

  /// A Boolean value that indicates whether the commit changes nothing, whatever it requires.
  public var isEmpty: Bool {
    entries.values.allSatisfy { !$0.hasChange }
  }

  /// The keys of all entries that the commit requires, reads or changes.
  public var keys: some Collection<StoreKey> & Sendable { entries.keys }

  /// The new values, without those that are computed, or `nil` for keys that are removed.
  public var changes: some Sequence<(key: StoreKey, value: [UInt8]?)> {
    entries.lazy.compactMap { key, entry in
      if case .set(let value) = entry.change { (key, value) } else { nil }
    }
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
    guard let entry = entries[key] else { return nil }
    return if case .set(let value) = entry.change { .some(value) } else { entry.required }
  }

  /// Requires that a key has a value when the commit is performed.
  ///
  /// A commit that requires two values of a key is stale, because it was planned from both.
  ///
  /// - Parameters:
  ///   - value: The value, or `nil` if the key must be missing.
  ///   - key: The key.
  public mutating func require(_ value: [UInt8]?, forKey key: StoreKey) {
    let isConsistent = entries[key, default: PlannedEntry()].require(value)
    if !isConsistent { isContradictory = true }
  }

  /// Sets or removes a value.
  ///
  /// The last change of a key counts. A value that is stored already is not written again.
  ///
  /// - Parameters:
  ///   - value: The value, or `nil` to remove the key.
  ///   - key: The key.
  public mutating func setValue(_ value: [UInt8]?, forKey key: StoreKey) {
    entries[key, default: PlannedEntry()].change = .set(value)
  }

  /// Sets or removes a value, and requires the value that it replaces.
  ///
  /// - Parameters:
  ///   - value: The value, or `nil` to remove the key.
  ///   - key: The key.
  ///   - stored: The value that must be stored, or `nil` if the key must be missing.
  public mutating func setValue(_ value: [UInt8]?, forKey key: StoreKey, replacing stored: [UInt8]?) {
    let isConsistent = entries[key, default: PlannedEntry()].replace(stored, with: value)
    if !isConsistent { isContradictory = true }
  }

  /// Reports a key, also if its value stays as it is.
  ///
  /// The update assigns it, and an observable store reports each key that is assigned. A decorator calls it for the keys that
  /// its caller writes, because caches above it count on a report.
  ///
  /// ```swift
  /// commit.setValue([1], forKey: key)
  /// commit.report(key)
  /// ```
  ///
  /// - Parameter key: The key.
  public mutating func report(_ key: StoreKey) {
    entries[key, default: PlannedEntry()].isReported = true
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
  /// It takes the place of an earlier change of this key, as a later one takes its place.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - others: Further keys whose values the computation reads, whatever they are. Defaults to an empty list.
  ///   - computation: The computation. It runs in the update, possibly several times, and must not block.
  public mutating func computeValue(
    forKey key: StoreKey, reading others: some Sequence<StoreKey> = [], _ computation: @escaping Computation
  ) {
    entries[key, default: PlannedEntry()].change = .compute(computations.count)
    computations.append(computation)
    for key in others where entries[key] == nil { entries[key] = PlannedEntry() }
  }

  /// Adds the conditions, changes and computations of another commit.
  ///
  /// They count as later ones.
  ///
  /// - Parameter other: The commit.
  public mutating func add(_ other: ConditionalCommit) {
    if other.isContradictory { isContradictory = true }
    for (key, entry) in other.entries {
      if let required = entry.required { require(required, forKey: key) }
      if entry.isReported { report(key) }
      switch entry.change {
      case .none: if entries[key] == nil { entries[key] = PlannedEntry() }
      case .set(let value): setValue(value, forKey: key)
      case .compute(let number): computeValue(forKey: key, other.computations[number])
      }
    }
  }

  // MARK: Performing

  /// The keys in ascending order, because a store reads and writes entries that are close to each other faster.
  fileprivate var sortedKeys: [StoreKey] { entries.keys.sorted() }

  /// Performs the commit on the slots of an update, or leaves all of them unassigned.
  ///
  /// - Parameters:
  ///   - slots: The slots.
  ///   - keys: The keys of the slots in ascending order, with ``keys`` among them.
  func perform(on slots: inout UpdateSlots<[UInt8]>, with keys: [StoreKey]) -> Outcome {
    if isContradictory { return .isStale }
    func stored(_ key: StoreKey) -> [UInt8]? {
      precondition(concerns(key), "a computation can only read keys that the commit requires, reads or changes")
      return keys.index(ofSorted: key).flatMap { slots[$0] }
    }
    // Of several refusals, that of the first key counts, so in key order.
    let ownKeys = keys.count == entries.count ? keys : sortedKeys
    var refusal: Refusal?
    var changes: [(index: Int, value: [UInt8]?)] = []
    changes.reserveCapacity(ownKeys.count)
    for (number, key) in ownKeys.enumerated() {
      guard let entry = entries[key], let index = keys.count == entries.count ? number : keys.index(ofSorted: key)
      else {
        continue
      }
      if let required = entry.required, slots[index] != required { return .isStale }
      let change: ComputedChange =
        switch entry.change {
        case .none: .keep
        case .set(let value): .set(value)
        case .compute(let number): computations[number](stored)
        }
      switch change {
      case .keep: if entry.isReported { changes.append((index, slots[index])) }
      case .set(let value): if entry.isReported || value != slots[index] { changes.append((index, value)) }
      case .isStale: return .isStale
      case .refuse(let reason): refusal = refusal ?? reason
      }
    }
    // A refusal counts only if everything that the commit was planned from is current.
    if let refusal { return .refused(refusal) }
    for (index, value) in changes { slots[index] = value }
    return .performed
  }
}

/// The requirement and the change of an entry in a ``ConditionalCommit``.
///
/// It does not depend on the type of the refusals, because a dictionary of it is much faster then.
private struct PlannedEntry: Sendable {
  enum Change: Sendable {
    case none
    /// The new value, or `nil` to remove the key.
    case set([UInt8]?)
    /// The computation with a number.
    case compute(Int)
  }

  /// The value that must be stored, where an inner `nil` is a missing key, or `nil` for any.
  var required: [UInt8]??
  var change = Change.none

  /// A Boolean value that indicates whether the key is assigned also if its value stays equal.
  var isReported = false

  var hasChange: Bool { if case .none = change { isReported } else { true } }

  /// Requires a value, and returns whether no other one was required before.
  mutating func require(_ value: [UInt8]?) -> Bool {
    if let required { return required == value }
    required = .some(value)
    return true
  }

  /// Sets a value and requires another one, and returns whether no other one was required before.
  mutating func replace(_ stored: [UInt8]?, with value: [UInt8]?) -> Bool {
    change = .set(value)
    return require(stored)
  }
}

extension [StoreKey] {
  /// Returns the position of a key in ascending keys.
  fileprivate func index(ofSorted key: StoreKey) -> Int? {
    var (first, end) = (0, count)
    while first < end {
      let middle = (first + end) / 2
      if self[middle] < key { first = middle + 1 } else { end = middle }
    }
    return first < count && self[first] == key ? first : nil
  }
}

extension DataStore where Value == [UInt8] {
  /// Performs a commit in one update.
  ///
  /// - Parameter commit: The commit. Without any keys, it is performed by doing nothing.
  /// - Returns: The outcome.
  /// - Throws: The errors of `update(deciding:_:)`.
  public func perform<Refusal>(
    _ commit: ConditionalCommit<Refusal>
  ) async throws -> ConditionalCommit<Refusal>.Outcome {
    let keys = commit.sortedKeys
    guard !keys.isEmpty else { return .performed }
    return try await update(deciding: keys) { slots in
      let outcome = commit.perform(on: &slots, with: keys)
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
    let keys = commits.reduce(into: Set<StoreKey>()) { $0.formUnion($1.keys) }.sorted()
    guard !keys.isEmpty else { return Array(commits.indices) }
    return try await update(deciding: keys) { slots in
      var performed: [Int] = []
      for (number, commit) in commits.enumerated() where isWanted(number, performed.count) {
        if commit.perform(on: &slots, with: keys).isPerformed { performed.append(number) }
      }
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
  ///   - attempt: A closure that reads, plans and performs a commit, and returns `nil` if it was stale, so a result
  ///     that can be missing needs a type of its own. Its argument is the number of the attempt, from 0 on. From 1 on,
  ///     it should hold the ``WriteGate`` of its store exclusively, so only other programs can interfere again.
  /// - Returns: The first result.
  /// - Throws: ``StoreError`` with a retryable `conflict`, with nothing changed, if every attempt was stale;
  ///   `CancellationError` between two attempts; the errors of `attempt`.
  public func repeating<Result>(
    _ operation: StoreOperation, attempts: Int = 100, _ attempt: (_ number: Int) async throws -> Result?
  ) async throws -> Result {
    for number in 0..<max(1, attempts) {
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
