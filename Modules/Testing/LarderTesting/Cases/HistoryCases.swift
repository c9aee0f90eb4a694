import Larder

extension CaseList {
  mutating func addHistoryCases() {
    begin(.histories, checking: .values)
    let (name, lacking, rounds, open) = (settings.name, settings.lacking, settings.rounds, settings.open)
    let history = HistoryTrial(name, lacking: lacking, openingAny: open)
    add("240", "random histories have the same results as a model") { trial in
      var generator = trial.makeGenerator()
      try await expectNoFailure { try await history.run(rounds: rounds, seed: generator.next()) }
    }
    add("241", "every history of a few steps has the same results as a model", checks: .batches) { trial in
      var generator = trial.makeGenerator()
      // Reopening a store on disk a thousand times takes seconds. A run with fewer rounds tries another selection each
      // time.
      try await expectNoFailure {
        try await history.runEveryHistory(
          upToLength: trial.isPersistent ? 2 : 3, share: Double(rounds) / 20, seed: generator.next())
      }
    }
    add("242", "the results of concurrent tasks are explained by one order of all operations", checks: .updates) {
      trial in
      var generator = trial.makeGenerator()
      try await expectNoFailure { try await history.runConcurrently(rounds: rounds, seed: generator.next()) }
    }
  }
}

/// Throws a ``Mismatch`` with the full description of a failure if there is one.
func expectNoFailure(in body: () async throws -> Void) async throws {
  do {
    try await body()
  } catch let failure as TrialFailure {
    throw Mismatch(
      subject: "the results of a history", expected: "results that the promises allow", got: failure.description)
  }
}
