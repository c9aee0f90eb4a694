/// A layer over a store of bytes that can take part in a transaction of the store.
///
/// Views, indexed stores and queues are participants, and so can a layer of yours be. It has methods of its own with a
/// transaction as their argument, which read and write through the transaction and note in the plan what is left to do:
///
/// ```swift
/// extension StoreTransaction {
///   func append(_ event: Event, to log: EventLog<Base>) async throws {
///     try await withPlan(of: log) { plan in plan.events.append(event) }
///   }
/// }
/// ```
///
/// The plan begins anew with each attempt. Nothing else may change before the transaction has committed.
public protocol TransactionParticipant<Base>: Sendable {
  /// The type of the store.
  associatedtype Base: DataStore where Base.Value == [UInt8]

  /// The plan of one attempt, or `Void` for a participant without a plan.
  associatedtype TransactionPlan: Sendable = Void

  /// The store. A transaction of another one refuses the participant.
  var base: Base { get }

  /// The prefixes of all keys of the store that the participant reads and writes.
  var prefixes: [StoreKey] { get }

  /// The prefix of the keys that its users know, which errors name without it. Defaults to the first of ``prefixes``.
  var keyPrefix: StoreKey { get }

  /// Returns an empty plan for an attempt.
  func makeTransactionPlan() -> TransactionPlan

  /// Returns the changes that the plan still lacks, after the body has decided to commit.
  ///
  /// It runs once in each attempt, after which the participant cannot be used any more. It may read through the
  /// transaction, and use participants that have not finished.
  ///
  /// - Parameters:
  ///   - plan: The plan.
  ///   - transaction: The transaction.
  /// - Returns: The changes, with keys of the store. A refusal of a computation ends the transaction with its error.
  /// - Throws: An error that ends the transaction, if its reads are current.
  func finish(
    _ plan: TransactionPlan, in transaction: StoreTransaction<Base>
  ) async throws -> ConditionalCommit<any Error>

  /// Reports what a committed transaction has changed, such as to consumers that wait.
  ///
  /// It runs after the commit, without the lock of the transaction, and not for a transaction that has committed nothing or
  /// whose outcome is unknown.
  ///
  /// - Parameter plan: The plan of the attempt that was committed.
  func transactionDidCommit(_ plan: TransactionPlan)
}

extension TransactionParticipant {
  /// The first prefix, or an empty key.
  public var keyPrefix: StoreKey { prefixes.first ?? "" }
}

/// A participant that writes all it has to write in its methods.
extension TransactionParticipant where TransactionPlan == Void {
  /// Returns nothing.
  public func makeTransactionPlan() {}

  /// Returns no changes.
  public func finish(
    _ plan: Void, in transaction: StoreTransaction<Base>
  ) async throws -> ConditionalCommit<any Error> { ConditionalCommit() }

  /// Reports nothing.
  public func transactionDidCommit(_ plan: Void) {}
}

/// A participant with a value for each key, such as a view or an indexed store.
public protocol TransactionStore<Base, Value>: TransactionParticipant {
  /// The type of the values.
  associatedtype Value: Sendable

  /// Returns the values of several keys in a transaction; see ``StoreTransaction/values(forKeys:in:)``.
  func values(forKeys keys: [StoreKey], in transaction: StoreTransaction<Base>) async throws -> [Value?]

  /// Sets or removes the value of a key in a transaction; see ``StoreTransaction/setValue(_:forKey:in:)``.
  func setValue(_ value: Value?, forKey key: StoreKey, in transaction: StoreTransaction<Base>) async throws
}

extension StoreTransaction {
  /// Returns the value of a key, as the transaction has written or read it.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A view or an indexed store over the store.
  /// - Returns: The value, or `nil` if the key is missing.
  /// - Throws: ``StoreError`` with `invalidArgument` if the view is over another store; `closed` after the end of the
  ///   transaction; the errors of `value(forKey:)`.
  public func value<Store: TransactionStore<Base, Value>, Value>(
    forKey key: StoreKey, in store: Store
  ) async throws -> Value? {
    try await store.values(forKeys: [key], in: self)[0]
  }

