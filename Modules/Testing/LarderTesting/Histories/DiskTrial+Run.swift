import Larder
import LarderFiles

extension DiskTrial {
  /// Runs a history and checks the result of each step, and the state after each failed step.
  ///
  /// - Throws: ``Mismatch`` if the store breaks a promise.
  func run(
    _ history: [HistoryStep], on disk: SimulatedFileSystem, fault: SimulatedFault?,
    expecting expectation: inout Expectation
  ) async throws {
    var run = Run(disk: disk, fault: fault, place: "opening")
    guard var store = try await openAnew(&run, &expectation) else { return }
    for (index, step) in history.enumerated() {
      run.place = "step \(index), \(step),"
      if step == .reopen || step == .die {
        guard let next = try await reopen(store, by: step, &run, &expectation) else { return }
        store = next
        continue
      }
      let next = step.applied(to: expectation.current)
      do {
        let result = try await step.run(on: store)
        let expected = step.result(in: expectation.current)
        guard result == expected else {
          throw Mismatch(message: "\(run.place) returned \(result), expected \(expected)")
        }
        expectation.succeeded(step, leaving: next, durability: store.information.durability)
      } catch let mismatch as Mismatch {
        throw mismatch
      } catch {
        try check(error, run, &expectation)
        expectation.allowed.append(next)
        guard disk.hasPower else { return }
        guard try await compare(store, with: next, after: error, run, &expectation) else { return }
      }
    }
  }

  /// The disk and the fault of a run, and its current step.
  struct Run {
    let disk: SimulatedFileSystem
    let fault: SimulatedFault?
    var place: String
  }

  /// Closes the store or kills the process, and reopens the store.
  ///
  /// - Returns: The store, or `nil` if the power was lost.
  private func reopen(
    _ store: Store, by step: HistoryStep, _ run: inout Run, _ expectation: inout Expectation
  ) async throws -> Store? {
    let durability = store.information.durability
    let wasDoubtful = expectation.firstError != nil || durability == .accepted
    var isClean = step == .reopen
    if step == .die {
      run.disk.killProcess()
    } else {
      do {
        try await store.close()
      } catch {
        try check(error, run, &expectation)
        isClean = false
        guard run.disk.hasPower else { return nil }
      }
    }
    let hadError = expectation.firstError != nil
    guard let store = try await openAnew(&run, &expectation) else { return nil }
    guard let state = try await shown(by: store, run, &expectation) else { return nil }
    guard state == expectation.current || wasDoubtful && expectation.allowed.contains(state) else {
      throw Mismatch(message: "after \(run.place) the store contains \(state), expected \(expectation.current)")
    }
    expectation.current = state
    // A state that a reader has seen must survive a power loss, also if its outcome was unknown before the process died.
    if durability == .synced { expectation.allowed = [state] }
    if isClean, hadError == (expectation.firstError != nil) {
      expectation.succeeded(.reopen, leaving: state, durability: durability)
    }
    expectation.isMended = expectation.firstError != nil
    return store
  }

  /// Opens the store.
  ///
  /// If that fails, the next attempt must succeed, because only one operation fails.
  ///
  /// - Returns: The store, or `nil` if the power was lost.
  private func openAnew(_ run: inout Run, _ expectation: inout Expectation) async throws -> Store? {
    do {
      return try await open(run.disk)
    } catch {
      try check(error, run, &expectation)
      guard run.disk.hasPower else { return nil }
    }
    do {
      return try await openAgain { try await open(run.disk) }
    } catch {
      throw Mismatch(message: "\(run.place) failed to open the store, and the next attempt threw \(error)")
    }
  }

  /// Checks and records an error of a step.
  private func check(_ error: any Error, _ run: Run, _ expectation: inout Expectation) throws {
    try Self.checkIsNoDamage(error, at: run.place)
    if run.disk.hasPower {
      guard let error = error as? StoreError else {
        throw Mismatch(message: "\(run.place) threw \(error), which is not a StoreError")
      }
      if run.fault == .shortTransfer {
        throw Mismatch(message: "\(run.place) threw \(error), but a short transfer must not cause an error")
      }
      if expectation.isMended {
        throw Mismatch(message: "\(run.place) threw \(error), but the failure had ended before the store was reopened")
      }
      if let number = run.fault?.errorNumber, expectation.firstError == nil {
        let failure = FileError(.write, path: "", errorNumber: number)
        let code = StoreError(failure, during: .apply, store: "", message: "").code
        guard error.code == code else {
          throw Mismatch(message: "\(run.place) threw \(error), but \(failure) has the code \(code)")
        }
      }
    }
    expectation.firstError = expectation.firstError ?? error
  }

