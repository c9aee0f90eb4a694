import Larder

extension DiskTrial {
  /// Opens the store after a crash, with one more operation going wrong, and gives it up: the next opening must go well.
  func disturbRecovery(
    on disk: SimulatedFileSystem, by fault: SimulatedFault, using generator: inout SeededGenerator
  ) async throws {
    // About as many operations as a recovery has; where it has fewer, nothing goes wrong.
    disk.schedule(fault, atOperation: disk.operationCount + Int.random(in: 1...32, using: &generator))
    do {
      try await open(disk).close()
    } catch {
      try Self.checkIsNoDamage(error, at: "a recovery that was disturbed")
    }
    if disk.hasPower { disk.killProcess() }
    disk.restart()
  }

  /// Opens the store after a crash, compares what it holds with what is allowed, and closes it.
  ///
  /// - Parameters:
  ///   - disk: The disk.
  ///   - allowed: What the store may hold.
  ///   - steps: What is then done with it; the store is not closed behind them.
  /// - Returns: What it holds in the end.
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
      throw Mismatch(message: "afterwards the store could not be opened and read: \(error)")
    }
    guard allowed.contains(state) else {
      throw Mismatch(message: "afterwards the store holds \(state), allowed are \(allowed)")
    }
    do {
      for step in steps {
        _ = try await step.run(on: store)
        state = step.applied(to: state)
      }
      if steps.isEmpty { try await store.close() }
    } catch {
      throw Mismatch(message: "afterwards the store could not be written to and closed: \(error)")
    }
    return state
  }

  /// Lets the process die, or the power go, by the seed.
  static func crash(_ disk: SimulatedFileSystem, using generator: inout SeededGenerator) {
    if Bool.random(using: &generator) { disk.losePower() } else { disk.killProcess() }
  }
}
