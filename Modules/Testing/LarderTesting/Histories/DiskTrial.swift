import Foundation
public import Larder

/// A trial that runs histories on a store over a simulated disk on which one operation fails, and checks the recovery.
///
/// After the history, the trial reopens the store and checks its contents:
///
/// - After a power loss, the store must contain all writes that were acknowledged as durable. Of the later writes, it
///   may contain only a prefix: never part of a batch, and never a later batch without an earlier one.
/// - After a failed operation, a step whose error has the outcome `nothingChanged` must have changed nothing. Any other
///   failed step must have taken effect as a whole or not at all.
///
/// Only one operation fails. After the failure, the store must work again, at the latest when it is reopened, which
/// must be possible in the same process. Its error must match the failure. A short transfer must not cause an error at
/// all.
///
/// Depending on the seed, half of all trials also disturb the recovery with the same fault, and the next opening must
/// then succeed. Half of the trials also write to the recovered store, and the durable writes must survive a second
/// crash.
///
/// ```swift
/// let trial = DiskTrial("MyStore") { disk in
///   try await MyStore<Int>(path: "/store", fileSystem: disk)
/// }
/// try await trial.runEveryHistory(upToLength: 2, faults: [.powerLoss, .error(EIO), .shortTransfer], seed: seed)
/// try await trial.losePower(cuts: 5_000, seed: seed)
/// try await trial.fail(faults: 2_500, seed: seed, errorNumbers: [EIO, ENOSPC, EINTR])
/// ```
public struct DiskTrial<Store: DataStore>: Sendable where Store.Value == Int {
  typealias State = [StoreKey: Int]

  private let name: String
  let open: @Sendable (SimulatedFileSystem) async throws -> Store

  /// Creates a trial for a kind of store.
  ///
  /// - Parameters:
  ///   - name: The name of the store in failures.
  ///   - open: A closure that opens the store at a path of its choice on the given disk, and creates the store if it is
  ///     missing. It is called again to reopen the store.
  public init(_ name: String, open: @escaping @Sendable (SimulatedFileSystem) async throws -> Store) {
    self.name = name
    self.open = open
  }

  /// Runs random histories, each once for every operation, with a power loss at that operation.
  ///
  /// - Parameters:
  ///   - cuts: The minimum number of power losses.
  ///   - seed: The seed of the histories and of the data that the disk keeps.
  ///   - length: The number of steps in a history. Defaults to 8.
  /// - Returns: The number of power losses.
  /// - Throws: ``TrialFailure`` with a history as short as possible and all details to repeat it;
  ///   `CancellationError` if the task is cancelled.
  @discardableResult
  public func losePower(cuts: Int, seed: UInt64, length: Int = 8) async throws -> Int {
    try await run(trials: cuts, seed: seed, length: length) { _ in .powerLoss }
  }

  /// Runs random histories, each once for every operation, with a failure of that operation.
  ///
  /// - Parameters:
  ///   - faults: The minimum number of failed operations.
  ///   - seed: The seed of the histories, the faults, and the data that the disk keeps.
  ///   - errorNumbers: The values of `errno` with which operations fail. Some operations instead transfer only part of
  ///     the bytes, or take effect before they fail.
  ///   - length: The number of steps in a history. Defaults to 8.
  /// - Returns: The number of failed operations.
  /// - Throws: ``TrialFailure`` with a history as short as possible and all details to repeat it;
  ///   `CancellationError` if the task is cancelled.
  @discardableResult
  public func fail(faults: Int, seed: UInt64, errorNumbers: [Int32], length: Int = 8) async throws -> Int {
    try await run(trials: faults, seed: seed, length: length) { generator in
      // The additional choice is the short transfer.
      let choice = Int.random(in: 0...errorNumbers.count, using: &generator)
      guard choice < errorNumbers.count else { return .shortTransfer }
      // EINTR means that the operation was not done.
      let isDone = errorNumbers[choice] != EINTR && Int.random(in: 0..<4, using: &generator) == 0
      return isDone ? .errorAfterwards(errorNumbers[choice]) : .error(errorNumbers[choice])
    }
  }

  private func run(
    trials: Int, seed: UInt64, length: Int, fault: (inout SeededGenerator) -> SimulatedFault
  ) async throws -> Int {
    var generator = SeededGenerator(seed: seed)
    var count = 0
    while count < trials {
      let history = HistoryStep.writingHistory(length: length, using: &generator)
      do {
        // The run without a fault must succeed, and it gives the number of operations.
        let operationCount = try await repeatTrial(history, seed: generator.next(), fault: nil)
        for operation in 1...max(1, operationCount) {
          _ = try await repeatTrial(
            history, seed: generator.next(), fault: (fault: fault(&generator), operation: operation))
          count += 1
        }
      } catch let failure as TrialFailure {
        throw try await shrink(history, failure, attempts: 50) { try await self.failure(of: $0, like: failure) }
      }
    }
    return count
  }

