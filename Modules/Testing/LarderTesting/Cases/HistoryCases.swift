import Larder

extension CaseList {
  mutating func addHistoryCases() {
    let (name, lacking, rounds, open) = (suite, lacking, rounds, open)
    let openIntegers = { @Sendable location in IntegerStore(base: try await open(location)) }
    add(240, "", "random histories give what a model gives", in: .histories, checks: .values) { trial in
      var generator = trial.makeGenerator()
      try await expectNoFailure(of: HistoryTrialFailure.self) {
        try await HistoryTrial(name, lacking: lacking, open: openIntegers).run(rounds: rounds, seed: generator.next())
      }
    }
    add(241, "", "every history of a few steps gives what a model gives", in: .histories, checks: .batches) { _ in
      // To open a store on disk anew a thousand times takes seconds.
      let length = lacking.contains(.persistence) ? 3 : 2
      try await expectNoFailure(of: HistoryTrialFailure.self) {
        try await HistoryTrial(name, lacking: lacking, open: openIntegers).runEveryHistory(upToLength: length)
      }
    }
    add(
      242, "", "what tasks see at the same time is explained by one order of all they did", in: .histories,
      checks: .updates
    ) { trial in
      var generator = trial.makeGenerator()
      try await expectNoFailure(of: ConcurrencyTrialFailure.self) {
        try await ConcurrencyTrial(name, open: openIntegers).run(rounds: rounds, seed: generator.next())
      }
    }
  }
}

/// Throws a ``Mismatch`` that tells all of a failure, where there is one.
private func expectNoFailure<Failure: Error & CustomStringConvertible>(
  of _: Failure.Type, file: String = #fileID, line: Int = #line, in body: () async throws -> Void
) async throws {
  do {
    try await body()
  } catch let failure as Failure {
    throw Mismatch(
      subject: "histories", expected: "what the promises allow", got: failure.description, place: "\(file):\(line)")
  }
}
