public import Larder

/// A decorator that makes a store fail, wait and yield on demand, for testing code that uses a store.
///
/// ```swift
/// let store = MemoryStore<Int>().faulty()
/// let stack = SomeDecorator(base: store)
///
/// store.schedule(.error(.ioFailed), on: .value)
/// await #expect(throws: StoreError.self) { try await stack.value(forKey: "a") }
///
/// store.schedule(.suspension(), on: .value)
/// let reading = Task { try await stack.value(forKey: "a") }
/// try await store.waitForSuspended()
/// try await stack.setValue(1, forKey: "a")
/// store.resume()
/// ```
///
/// Several faults of one operation take effect in the order they were scheduled. The store keeps the promises of
/// `DataStore` while no error is scheduled.
public final class FaultyStore<Base: DataStore>: DataStore {
  /// The value type of the base.
  public typealias Value = Base.Value

  /// The underlying store.
  public let base: Base

  private let clock: any Clock<Duration>
  private let plan: Locked<FaultPlan>
  /// The suspended operations with their kinds.
  private let suspended = SuspendedTasks<StoreOperation>()

  /// Creates a store that adds faults to another store.
  ///
  /// ```swift
  /// let store = MemoryStore<Int>().faulty(plan: plan)
  /// ```
  ///
  /// - Parameters:
  ///   - base: The underlying store.
  ///   - plan: The initial faults. Defaults to no faults.
  ///   - clock: The clock that measures delays. Defaults to a `ContinuousClock`.
  public init(_ base: Base, plan: FaultPlan = FaultPlan(), clock: any Clock<Duration> = ContinuousClock()) {
    self.base = base
    self.clock = clock
    self.plan = Locked(plan)
  }

  // MARK: Faults

