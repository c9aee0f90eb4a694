import Larder
import LarderFiles

extension DiskTrial {
  /// Runs a history, and compares what each step gives, and what failed steps leave, with what is allowed.
  ///
  /// - Throws: ``Mismatch``.
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
        guard result == expected else { throw Mismatch(message: "\(run.place) gave \(result), expected \(expected)") }
        expectation.succeeded(step, leaving: next, acknowledgement: store.information.acknowledgement)
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

  /// What a run goes on with, and where it is.
  struct Run {
    let disk: SimulatedFileSystem
    let fault: SimulatedFault?
    var place: String
  }

  /// Closes the store, or lets the process die, and opens it anew.
  ///
  /// - Returns: The store, or `nil` where the power went.
  private func reopen(
    _ store: Store, by step: HistoryStep, _ run: inout Run, _ expectation: inout Expectation
  ) async throws -> Store? {
    let acknowledgement = store.information.acknowledgement
    let wasDoubtful = expectation.firstError != nil || acknowledgement == .accepted
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
      throw Mismatch(message: "after \(run.place) the store shows \(state), written was \(expectation.current)")
    }
    expectation.current = state
    if isClean, hadError == (expectation.firstError != nil) {
      expectation.succeeded(.reopen, leaving: state, acknowledgement: acknowledgement)
    }
    expectation.isMended = expectation.firstError != nil
    return store
  }

  /// Opens the store; where that fails it must be possible at once, since only one operation fails.
  ///
  /// - Returns: The store, or `nil` where the power went.
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

  /// Looks at an error that a step threw, and takes note of it.
  private func check(_ error: any Error, _ run: Run, _ expectation: inout Expectation) throws {
    try Self.checkIsNoDamage(error, at: run.place)
    if run.disk.hasPower {
      guard let error = error as? StoreError else {
        throw Mismatch(message: "\(run.place) threw \(error), which is no StoreError")
      }
      if run.fault == .shortTransfer {
        throw Mismatch(message: "\(run.place) threw \(error), and only a transfer was cut short, which must not show")
      }
      if expectation.isMended {
        throw Mismatch(message: "\(run.place) threw \(error), and the failure was over when the store was opened")
      }
      if let number = run.fault?.errorNumber, expectation.firstError == nil {
        let failure = FileError(.write, path: "", errorNumber: number)
        let code = StoreError(failure, during: .apply, store: "", message: "").code
        guard error.code == code else {
          throw Mismatch(message: "\(run.place) threw \(error), and \(failure) has the code \(code)")
        }
      }
    }
    expectation.firstError = expectation.firstError ?? error
  }

  /// Before its power was lost a disk damages nothing: what cannot be read now must not be taken for damage, or for the
  /// end of a file.
  static func checkIsNoDamage(_ error: any Error, at place: String) throws {
    guard (error as? StoreError)?.code == .corrupted else { return }
    throw Mismatch(message: "\(place) threw \(error), and nothing is damaged")
  }

  /// Compares what a store shows after a failed step with what the error says.
  ///
  /// - Returns: `false` where the power went.
  private func compare(
    _ store: Store, with next: State, after error: any Error, _ run: Run, _ expectation: inout Expectation
  ) async throws -> Bool {
    let outcome = (error as? StoreError)?.outcome
    guard let state = try await shown(by: store, run, &expectation) else { return false }
    let expected = outcome == .nothingChanged ? [expectation.current] : [expectation.current, next]
    guard expected.contains(state) else {
      throw Mismatch(message: "\(run.place) threw \(error) and the store shows \(state), allowed are \(expected)")
    }
    if outcome == .nothingChanged { expectation.allowed.removeLast() }
    expectation.current = state
    return true
  }

  /// What a store shows; where reading fails it must be possible at once, since only one operation fails.
  ///
  /// - Returns: Its content, or `nil` where the power went.
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

  /// What a store holds, whichever way it is asked.
  static func content(of store: Store) async throws -> State {
    let entries = try await store.entries(in: .all, limit: .max, order: .ascending)
    let keys = entries.map(\.key)
    guard zip(keys, keys.dropFirst()).allSatisfy(<) else { throw Mismatch(message: "the keys of entries are \(keys)") }
    let others = try await store.keys(in: .all, limit: .max, order: .ascending)
    let count = try await store.count(in: .all)
    let values = try await store.values(forKeys: keys)
    guard others == keys, count == keys.count, values == entries.map(\.value) else {
      throw Mismatch(
        message: "of the entries \(entries) keys are \(others), the count is \(count), values are \(values)")
    }
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }
}
