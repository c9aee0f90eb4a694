import Synchronization

extension DataStore where Value == [UInt8] {
  /// Runs a transaction: reads and writes through the views, indexed stores and queues over this store, committed in one
  /// step if everything that was read is unchanged.
  ///
  /// ```swift
  /// let result: MoveResult = try await bytes.transaction { tx in
  ///   guard try await tx.contains(folder, in: folders) else { return .discard(.missingFolder) }
  ///   guard var note = try await tx.value(forKey: key, in: notes) else { return .discard(.missingNote) }
  ///   note.folder = folder
  ///   try await tx.setValue(note, forKey: key, in: notes)
  ///   return .commit(.moved)
  /// }
  /// ```
  ///
  /// The body runs on the caller's actor. If another writer has changed a value that it has read, it runs again: the
  /// first time at the same time as others, then alone among the transactions of this store object, so only other
  /// programs and other kinds of writes can interfere again. It must have no effects outside the transaction. Its
  /// result, or the error that it throws, is passed on only if all that it has read was true at one moment.
  ///
  /// A transaction that writes nothing makes no update, unless its reads may be copies, as those of a cache. It works on a
  /// store that is open for reading only. There, copies are compared with copies, which another program can have made old.
  /// The first attempt takes no lock before its commit. The lock is in the store's ``StoreInformation/identity``; without one,
  /// every attempt runs at the same time as others. A body must not wait for another transaction of the same store: one that
  /// it begins throws `invalidArgument`. A transaction of another store that it begins takes no lock while this one holds its
  /// own.
  ///
  /// Ranges cannot be read, because an entry that another writer inserts would not be noticed.
  ///
  /// - Parameter body: A closure that reads and writes through the transaction, and returns whether its writes are
  ///   committed, with a result.
  /// - Returns: The result.
  /// - Throws: The error of the body, unchanged, with nothing changed in the store. ``StoreError`` with a retryable
  ///   `conflict` if other writers kept changing what it had read, 100 times; `notUnique` and other refusals of a
  ///   participant; the errors of `update(deciding:_:)`. `CancellationError`.
  @discardableResult
  public func transaction<Result>(
    _ body: (StoreTransaction<Self>) async throws -> UpdateDecision<Result>
  ) async throws -> Result {
    let information = information
    let outer = TransactionScope.current
    let identity: TransactionScope.Identity? =
      if let identity = information.identity {
        .identity(identity)
      } else if Self.self is any AnyObject.Type {
        .object(ObjectIdentifier(self as AnyObject))
      } else {
        nil
      }
    guard identity.map({ outer?.contains($0) != true }) ?? true else {
      throw StoreError(
        .invalidArgument, during: .transaction, store: information.name,
        message: "a transaction of the same store is running in this task; pass it on instead of beginning another one")
    }
    let gate = outer?.holdsLock == true ? nil : information.identity?.transactions
    func attempt(alone: Bool) async throws -> (result: Result, transaction: StoreTransaction<Self>?)? {
      let scope = TransactionScope(identity, holdsLock: alone, in: outer)
      defer { scope.end() }
      return try await TransactionScope.$current.withValue(scope) {
        try await attemptTransaction(gate: alone ? nil : gate, body)
      }
    }
    let (result, transaction) = try await information.repeating(.transaction) { number in
      // Other programs are in the way. With different pauses, they do not stay so.
      if number > 1 { try await Task.sleep(for: .microseconds(Int.random(in: 0...(50 << min(number, 7))))) }
      guard number > 0, let gate else { return try await attempt(alone: false) }
      return try await gate.withAccess(.exclusive) { try await attempt(alone: true) }
    }
    transaction?.didCommit()
    return result
  }

  /// Runs the body once, and commits.
  ///
  /// - Parameters:
  ///   - gate: The lock that the commit shares with others, or `nil` if the caller holds it or the store has no lock.
  ///   - body: The body.
  /// - Returns: The result, with the transaction if it was committed, or `nil` if a read was stale.
  private func attemptTransaction<Result>(
    gate: WriteGate?, _ body: (StoreTransaction<Self>) async throws -> UpdateDecision<Result>
  ) async throws -> (result: Result, transaction: StoreTransaction<Self>?)? {
    let transaction = StoreTransaction(self)
    defer { transaction.end() }
    let decision: UpdateDecision<Result>
    do {
      decision = try await body(transaction)
      if decision.isCommit { try await transaction.finish() }
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      guard try await transaction.areReadsCurrent() else { return nil }
      throw error
    }
    guard decision.isCommit, transaction.isWriting else {
      return try await transaction.areReadsCurrent() ? (decision.result, nil) : nil
    }
    let isCommitted =
      if let gate {
        try await gate.withAccess(.shared) { try await transaction.commit() }
      } else {
        try await transaction.commit()
      }
    return isCommitted ? (decision.result, transaction) : nil
  }
}

/// A transaction in whose body a task runs, with those around it.
private final class TransactionScope: Sendable {
  @TaskLocal static var current: TransactionScope?

  enum Identity: Sendable, Hashable {
    case identity(StoreIdentity)
    case object(ObjectIdentifier)
  }

  /// The identity of its store, or `nil` if it doesn't have one.
  private let identity: Identity?

  /// A Boolean value that indicates whether it runs alone.
  private let isAlone: Bool

  private let outer: TransactionScope?

  /// A Boolean value that indicates whether the attempt has ended, while a task that the body has created still has
  /// this scope.
  private let isOver = Atomic(false)

  init(_ identity: Identity?, holdsLock: Bool, in outer: TransactionScope?) {
    self.identity = identity
    isAlone = holdsLock
    self.outer = outer
  }

  func end() { isOver.store(true, ordering: .sequentiallyConsistent) }

  private var isRunning: Bool { !isOver.load(ordering: .sequentiallyConsistent) }

  /// Returns whether a transaction of a store is running.
  func contains(_ identity: Identity) -> Bool {
    isRunning && self.identity == identity || outer?.contains(identity) == true
  }

  /// A Boolean value that indicates whether one of the transactions runs alone.
  ///
  /// Then the inner ones take no lock, so no task waits for a lock while it holds another one.
  var holdsLock: Bool { isRunning && isAlone || outer?.holdsLock == true }
}