  /// Returns the values of several keys, as the transaction has written or read them.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - store: A view or an indexed store over the store.
  /// - Returns: The value for each key, or `nil` for a missing one.
  /// - Throws: As ``value(forKey:in:)``.
  public func values<Store: TransactionStore<Base, Value>, Value>(
    forKeys keys: [StoreKey], in store: Store
  ) async throws -> [Value?] {
    try await store.values(forKeys: keys, in: self)
  }

  /// Returns whether a key has a value.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A view or an indexed store over the store.
  /// - Throws: As ``value(forKey:in:)``.
  public func contains<Store: TransactionStore<Base, Value>, Value>(
    _ key: StoreKey, in store: Store
  ) async throws -> Bool {
    try await value(forKey: key, in: store) != nil
  }

  /// Sets the value of a key.
  ///
  /// ```swift
  /// try await bytes.transaction { tx in
  ///   try await tx.setValue(note, forKey: "7", in: archive)
  ///   try await tx.removeValue(forKey: "7", in: inbox)
  ///   return .commit(())
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - key: The key.
  ///   - store: A view or an indexed store over the store.
  /// - Throws: ``StoreError`` with `encodingFailed`, `valueTooLarge` or `notPermitted`; as ``value(forKey:in:)``.
  public func setValue<Store: TransactionStore<Base, Value>, Value>(
    _ value: Value, forKey key: StoreKey, in store: Store
  ) async throws {
    try await store.setValue(value, forKey: key, in: self)
  }

  /// Removes a key that may be missing.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A view or an indexed store over the store.
  /// - Throws: As ``setValue(_:forKey:in:)``.
  public func removeValue<Store: TransactionStore<Base, Value>, Value>(
    forKey key: StoreKey, in store: Store
  ) async throws {
    try await store.setValue(nil, forKey: key, in: self)
  }

  /// Reads the value of a key, passes it to a closure that can change it, and writes it back.
  ///
  /// ```swift
  /// try await tx.update("visits", in: counts) { $0 = ($0 ?? 0) + 1 }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - store: A view or an indexed store over the store.
  ///   - body: A closure that changes the value. It is `nil` if the key is missing.
  /// - Returns: The result of the closure.
  /// - Throws: The error of the closure; as ``setValue(_:forKey:in:)``.
  @discardableResult
  public func update<Store: TransactionStore<Base, Value>, Value, Result>(
    _ key: StoreKey, in store: Store, _ body: (inout Value?) throws -> Result
  ) async throws -> Result {
    var value = try await value(forKey: key, in: store)
    let result = try body(&value)
    try await store.setValue(value, forKey: key, in: self)
    return result
  }
}

extension TypedView: TransactionStore {
  /// The prefix of the view.
  public var prefixes: [StoreKey] { [prefix] }

  /// Returns the values of several keys in a transaction; see ``StoreTransaction/values(forKeys:in:)``.
  public func values(forKeys keys: [StoreKey], in transaction: StoreTransaction<Base>) async throws -> [Value?] {
    try information.check(keys, for: .transaction)
    try await transaction.withPlan(of: self) { _ in }
    let storedKeys = keys.map(storedKey)
    let values = try await translatingErrors { try await transaction.values(forKeys: storedKeys) }
    return try await decode(values, storedAs: storedKeys, during: .transaction)
  }

  /// Sets or removes the value of a key in a transaction; see ``StoreTransaction/setValue(_:forKey:in:)``.
  public func setValue(
    _ value: Value?, forKey key: StoreKey, in transaction: StoreTransaction<Base>
  ) async throws {
    try information.check(key, for: .transaction)
    try await transaction.withPlan(of: self) { _ in }
    try await confirmCodec(in: transaction)
    let storedKey = storedKey(key)
    let stored = transaction.recordedValue(forKey: storedKey)
    let bytes = try value.map { try encode($0, storedAs: storedKey, replacing: stored, during: .transaction) }
    try translatingErrors { try transaction.setValue(bytes, forKey: storedKey) }
  }
}
