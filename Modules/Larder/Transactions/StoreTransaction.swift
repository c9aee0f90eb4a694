/// The reads and writes of a transaction of a store of bytes.
///
/// You get one from ``DataStore/transaction(_:)``. It works through the views, indexed stores and queues over the store:
///
/// ```swift
/// try await bytes.transaction { tx in
///   guard var account = try await tx.value(forKey: key, in: accounts) else { return .discard(false) }
///   account.balance -= 10
///   try await tx.setValue(account, forKey: key, in: accounts)
///   return .commit(true)
/// }
/// ```
///
/// A read is recorded, so the same key has the same value throughout the transaction, except for its own writes. It is
/// not `Sendable`, and it throws `closed` after the end of the body.
public final class StoreTransaction<Base: DataStore> where Base.Value == [UInt8] {
  /// The store.
  public let base: Base

  /// The recorded values, before the transaction.
  private var reads: [StoreKey: [UInt8]?] = [:]

  /// The number of calls that have read from the store.
  private var readCount = 0

  /// The writes, without the conditions.
  private var writes = ConditionalCommit<any Error>()

  /// The additions of the participants that have finished.
  private var additions = ConditionalCommit<any Error>()

  private var participants: [Participation] = []
  private var isOver = false

  init(_ base: Base) {
    self.base = base
  }

  // MARK: Bytes

  /// Returns the bytes of a key of the store, as the transaction has written or read them.
  ///
  /// - Parameter key: The key in the store.
  /// - Returns: The bytes, or `nil` if the key is missing.
  /// - Throws: ``StoreError`` with `invalidKey`; `closed` after the end; the errors of the store.
  public func value(forKey key: StoreKey) async throws -> [UInt8]? {
    try await values(forKeys: [key])[0]
  }

  /// Returns the bytes of several keys of the store, as the transaction has written or read them.
  ///
  /// - Parameter keys: The keys in the store.
  /// - Returns: The bytes for each key, or `nil` for a missing one.
  /// - Throws: As ``value(forKey:)``.
  public func values(forKeys keys: [StoreKey]) async throws -> [[UInt8]?] {
    try await read(keys.filter { writes.plannedValue(forKey: $0) == nil })
    return keys.map { writes.plannedValue(forKey: $0) ?? reads[$0] ?? nil }
  }

  /// Returns the bytes of several keys as they are stored, without the writes of the transaction.
  ///
  /// The transaction is committed only if they are still so.
  ///
  /// ```swift
  /// try await bytes.transaction { tx in
  ///   let stored = try await tx.storedValues(forKeys: ["head", "tail"])
  ///   return .commit(stored[0] == stored[1])
  /// }
  /// ```
  ///
  /// - Parameter keys: The keys in the store.
  /// - Returns: The bytes for each key, or `nil` for a missing one.
  /// - Throws: As ``value(forKey:)``.
  public func storedValues(forKeys keys: [StoreKey]) async throws -> [[UInt8]?] {
    try await read(keys)
    return keys.map { reads[$0] ?? nil }
  }

  /// Returns the stored bytes of a key if the transaction has read them, without its writes.
  ///
  /// A codec can return them again for an equal value, so nothing is written; see ``ValueContext/stored``.
  ///
  /// - Parameter key: The key in the store.
  /// - Returns: The bytes, or `nil` if the key was not read or is missing.
  public func recordedValue(forKey key: StoreKey) -> [UInt8]? { reads[key] ?? nil }

  /// Sets or removes the bytes of a key of the store.
  ///
  /// - Parameters:
  ///   - value: The bytes, or `nil` to remove the key.
  ///   - key: The key in the store.
  /// - Throws: ``StoreError`` with `invalidKey`; `notPermitted` if the store is open for reading only; `closed` after the
  ///   end. A value that is too large is an error of the commit.
  public func setValue(_ value: [UInt8]?, forKey key: StoreKey) throws {
    try checkWritable(key)
    writes.setValue(value, forKey: key)
  }

