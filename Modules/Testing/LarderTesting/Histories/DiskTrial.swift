public import Larder

/// Runs a history on a store over a simulated disk on which one operation goes wrong, opens the store again, and compares
/// what it holds with what its promises allow.
///
/// What is allowed after power loss: everything that was acknowledged as durable, and of what came after it a beginning:
/// never a part of a batch, never a later batch without an earlier one. What is allowed after a failed operation: a step
/// whose error says that nothing was changed changed nothing, and any other took effect as a whole or not at all.
public struct DiskTrial<Store: DataStore>: Sendable where Store.Value == Int {
  private typealias State = [StoreKey: Int]

  private let name: String
  private let open: @Sendable (SimulatedFileSystem) async throws -> Store

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
  /// - Throws: ``DiskTrialFailure`` with all that is needed to repeat it, its history made as short as possible.
  @discardableResult
  public func losePower(cuts: Int, seed: UInt64, length: Int = 8) async throws -> Int {
    try await run(trials: cuts, seed: seed, length: length) { _ in .powerLoss }
  }

  /// Runs random histories, each with every single operation failing in turn.
  ///
  /// - Parameters:
  ///   - faults: How many operations are to fail at least.
  ///   - seed: Decides the histories, the faults and what the disk keeps.
  ///   - errorNumbers: The values of `errno` with which operations fail; now and then one does its work only in part.
  ///   - length: How many steps a history has; 8 unless said.
  /// - Returns: How many operations failed.
  /// - Throws: ``DiskTrialFailure`` with all that is needed to repeat it, its history made as short as possible.
  @discardableResult
  public func fail(faults: Int, seed: UInt64, errorNumbers: [Int32], length: Int = 8) async throws -> Int {
    try await run(trials: faults, seed: seed, length: length) { generator in
      // One more than there are, for the short transfer.
      let choice = Int.random(in: 0...errorNumbers.count, using: &generator)
      return choice < errorNumbers.count ? .error(errorNumbers[choice]) : .shortTransfer
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
  /// - Throws: ``DiskTrialFailure`` where the store breaks a promise.
  @discardableResult
  public func repeatTrial(
    _ history: [HistoryStep], seed: UInt64, fault: (fault: SimulatedFault, operation: Int)?
  ) async throws -> Int {
    let disk = SimulatedFileSystem(seed: seed)
    if let fault { disk.schedule(fault.fault, atOperation: fault.operation) }
    func failure(_ message: String) -> DiskTrialFailure {
      DiskTrialFailure(store: name, history: history, seed: seed, fault: fault, message: message)
    }

    var expectation = Expectation()
    do {
      try await run(history, on: disk, expecting: &expectation)
      if fault == nil, let error = expectation.firstError { throw failure("a step failed: \(error)") }
    } catch let error as Mismatch {
      throw failure(error.message)
    }
    let operationCount = disk.operationCount

    // After an error a process goes on, and dies some time later, or the power goes: only that shows what a
    // synchronization that failed has left out.
    if disk.hasPower {
      var generator = SeededGenerator(seed: seed, purpose: "the end")
      if Bool.random(using: &generator) { disk.losePower() } else { disk.killProcess() }
    }
    disk.restart()
    let state: State
    do {
      let store = try await open(disk)
      state = try await Self.content(of: store)
      try await store.close()
    } catch {
      throw failure("afterwards the store could not be opened and read: \(error)")
    }
    guard expectation.allowed.contains(state) else {
      throw failure("afterwards the store holds \(state), allowed are \(expectation.allowed)")
    }
    return operationCount
  }

  /// What the store may hold.
  private struct Expectation {
    /// What its readers see.
    var current: State = [:]
    /// What may be found after a crash, the oldest first.
    var allowed: [State] = [[:]]
    var firstError: (any Error)?

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

  private struct Mismatch: Error {
    let message: String
  }

  private func run(
    _ history: [HistoryStep], on disk: SimulatedFileSystem, expecting expectation: inout Expectation
  ) async throws {
    var store: Store
    do {
      store = try await open(disk)
    } catch {
      try Self.checkIsNoDamage(error, at: "opening")
      expectation.firstError = error
      return
    }
    for (index, step) in history.enumerated() {
      let next = step.applied(to: expectation.current)
      do {
        switch step {
        case .reopen:
          try await store.close()
          store = try await open(disk)
        case .die:
          disk.killProcess()
          store = try await open(disk)
          try await checkStateAfterDeath(of: store, at: index, expecting: &expectation)
          continue
        default:
          let result = try await step.run(on: store)
          let expected = step.result(in: expectation.current)
          guard result == expected else {
            throw Mismatch(message: "step \(index), \(step), gave \(result), expected \(expected)")
          }
        }
        expectation.succeeded(step, leaving: next, acknowledgement: store.information.acknowledgement)
      } catch let mismatch as Mismatch {
        throw mismatch
      } catch {
        try Self.checkIsNoDamage(error, at: "step \(index)")
        expectation.firstError = expectation.firstError ?? error
        expectation.allowed.append(next)
        guard disk.hasPower, step != .reopen, step != .die else { return }
        try await checkState(of: store, after: error, at: index, next: next, expecting: &expectation)
      }
    }
  }

  /// Before its power was lost a disk damages nothing: what cannot be read now must not be taken for damage, or for the
  /// end of a file.
  private static func checkIsNoDamage(_ error: any Error, at place: String) throws {
    guard (error as? StoreError)?.code == .corrupted else { return }
    throw Mismatch(message: "\(place) threw \(error), and nothing is damaged")
  }

  /// Compares what a store shows after the death of its process with what was acknowledged: every write survives it.
  private func checkStateAfterDeath(
    of store: Store, at index: Int, expecting expectation: inout Expectation
  ) async throws {
    let state = try await Self.content(of: store)
    let isDoubtful = expectation.firstError != nil && expectation.allowed.contains(state)
    guard state == expectation.current || isDoubtful else {
      throw Mismatch(message: "after step \(index) the store shows \(state), written was \(expectation.current)")
    }
    expectation.current = state
  }

  /// Compares what a store shows after a failed step with what the error says.
  private func checkState(
    of store: Store, after error: any Error, at index: Int, next: State, expecting expectation: inout Expectation
  ) async throws {
    let outcome = (error as? StoreError)?.outcome
    guard let outcome else { throw Mismatch(message: "step \(index) threw \(error), which is no StoreError") }
    let state = try await Self.content(of: store)
    let expected = outcome == .nothingChanged ? [expectation.current] : [expectation.current, next]
    guard expected.contains(state) else {
      throw Mismatch(message: "step \(index) threw \(error) and the store shows \(state), allowed are \(expected)")
    }
    if outcome == .nothingChanged { expectation.allowed.removeLast() }
    expectation.current = state
  }

  private static func content(of store: Store) async throws -> State {
    var state: State = [:]
    for entry in try await store.entries(in: .all, limit: .max, order: .ascending) { state[entry.key] = entry.value }
    return state
  }
}