  /// Runs a history with the fault of another failure, once for every operation, because a shorter history has fewer
  /// operations.
  private func failure(
    of history: [HistoryStep], like other: TrialFailure
  ) async throws -> TrialFailure? {
    guard let seed = other.seed else { return nil }
    do {
      let operationCount = try await repeatTrial(history, seed: seed, fault: nil)
      guard let fault = other.fault?.fault else { return nil }
      for operation in 1...max(1, operationCount) {
        _ = try await repeatTrial(history, seed: seed, fault: (fault: fault, operation: operation))
      }
      return nil
    } catch let failure as TrialFailure {
      return failure
    }
  }

  /// Runs one history with at most one fault.
  ///
  /// - Parameters:
  ///   - history: The steps.
  ///   - seed: The seed of the data that the disk keeps.
  ///   - fault: The fault and the number of its operation, or `nil` for no fault.
  /// - Returns: The number of operations.
  /// - Throws: ``TrialFailure`` if the store breaks a promise; `CancellationError` if the task is cancelled.
  @discardableResult
  public func repeatTrial(
    _ history: [HistoryStep], seed: UInt64, fault: (fault: SimulatedFault, operation: Int)?
  ) async throws -> Int {
    try Task.checkCancellation()
    let disk = SimulatedFileSystem(seed: seed)
    if let fault { disk.schedule(fault.fault, atOperation: fault.operation) }
    func failure(_ message: String) -> TrialFailure {
      TrialFailure(
        store: name, message: message, history: history, seed: seed, fault: fault,
        faultyOperation: disk.lastFaultyOperation)
    }

    var expectation = Expectation()
    do {
      try await run(history, on: disk, fault: fault?.fault, expecting: &expectation)
      if fault == nil, let error = expectation.firstError { throw failure("a step failed without a fault: \(error)") }
    } catch let error as Mismatch {
      throw failure(error.message)
    }
    let operationCount = disk.operationCount

    // After an error, a process continues until it is killed or the power is lost. Only a power loss shows what a
    // failed synchronization has lost.
    if disk.hasPower {
      var generator = SeededGenerator(seed: seed, purpose: "the end")
      Self.crash(disk, using: &generator)
    }
    disk.restart()
    var generator = SeededGenerator(seed: seed, purpose: "the recovery")
    do {
      if Bool.random(using: &generator) {
        try await disturbRecovery(on: disk, by: fault?.fault ?? .powerLoss, using: &generator)
      }
      if Bool.random(using: &generator) {
        let state = try await recover(on: disk, allowed: expectation.allowed, writing: HistoryStep.stepsAfterRecovery)
        Self.crash(disk, using: &generator)
        try await recover(on: disk, allowed: [state])
      } else {
        try await recover(on: disk, allowed: expectation.allowed)
      }
    } catch let error as Mismatch {
      throw failure(error.message)
    }
    return operationCount
  }

  /// The states that the store may have.
  struct Expectation {
    /// The state that readers see.
    var current: State = [:]
    /// The possible states after a crash, the oldest first.
    var allowed: [State] = [[:]]
    var firstError: (any Error)?
    /// A Boolean value that indicates whether the store was reopened after that error.
    var isMended = false

    mutating func succeeded(_ step: HistoryStep, leaving next: State, durability: Durability) {
      switch step {
      case .apply, .add:
        // A store need not write a no-op change, so the change says nothing about an earlier write that failed.
        guard next != current else { return }
        allowed = durability == .synced ? [next] : allowed + [next]
      case .synchronize, .reopen:
        allowed = [next]
      default:
        break
      }
      current = next
    }
  }

  /// A result that the promises do not allow.
  struct Mismatch: Error {
    let message: String
  }
}

extension DiskTrial {
  /// Runs every history of a few steps, each once for every operation and fault.
  ///
  /// Most crash bugs of file systems and stores appear in histories of at most three steps; see "Finding
  /// Crash-Consistency Bugs with Bounded Black-Box Crash Testing" (Mohan and others, OSDI 2018).
  ///
  /// - Parameters:
  ///   - length: The maximum number of steps. There are nine kinds of steps, so there are 90 histories for a length of
  ///     2, 819 for 3, and 7,380 for 4.
  ///   - share: The share of the longest histories to run, from 0 to 1. Defaults to 1, meaning all of them. The
  ///     seed determines the selection.
  ///   - faults: The faults to try at each operation.
  ///   - seed: The seed of the data that the disk keeps. Another seed tries other outcomes of the same histories.
  /// - Returns: The number of faults that were tried.
  /// - Throws: ``TrialFailure`` for one of the shortest failing histories, with all details to repeat it;
  ///   `CancellationError` if the task is cancelled.
  @discardableResult
  public func runEveryHistory(
    upToLength length: Int, share: Double = 1, faults: [SimulatedFault], seed: UInt64
  ) async throws -> Int {
    var generator = SeededGenerator(seed: seed)
    var count = 0
    for history in HistoryStep.everyHistory(
      of: HistoryStep.fewWritingSteps, upToLength: length, share: share, seed: seed)
    {
      let operationCount = try await repeatTrial(history, seed: generator.next(), fault: nil)
      for operation in 1...max(1, operationCount) {
        for fault in faults {
          _ = try await repeatTrial(history, seed: generator.next(), fault: (fault: fault, operation: operation))
          count += 1
        }
      }
    }
    return count
  }
}