  private func checkWritable(_ key: StoreKey) throws {
    try checkOpen()
    try base.information.checkWritable(for: .transaction)
    try base.information.check(key, for: .transaction)
  }

  private func checkOpen() throws {
    guard isOver else { return }
    throw StoreError(
      .closed, during: .transaction, store: base.information.name,
      message: "the transaction has ended; use it only in its closure")
  }

  /// Reads those of some keys that were not read before, in one snapshot.
  private func read(_ keys: [StoreKey]) async throws {
    try checkOpen()
    let new = Array(Set(keys.filter { !reads.keys.contains($0) }))
    guard !new.isEmpty else { return }
    readCount += 1
    let values = new.count == 1 ? [try await base.value(forKey: new[0])] : try await base.values(forKeys: new)
    for (key, value) in zip(new, values) { reads.updateValue(value, forKey: key) }
  }

  // MARK: Participants

  /// A participant with its plan.
  private struct Participation {
    let identity: ParticipantIdentity
    let prefixes: [StoreKey]
    let keyPrefix: StoreKey
    var state: State
    let finish: (any Sendable) async throws -> ConditionalCommit<any Error>
    let didCommit: (any Sendable) -> Void

    enum State {
      case open(plan: any Sendable)
      /// A closure changes the plan.
      case inUse
      case finished(plan: any Sendable)
    }
  }

  /// The participant that a plan belongs to: an object, or all values of a type with the same prefixes.
  private enum ParticipantIdentity: Hashable {
    case object(ObjectIdentifier)
    case value(ObjectIdentifier, [StoreKey])
  }

  /// Changes the plan of a participant, which takes part from now on.
  ///
  /// - Parameters:
  ///   - participant: A layer over the store.
  ///   - body: A closure that changes the plan. It may read and write through the transaction. If it throws, the plan is
  ///     as it was before, but not what it has written: let the error end the transaction, or check before you write.
  /// - Returns: The result of the closure.
  /// - Throws: ``StoreError`` with `invalidArgument` if the participant belongs to another store, if its prefixes overlap
  ///   with those of another one, if the closure uses the same participant, or if the participant has finished; the error
  ///   of the closure.
  public func withPlan<Participant: TransactionParticipant<Base>, Result>(
    of participant: Participant, _ body: (inout Participant.TransactionPlan) async throws -> Result
  ) async throws -> Result {
    try checkOpen()
    let index = try index(of: participant)
    guard case .open(let before) = participants[index].state, var plan = before as? Participant.TransactionPlan else {
      throw refusal("a layer of a transaction is used while it works, or after it has finished")
    }
    participants[index].state = .inUse
    do {
      let result = try await body(&plan)
      participants[index].state = .open(plan: plan)
      return result
    } catch {
      participants[index].state = .open(plan: before)
      throw error
    }
  }

  private func index<Participant: TransactionParticipant<Base>>(of participant: Participant) throws -> Int {
    let prefixes = participant.prefixes
    let identity =
      Participant.self is any AnyObject.Type
      ? ParticipantIdentity.object(ObjectIdentifier(participant as AnyObject))
      : .value(ObjectIdentifier(Participant.self), prefixes)
    if let index = participants.firstIndex(where: { $0.identity == identity }) { return index }
    try checkIsSame(participant.base)
    for other in participants {
      for prefix in prefixes {
        if let overlapping = other.prefixes.first(where: { $0.hasPrefix(prefix) || prefix.hasPrefix($0) }) {
          throw refusal(
            "the prefixes of two layers overlap; give each one a prefix that no other prefix begins with",
            key: max(prefix, overlapping))
        }
      }
    }
    participants.append(
      Participation(
        identity: identity, prefixes: prefixes, keyPrefix: participant.keyPrefix,
        state: .open(plan: participant.makeTransactionPlan()),
        finish: { [unowned self] plan in
          guard let own = plan as? Participant.TransactionPlan else { return ConditionalCommit() }
          return try await participant.finish(own, in: self)
        },
        didCommit: { plan in
          if let own = plan as? Participant.TransactionPlan { participant.transactionDidCommit(own) }
        }))
    return participants.count - 1
  }