  /// Throws a ``Mismatch`` if an error reports damage.
  ///
  /// A disk damages no data before a power loss. A store must not treat a failed read as damage, or as the end of a
  /// file.
  static func checkIsNoDamage(_ error: any Error, at place: String) throws {
    guard let code = (error as? StoreError)?.code, code == .corrupted || code == .undecodable else { return }
    throw Mismatch(message: "\(place) threw \(error), but no data is damaged")
  }

  /// Compares the contents of a store after a failed step with the outcome of the error.
  ///
  /// - Returns: `false` if the power was lost.
  private func compare(
    _ store: Store, with next: State, after error: any Error, _ run: Run, _ expectation: inout Expectation
  ) async throws -> Bool {
    let outcome = (error as? StoreError)?.outcome
    guard let state = try await shown(by: store, run, &expectation) else { return false }
    let expected = outcome == .nothingChanged ? [expectation.current] : [expectation.current, next]
    guard expected.contains(state) else {
      throw Mismatch(
        message: "\(run.place) threw \(error), and the store contains \(state), expected one of \(expected)")
    }
    if outcome == .nothingChanged { expectation.allowed.removeLast() }
    expectation.current = state
    return true
  }

  /// Returns the contents of a store.
  ///
  /// If reading fails, the next attempt must succeed, because only one operation fails.
  ///
  /// - Returns: The contents, or `nil` if the power was lost.
  private func shown(by store: Store, _ run: Run, _ expectation: inout Expectation) async throws -> State? {
    do {
      return try await Self.content(of: store)
    } catch let mismatch as Mismatch {
      throw mismatch
    } catch {
      try check(error, run, &expectation)
      guard run.disk.hasPower else { return nil }
    }
    do {
      return try await Self.content(of: store)
    } catch {
      throw Mismatch(message: "after \(run.place) the store cannot be read: \(error)")
    }
  }

  /// Returns the contents of a store, and checks that every way of reading agrees.
  static func content(of store: Store) async throws -> State {
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    let keys = entries.map(\.key)
    guard zip(keys, keys.dropFirst()).allSatisfy(<) else {
      throw Mismatch(message: "the keys of the entries are not in order: \(keys)")
    }
    let others = try await store.keys(in: .all, limit: .max, order: .ascending)
    let count = try await store.count(in: .all)
    let values = try await store.values(forKeys: keys)
    guard others == keys, count == keys.count, values == entries.map(\.value) else {
      throw Mismatch(
        message: "reads disagree: entries \(entries), keys \(others), count \(count), values \(values)")
    }
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }
}

extension DiskTrial {
  /// Opens the store after a crash while another operation fails, and drops it.
  ///
  /// The next opening must succeed.
  func disturbRecovery(
    on disk: SimulatedFileSystem, by fault: SimulatedFault, using generator: inout SeededGenerator
  ) async throws {
    // A recovery has about this many operations. If it has fewer, there is no fault.
    disk.schedule(fault, atOperation: disk.operationCount + Int.random(in: 1...32, using: &generator))
    do {
      try await open(disk).close()
    } catch {
      try Self.checkIsNoDamage(error, at: "a disturbed recovery")
    }
    if disk.hasPower { disk.killProcess() }
    disk.restart()
  }

  /// Opens the store after a crash, checks its contents, and closes it.
  ///
  /// - Parameters:
  ///   - disk: The disk.
  ///   - allowed: The allowed contents of the store.
  ///   - steps: The steps to run then. Defaults to an empty list. The store is not closed after them.
  /// - Returns: The final contents of the store.
  @discardableResult
  func recover(
    on disk: SimulatedFileSystem, allowed: [State], writing steps: [HistoryStep] = []
  ) async throws -> State {
    var state: State
    let store: Store
    do {
      store = try await open(disk)
      state = try await Self.content(of: store)
    } catch {
      throw Mismatch(message: "after the crash the store could not be opened and read: \(error)")
    }
    guard allowed.contains(state) else {
      throw Mismatch(message: "after the crash the store contains \(state), expected one of \(allowed)")
    }
    do {
      for step in steps {
        _ = try await step.run(on: store)
        state = step.applied(to: state)
      }
      if steps.isEmpty { try await store.close() }
    } catch {
      throw Mismatch(message: "after the crash the store could not be written and closed: \(error)")
    }
    return state
  }

  /// Kills the process or cuts the power, depending on the seed.
  static func crash(_ disk: SimulatedFileSystem, using generator: inout SeededGenerator) {
    if Bool.random(using: &generator) { disk.losePower() } else { disk.killProcess() }
  }
}