  /// Schedules a fault for one operation; see ``FaultPlan/schedule(_:on:number:)``.
  ///
  /// - Parameters:
  ///   - fault: The fault.
  ///   - operation: The kind of operation to affect. Defaults to `nil`, meaning any.
  ///   - number: The position of the operation among those of its kind, counted from now. Defaults to 1, the next one.
  public func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, number: Int = 1) {
    plan.withLock { $0.schedule(fault, on: operation, number: number) }
  }

  /// Schedules a random fault for operations; see ``FaultPlan/schedule(_:on:probability:)``.
  ///
  /// - Parameters:
  ///   - fault: The fault.
  ///   - operation: The kind of operation to affect. Defaults to `nil`, meaning any.
  ///   - probability: The probability of the fault for each operation, from 0 to 1.
  public func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, probability: Double) {
    plan.withLock { $0.schedule(fault, on: operation, probability: probability) }
  }

  /// Removes all scheduled faults.
  ///
  /// Suspended operations stay suspended.
  public func clearFaults() {
    plan.withLock { $0.clearFaults() }
  }

  /// The number of operations so far.
  public var operationCount: Int { plan.withLock { $0.operationCount } }

  /// Returns the number of suspended operations.
  ///
  /// - Parameter operation: The kind of operation. Defaults to `nil`, meaning any.
  public func suspendedCount(of operation: StoreOperation? = nil) -> Int {
    suspended.tags.count { operation == nil || $0 == operation }
  }

  /// Waits until operations are suspended.
  ///
  /// ```swift
  /// store.schedule(.suspension(), on: .apply)
  /// let writing = Task { try await store.setValue(1, forKey: "a") }
  /// try await store.waitForSuspended(1, of: .apply)
  /// writing.cancel()
  /// store.resume()
  /// ```
  ///
  /// - Parameters:
  ///   - count: The minimum number of suspended operations. Defaults to 1.
  ///   - operation: The kind of operation. Defaults to `nil`, meaning any.
  /// - Throws: `CancellationError` if the task is cancelled first.
  public func waitForSuspended(_ count: Int = 1, of operation: StoreOperation? = nil) async throws {
    try await suspended.wait { $0.count { operation == nil || $0 == operation } >= count }
  }

  /// Resumes all operations that are suspended now.
  ///
  /// - Parameter operation: The kind of operation. Defaults to `nil`, meaning any.
  public func resume(_ operation: StoreOperation? = nil) {
    suspended.resume { operation == nil || $0 == operation }
  }

  // MARK: Operations

  /// The information of the base.
  public var information: StoreInformation { base.information }

  /// Returns the value of a key; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await withFaults(of: .value, key: key) { try await base.value(forKey: key) }
  }

  /// Returns the values of several keys from one snapshot; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await withFaults(of: .values) { try await base.values(forKeys: keys) }
  }

  /// Returns the first entries of a range; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await withFaults(of: .entries) { try await base.entries(in: range, limit: limit, order: order) }
  }

  /// Returns the first keys of a range; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await withFaults(of: .keys) { try await base.keys(in: range, limit: limit, order: order) }
  }

  /// Returns the number of entries in a range; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await withFaults(of: .count) { try await base.count(in: range) }
  }

  /// Applies a batch of changes atomically; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await withFaults(of: .apply) { try await base.apply(changes) }
  }

  /// Reads, changes and writes the values of keys as one atomic step; see `DataStore`.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try await withFaults(of: .update) { try await base.update(deciding: keys, body) }
  }

  /// Synchronizes all earlier writes; see `DataStore`.
  public func synchronize() async throws {
    try await withFaults(of: .synchronize) { try await base.synchronize() }
  }

  /// Closes the base, even if a fault makes this call fail; see `DataStore`.
  public func close() async throws {
    let faults = plan.withLock { $0.faults(of: .close) }
    do {
      try await carryOut(faults, .before, of: .close, key: nil)
    } catch {
      try await base.close()
      throw error
    }
    try await base.close()
    try await carryOut(faults, .after, of: .close, key: nil)
  }

  func withFaults<Result>(
    of operation: StoreOperation, key: StoreKey? = nil, _ body: () async throws -> Result
  ) async throws -> Result {
    let faults = plan.withLock { $0.faults(of: operation) }
    try await carryOut(faults, .before, of: operation, key: key)
    let result = try await body()
    try await carryOut(faults, .after, of: operation, key: key)
    return result
  }

  private func carryOut(
    _ faults: [StoreFault], _ moment: StoreFault.Moment, of operation: StoreOperation, key: StoreKey?
  ) async throws {
    for fault in faults {
      switch fault {
      case .error(let code, moment, let outcome):
        throw error(code, moment, outcome, of: operation, key: key)
      case .suspension(moment):
        try await waiting(moment, of: operation) { try await suspended.suspend(operation) }
      case .delay(let duration, moment):
        try await waiting(moment, of: operation) { try await clock.sleep(for: duration) }
      case .yields(let limit):
        for _ in 0..<plan.withLock({ $0.yieldCount(upTo: limit) }) { await suspendOnce() }
      case .error, .suspension, .delay:
        break
      }
    }
  }

  /// Waits unless the task is cancelled.
  ///
  /// Cancellation ends the operation if it has not begun and can be cancelled. Otherwise, cancellation ends only the
  /// wait.
  private func waiting(
    _ moment: StoreFault.Moment, of operation: StoreOperation, _ wait: () async throws -> Void
  ) async throws {
    do {
      try await wait()
    } catch is CancellationError where moment == .after || [.close, .synchronize, .flush].contains(operation) {
      return
    }
  }

  private func error(
    _ code: StoreError.Code, _ moment: StoreFault.Moment, _ outcome: StoreError.Outcome, of operation: StoreOperation,
    key: StoreKey?
  ) -> StoreError {
    let hasTakenEffect = moment == .after && [.apply, .update, .touch, .purgeExpired].contains(operation)
    return StoreError(
      code, during: operation, store: information.name, key: key, message: "a fault was scheduled",
      outcome: hasTakenEffect ? .unknown : outcome)
  }
}

extension FaultyStore: StoreDecorator {
  /// Performs an operation of a capability on the base, with its faults.
  public func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: () async throws -> Result
  ) async throws -> Result {
    try await withFaults(of: operation, key: key, body)
  }
}

extension FaultyStore: ExpirableStore where Base: ExpirableStore {}

/// Invalidation is synchronous, so faults do not apply to it.
extension FaultyStore: InvalidatableStore where Base: InvalidatableStore {}
extension FaultyStore: FlushableStore where Base: FlushableStore {}
extension FaultyStore: ObservableStore where Base: ObservableStore {}
extension FaultyStore: MaintainableStore where Base: MaintainableStore {}

extension DataStore {
  /// Returns a ``FaultyStore`` over this store.
  ///
  /// - Parameters:
  ///   - plan: The initial faults. Defaults to no faults.
  ///   - clock: The clock that measures delays. Defaults to a `ContinuousClock`.
  public func faulty(
    plan: FaultPlan = FaultPlan(), clock: any Clock<Duration> = ContinuousClock()
  ) -> FaultyStore<Self> {
    FaultyStore(self, plan: plan, clock: clock)
  }
}
