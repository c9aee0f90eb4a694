import Larder
import LarderTesting
import Testing

@Suite struct ConcurrencyTrialTests {
  private func trial(of fault: HistoryFault?) -> HistoryTrial<HistoryMutantStore> {
    HistoryTrial(fault?.rawValue ?? "no fault") { _ in
      try HistoryMutantStore(disk: RecordDisk(), fault: fault)
    }
  }

  @Test func `a store without a fault passes`() async throws {
    try await trial(of: nil).runConcurrently(rounds: 50, seed: SeededGenerator.seedOfProcess)
    try await trial(of: nil).runConcurrently(rounds: 2, seed: SeededGenerator.seedOfProcess, tasks: 8, length: 40)
  }

  @Test(arguments: HistoryFault.concurrent) func `every fault is found`(_ fault: HistoryFault) async throws {
    let failure = try await #require(throws: TrialFailure.self) {
      try await trial(of: fault).runConcurrently(rounds: 500, seed: SeededGenerator.seedOfProcess)
    }
    let violation = try #require(failure.violation)
    #expect(!violation.isLinearizable)
    #expect(failure.store == fault.rawValue && failure.seed == SeededGenerator.seedOfProcess)
    #expect(failure.description.contains(violation.description))
  }

  @Test func `errors are failures unless they are expected`() async throws {
    let trial = HistoryTrial("failing") { _ in
      let store = MemoryStore<Int>().faulty()
      store.schedule(.error(.ioFailed), on: .apply)
      return store
    }
    let failure = try await #require(throws: TrialFailure.self) { try await trial.runConcurrently(rounds: 1, seed: 1) }
    #expect(failure.violation == nil)
    #expect(failure.message.contains("ioFailed"))
  }

  /// Returns a store that fails occasionally, each time with the correct outcome.
  private func failingStore(seed: UInt64) -> FaultyStore<MemoryStore<Int>> {
    var plan = FaultPlan(seed: seed)
    plan.schedule(.yields(upTo: 2), probability: 1)
    for operation in [StoreOperation.apply, .update] {
      plan.schedule(.error(.full), on: operation, probability: 0.1)
      plan.schedule(.error(.ioFailed, outcome: .unknown), on: operation, probability: 0.1)
      plan.schedule(.error(.ioFailed, .after), on: operation, probability: 0.1)
    }
    plan.schedule(.error(.ioFailed), on: .value, probability: 0.1)
    return MemoryStore<Int>().faulty(plan: plan)
  }

  @Test func `failed writes have the outcome of their error`() async throws {
    let trial = HistoryTrial("failing") { _ in failingStore(seed: SeededGenerator.seedOfProcess) }
    try await trial.runConcurrently(rounds: 30, seed: SeededGenerator.seedOfProcess, mayFail: true)
  }

  @Test func `a false outcome is found`() async throws {
    let trial = HistoryTrial("lying") { _ in
      FalseOutcomeStore(base: failingStore(seed: SeededGenerator.seedOfProcess))
    }
    await #expect(throws: TrialFailure.self) {
      try await trial.runConcurrently(rounds: 100, seed: SeededGenerator.seedOfProcess, mayFail: true)
    }
  }
}

/// A decorator that claims of every failed write that nothing changed.
struct FalseOutcomeStore<Base: DataStore>: DataStore {
  let base: Base

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Base.Value? {
    try await base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Base.Value?] {
    try await base.values(forKeys: keys)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Base.Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Base.Value>) async throws {
    try await lying(during: .apply) { try await base.apply(changes) }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Base.Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await lying(during: .update) { try await base.update(deciding: keys, body) }
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }

  private func lying<Result>(
    during operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let error as StoreError {
      throw StoreError(error.code, during: operation, store: error.store, message: error.message)
    }
  }
}
