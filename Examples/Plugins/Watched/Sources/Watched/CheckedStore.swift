// snippet.a-decorator-that-refuses
import Larder

/// A decorator that refuses values.
public struct CheckedStore<Base: DataStore>: StoreDecorator {
  public typealias Value = Base.Value

  public let base: Base
  let check: @Sendable (Value) throws -> Void
  // Without an identity of its own, a transaction of another decorator over the same base would write past the check.
  let identity: StoreIdentity

  public var information: StoreInformation {
    var information = base.information
    information.identity = identity
    return information
  }

  private func check(_ value: Value, forKey key: StoreKey, during operation: StoreOperation) throws {
    do {
      try check(value)
    } catch {
      throw StoreError(
        .invalidArgument, during: operation, store: information.name, key: key, message: "the value was refused",
        underlying: error)
    }
  }

  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    for case .set(let key, let value) in changes.changes { try check(value, forKey: key, during: .apply) }
    try await base.apply(changes)
  }

  public func update<Output: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Output>
  ) async throws -> Output {
    try await base.update(deciding: keys) { slots in
      let decision = body(&slots)
      // The base commits nothing if this throws; `get()` throws the error to the caller.
      return UpdateDecision(catching: {
        guard decision.isCommit else { return decision }
        for index in slots.assignedIndices {
          if let value = slots[index] { try check(value, forKey: keys[index], during: .update) }
        }
        return decision
      })
    }.get()
  }

  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try await body()
  }

  public func value(forKey key: StoreKey) async throws -> Value? { try await base.value(forKey: key) }

  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] { try await base.values(forKeys: keys) }

  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  public func count(in range: KeyRange) async throws -> Int { try await base.count(in: range) }

  public func synchronize() async throws { try await base.synchronize() }

  public func close() async throws { try await base.close() }
}

extension CheckedStore: ExpirableStore where Base: ExpirableStore {
  // The third way in. The default would pass the value to the base.
  public func setValue(_ value: Value, forKey key: StoreKey, timeToLive: TimeToLive?) async throws {
    try information.check([.set(key, value)])
    try check(value, forKey: key, during: .apply)
    try await base.setValue(value, forKey: key, timeToLive: timeToLive)
  }

  // The fourth way in, by which `insertValue` and `replaceValue` with a time to live come.
  public func update<Output: Sendable>(
    deciding key: StoreKey, timeToLive: TimeToLive?,
    _ body: @escaping @Sendable (inout Value?) -> UpdateDecision<Output>
  ) async throws -> Output {
    try await base.update(deciding: key, timeToLive: timeToLive) { stored in
      let decision = body(&stored)
      return UpdateDecision(catching: {
        if decision.isCommit, let stored { try check(stored, forKey: key, during: .update) }
        return decision
      })
    }.get()
  }
}

extension CheckedStore: InvalidatableStore where Base: InvalidatableStore {}
extension CheckedStore: FlushableStore where Base: FlushableStore {}
extension CheckedStore: MaintainableStore where Base: MaintainableStore {}
extension CheckedStore: ObservableStore where Base: ObservableStore {
  public func weakReference() -> @Sendable () -> Self? {
    let (base, check, identity) = (base.weakReference(), check, identity)
    return { base().map { CheckedStore(base: $0, check: check, identity: identity) } }
  }
}

extension DataStore {
  /// Returns this store with a check of each value that is written, which refuses the write by throwing an error.
  public func checked(_ check: @escaping @Sendable (Value) throws -> Void) -> CheckedStore<Self> {
    CheckedStore(base: self, check: check, identity: StoreIdentity())
  }
}
// snippet.end