  /// Throws unless a store is the one of the transaction.
  private func checkIsSame(_ store: Base) throws {
    let isSame: Bool
    if let (left, right) = objects(base, store) {
      // Two decorators of one store are two objects, of which each has a state of its own.
      isSame = left === right
    } else if let identity = base.information.identity {
      isSame = store.information.identity == identity
    } else {
      throw refusal(
        "the store cannot be told from another one; it must be a class, or have an `identity` in its information")
    }
    guard !isSame else { return }
    throw refusal("a layer belongs to another store; all layers must be over the store whose transaction it is")
  }

  private func objects(_ left: Base, _ right: Base) -> (AnyObject, AnyObject)? {
    let inner: (any DataStore<[UInt8]>, any DataStore<[UInt8]>) =
      if let left = left as? AnyDataStore<[UInt8]>, let right = right as? AnyDataStore<[UInt8]> {
        (left.base, right.base)
      } else {
        (left, right)
      }
    guard type(of: inner.0) is any AnyObject.Type, type(of: inner.1) is any AnyObject.Type else { return nil }
    return (inner.0 as AnyObject, inner.1 as AnyObject)
  }

  private func refusal(_ message: String, key: StoreKey? = nil) -> StoreError {
    StoreError(.invalidArgument, during: .transaction, store: base.information.name, key: key, message: message)
  }

  // MARK: Ending

  /// Asks the participants to finish their plans, in the order they took part, before the commit.
  func finish() async throws {
    var number = 0
    // A participant can make another one take part.
    while number < participants.count {
      if case .open(let plan) = participants[number].state {
        participants[number].state = .finished(plan: plan)
        let addition = try await participants[number].finish(plan)
        for key in addition.keys { try checkWritable(key) }
        additions.add(addition)
      }
      number += 1
    }
  }

  /// Prevents any further use.
  func end() {
    isOver = true
  }

  /// A Boolean value that indicates whether there is anything to commit.
  var isWriting: Bool { !writes.isEmpty || !additions.keys.isEmpty }

  /// Returns whether everything that was read was true at one moment.
  func areReadsCurrent() async throws -> Bool {
    let information = base.information
    // Several copies that one call returns need not be of one moment.
    let mayBeCopies = information.readsMayBeCopies != false
    guard mayBeCopies ? reads.count > 1 : readCount > 1 else { return true }
    if mayBeCopies, information.access == .readWrite {
      return try await base.perform(conditions()).isPerformed
    }
    let keys = Array(reads.keys)
    return zip(keys, try await base.values(forKeys: keys)).allSatisfy { reads[$0] == .some($1) }
  }

  private func conditions(of commit: ConditionalCommit<any Error> = .init()) -> ConditionalCommit<any Error> {
    var commit = commit
    for (key, value) in reads { commit.require(value, forKey: key) }
    return commit
  }

  /// Commits the writes if all reads are current.
  ///
  /// - Returns: A Boolean value that indicates whether they were committed, or `false` if a read is stale.
  /// - Throws: The refusal of a computation; the errors of the store, with the key in a participant.
  func commit() async throws -> Bool {
    var commit = conditions(of: writes)
    commit.add(additions)
    let outcome: ConditionalCommit<any Error>.Outcome
    do {
      outcome = try await base.perform(commit)
    } catch let error as StoreError {
      let participant = error.key.flatMap { key in
        participants.first { $0.prefixes.contains { key.hasPrefix($0) } }
      }
      guard let participant else { throw error }
      throw error.translated(by: KeyPrefix(participant.keyPrefix), during: .transaction, store: base.information.name)
    }
    // A refusal names keys of its participant already.
    if case .refused(let error) = outcome { throw error }
    return outcome.isPerformed
  }

  /// Tells the participants that the transaction is committed.
  func didCommit() {
    for participant in participants {
      if case .finished(let plan) = participant.state { participant.didCommit(plan) }
    }
  }
}

extension StoreOperation {
  /// ``DataStore/transaction(_:)``.
  public static let transaction = StoreOperation(rawValue: "transaction")
}
