public import Larder

/// Taking part in transactions of the base: values, index entries and uniqueness change in the same commit.
extension IndexedStore: TransactionStore {
  /// The values that an attempt of a transaction has set or removed.
  public struct TransactionPlan: Sendable {
    fileprivate var values: [StoreKey: Value?] = [:]
    /// The format of the values.
    fileprivate var format: CodecRecord.Format?
  }

  /// The prefixes of the values and of the indexes.
  public var prefixes: [StoreKey] { [layout.valueKeys.prefix, layout.indexPrefix] }

  /// Returns a plan without values.
  public func makeTransactionPlan() -> TransactionPlan { TransactionPlan() }

  /// Returns the values of several keys in a transaction; see `StoreTransaction.values(forKeys:in:)`.
  public func values(forKeys keys: [StoreKey], in transaction: StoreTransaction<Base>) async throws -> [Value?] {
    try information.check(keys, for: .transaction)
    try await transaction.withPlan(of: self) { _ in }
    let stored = try await callingBase(.transaction) {
      try await transaction.values(forKeys: keys.map(layout.valueKey))
    }
    return try await BulkWork.decode(stored, forKeys: keys) { [self] in
      try decode($0, forKey: $1, during: .transaction)
    }
  }

  /// Sets or removes the value of a key in a transaction; see `StoreTransaction.setValue(_:forKey:in:)`.
  public func setValue(
    _ value: Value?, forKey key: StoreKey, in transaction: StoreTransaction<Base>
  ) async throws {
    try information.check(key, for: .transaction)
    try await transaction.withPlan(of: self) { plan in
      plan.format = plan.format ?? self.values.codecRecord.format
      let valueKey = layout.valueKey(key)
      let stored = transaction.recordedValue(forKey: valueKey)
      let bytes = try value.map { try encode($0, forKey: key, replacing: stored, during: .transaction) }
      try transaction.setValue(bytes, forKey: valueKey)
      plan.values.updateValue(value, forKey: key)
    }
  }

  /// Returns the changes of the indexes.
  ///
  /// - Throws: `StoreError` with `notUnique` if two of the entries have the same key of a unique index; `versionMismatch`
  ///   if another program has defined other indexes.
  public func finish(
    _ plan: TransactionPlan, in transaction: StoreTransaction<Base>
  ) async throws -> ConditionalCommit<any Error> {
    guard !plan.values.isEmpty else { return ConditionalCommit() }
    let keys = plan.values.keys.sorted()
    let stored = try await callingBase(.transaction) {
      try await transaction.storedValues(forKeys: [layout.catalogKey] + keys.map(layout.listKey))
    }
    let known = self.known.bytes == stored[0] ? self.known : try remember(stored[0], for: .transaction)
    try checkDefinitions(of: known, for: .transaction)
    if let format = plan.format {
      try values.codecRecord.checkUnchanged(since: format, during: .transaction, store: information.name)
    }
    let new = try await transaction.values(forKeys: keys.map(layout.valueKey))
    let changes = try await entryChanges(
      keys, lists: Array(stored.dropFirst()), new: new, values: keys.map { plan.values[$0] ?? nil }, known,
      .transaction)
    return try indexCommit(of: Plan(changes: changes), known, .transaction)
  }

  /// Reports nothing, because the base reports the changes.
  public func transactionDidCommit(_ plan: TransactionPlan) {}
}
