public import Larder
import Synchronization

/// A store that fails, waits and gives way to others when it is told to, over one that need not: for testing what stands
/// above a store.
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
/// Several faults of one operation come in the order in which they were scheduled. It keeps the promises of `DataStore` as
/// long as no error is scheduled.
public final class FaultyStore<Base: DataStore>: DataStore {
  /// What the base keeps.
  public typealias Value = Base.Value

  /// The store that does the work.
  public let base: Base

  private let clock: any Clock<Duration>
  private let plan: Mutex<FaultPlan>
  private let gate = SuspensionGate()

  /// Puts faults in front of a store.
  ///
  /// - Parameters:
  ///   - base: The store that does the work.
  ///   - plan: What goes wrong; nothing at first unless given.
  ///   - clock: What measures delays; a `ContinuousClock` unless given.
  public init(_ base: Base, plan: FaultPlan = FaultPlan(), clock: any Clock<Duration> = ContinuousClock()) {
    self.base = base
    self.clock = clock
    self.plan = Mutex(plan)
  }

  // MARK: What goes wrong

  /// Lets one operation go wrong; see ``FaultPlan/schedule(_:on:number:)``.
  ///
  /// - Parameters:
  ///   - fault: What happens.
  ///   - operation: To which kind of operation; to any, the default, where it is `nil`.
  ///   - number: To which of these, counted from now; 1, the default, is the next.
  public func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, number: Int = 1) {
    plan.withLock { $0.schedule(fault, on: operation, number: number) }
  }

  /// Lets operations go wrong now and then; see ``FaultPlan/schedule(_:on:probability:)``.
  ///
  /// - Parameters:
  ///   - fault: What happens.
  ///   - operation: To which kind of operation; to any, the default, where it is `nil`.
  ///   - probability: How likely it happens to each of these, from 0 to 1.
  public func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, probability: Double) {
    plan.withLock { $0.schedule(fault, on: operation, probability: probability) }
  }

  /// Takes back everything that was scheduled; what is suspended stays so.
  public func clearFaults() {
    plan.withLock { $0.clearFaults() }
  }

  /// How many operations there have been.
  public var operationCount: Int { plan.withLock { $0.operationCount } }

  /// How many operations are suspended.
  ///
  /// - Parameter operation: Of which kind; of any unless given.
  public func suspendedCount(of operation: StoreOperation? = nil) -> Int {
    gate.suspendedCount(of: operation)
  }

  /// Waits until operations are suspended.
  ///
  /// - Parameters:
  ///   - count: How many at least; 1 unless given.
  ///   - operation: Of which kind; of any unless given.
  /// - Throws: `CancellationError` where the task is cancelled before.
  public func waitForSuspended(_ count: Int = 1, of operation: StoreOperation? = nil) async throws {
    try await gate.waitForSuspended(count, of: operation)
  }

  /// Lets everything go on that is suspended now.
  ///
  /// - Parameter operation: Of which kind; of any unless given.
  public func resume(_ operation: StoreOperation? = nil) {
    gate.resume(operation)
  }

  // MARK: Operations

  /// What the base says of itself.
  public var information: StoreInformation { base.information }

  /// Reads the value of one key; see `DataStore`.
  public func value(forKey key: StoreKey) async throws -> Value? {
    try await withFaults(of: .value, key: key) { try await base.value(forKey: key) }
  }

  /// Reads the values of several keys as they are at one moment; see `DataStore`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await withFaults(of: .values) { try await base.values(forKeys: keys) }
  }

  /// Reads the first entries of a range; see `DataStore`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await withFaults(of: .entries) { try await base.entries(in: range, limit: limit, order: order) }
  }

  /// Reads the first keys of a range; see `DataStore`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await withFaults(of: .keys) { try await base.keys(in: range, limit: limit, order: order) }
  }

  /// Counts the entries of a range; see `DataStore`.
  public func count(in range: KeyRange) async throws -> Int {
    try await withFaults(of: .count) { try await base.count(in: range) }
  }

  /// Makes several changes, all or none of them; see `DataStore`.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try await withFaults(of: .apply) { try await base.apply(changes) }
  }

  /// Reads, changes and writes back the values of some keys as one step; see `DataStore`.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await withFaults(of: .update) { try await base.update(keys, body) }
  }

  /// Makes everything written before durable; see `DataStore`.
  public func synchronize() async throws {
    try await withFaults(of: .synchronize) { try await base.synchronize() }
  }

  /// Closes the base, also where it is to fail; see `DataStore`.
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
        try await waiting(moment, of: operation) { try await gate.suspend(operation) }
      case .delay(let duration, moment):
        try await waiting(moment, of: operation) { try await clock.sleep(for: duration) }
      case .yields(let limit):
        for _ in 0..<plan.withLock({ $0.yieldCount(upTo: limit) }) { await Task.yield() }
      case .error, .suspension, .delay:
        break
      }
    }
  }

  /// Waits, unless the task is cancelled: that ends the operation where it has not begun and may be cancelled, and else
  /// only the waiting.
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

extension FaultyStore: CustomStringConvertible {
  /// The base, in brackets.
  public var description: String { "FaultyStore[\(base)]" }
}
