public import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Musl)
import Musl
#else
import Glibc
#endif

/// Runs a history on a store over a simulated disk on which one operation goes wrong, opens the store again, and compares
/// what it holds with what its promises allow.
///
/// What is allowed after power loss: everything that was acknowledged as durable, and of what came after it a beginning:
/// never a part of a batch, never a later batch without an earlier one. What is allowed after a failed operation: a step
/// whose error says that nothing was changed changed nothing, and any other took effect as a whole or not at all.
///
/// An operation that fails is met once, so after it the store must go on, at the latest when it is opened anew, which must be
/// possible in the same process; its error must say what failed; and a transfer that is cut short must not show at all.
///
/// By the seed, opening it again is disturbed in the same way in half of all trials, and must go well the next time; and in
/// half of them the store is then written to, and what that leaves durable must survive a second crash.
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

  /// Makes trials of a kind of store.
  ///
  /// - Parameters:
  ///   - name: What failures call the store.
  ///   - open: Opens a store at a place of its own choice on the given disk, creating it where it is missing. It is called
  ///     again to open it anew.
  public init(_ name: String, open: @escaping @Sendable (SimulatedFileSystem) async throws -> Store) {
    self.name = name
    self.open = open
  }

  /// Runs random histories, each with power lost at every single operation in turn.
  ///
  /// - Parameters:
  ///   - cuts: How many times to cut the power at least.
  ///   - seed: Decides the histories and what the disk keeps.
  ///   - length: How many steps a history has; 8 unless said.
  /// - Returns: How many times the power was cut.
  /// - Throws: ``DiskTrialFailure`` with all that is needed to repeat it, its history made as short as possible;
  ///   `CancellationError` where the task is cancelled.
  @discardableResult
  public func losePower(cuts: Int, seed: UInt64, length: Int = 8) async throws -> Int {
    try await run(trials: cuts, seed: seed, length: length) { _ in .powerLoss }
  }

  /// Runs random histories, each with every single operation failing in turn.
  ///
  /// - Parameters:
  ///   - faults: How many operations are to fail at least.
  ///   - seed: Decides the histories, the faults and what the disk keeps.
  ///   - errorNumbers: The values of `errno` with which operations fail; now and then one does its work only in part, or
  ///     all of it, and then fails.
  ///   - length: How many steps a history has; 8 unless said.
  /// - Returns: How many operations failed.
  /// - Throws: ``DiskTrialFailure`` with all that is needed to repeat it, its history made as short as possible;
  ///   `CancellationError` where the task is cancelled.
  @discardableResult
  public func fail(faults: Int, seed: UInt64, errorNumbers: [Int32], length: Int = 8) async throws -> Int {
    try await run(trials: faults, seed: seed, length: length) { generator in
      // One more than there are, for the short transfer.
      let choice = Int.random(in: 0...errorNumbers.count, using: &generator)
      guard choice < errorNumbers.count else { return .shortTransfer }
      // EINTR says that nothing was done.
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
        // Once without any fault: it must go well, and it tells how many operations there are.
        let operationCount = try await repeatTrial(history, seed: generator.next(), fault: nil)
        for operation in 1...max(1, operationCount) {
          _ = try await repeatTrial(
            history, seed: generator.next(), fault: (fault: fault(&generator), operation: operation))
          count += 1
        }
      } catch let failure as DiskTrialFailure {
        var shrinker = HistoryShrinker(history, attempts: 100)
        throw try await shrinker.shrink(failure) { try await self.failure(of: $0, like: failure) }
      }
    }
    return count
  }

  /// Runs a history with the fault of another failure, at every operation in turn: a shorter history has fewer.
  private func failure(
    of history: [HistoryStep], like other: DiskTrialFailure
  ) async throws -> DiskTrialFailure? {
    do {
      let operationCount = try await repeatTrial(history, seed: other.seed, fault: nil)
      guard let fault = other.fault?.fault else { return nil }
      for operation in 1...max(1, operationCount) {
        _ = try await repeatTrial(history, seed: other.seed, fault: (fault: fault, operation: operation))
      }
      return nil
    } catch let failure as DiskTrialFailure {
      return failure
    }
  }

  /// Runs one history with at most one fault.
  ///
  /// - Parameters:
  ///   - history: The steps.
  ///   - seed: Decides what the disk keeps.
  ///   - fault: What goes wrong, and at which operation; `nil` for nothing.
  /// - Returns: How many operations there were.
  /// - Throws: ``DiskTrialFailure`` where the store breaks a promise; `CancellationError` where the task is cancelled.
  @discardableResult
  public func repeatTrial(
    _ history: [HistoryStep], seed: UInt64, fault: (fault: SimulatedFault, operation: Int)?
  ) async throws -> Int {
    try Task.checkCancellation()
    let disk = SimulatedFileSystem(seed: seed)
    if let fault { disk.schedule(fault.fault, atOperation: fault.operation) }
    func failure(_ message: String) -> DiskTrialFailure {
      DiskTrialFailure(store: name, history: history, seed: seed, fault: fault, message: message)
    }

    var expectation = Expectation()
    do {
      try await run(history, on: disk, fault: fault?.fault, expecting: &expectation)
      if fault == nil, let error = expectation.firstError { throw failure("a step failed: \(error)") }
    } catch let error as Mismatch {
      throw failure(error.message)
    }
    let operationCount = disk.operationCount

    // After an error a process goes on, and dies some time later, or the power goes: only that shows what a
    // synchronization that failed has left out.
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

  /// What the store may hold.
  struct Expectation {
    /// What its readers see.
    var current: State = [:]
    /// What may be found after a crash, the oldest first.
    var allowed: [State] = [[:]]
    var firstError: (any Error)?
    /// Whether the store was opened anew behind that error.
    var isMended = false

    mutating func succeeded(_ step: HistoryStep, leaving next: State, acknowledgement: Acknowledgement) {
      switch step {
      case .apply, .add:
        // A store need not write what changes nothing, so that proves nothing about a write before it that failed.
        guard next != current else { return }
        allowed = acknowledgement == .durable ? [next] : allowed + [next]
      case .synchronize, .reopen:
        allowed = [next]
      default:
        break
      }
      current = next
    }
  }

  /// What is other than the promises allow.
  struct Mismatch: Error {
    let message: String
  }
}
