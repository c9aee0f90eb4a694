import Larder

extension CaseList {
  mutating func addHistoryCases() {
    let (name, lacking, rounds, open) = (suite, lacking, rounds, open)
    let openIntegers = { @Sendable location in IntegerStore(base: try await open(location)) }
    add(240, "", "random histories have the same results as a model", in: .histories, checks: .values) { trial in
      var generator = trial.makeGenerator()
      try await expectNoFailure(of: HistoryTrialFailure.self) {
        try await HistoryTrial(name, lacking: lacking, open: openIntegers).run(rounds: rounds, seed: generator.next())
      }
    }
    add(241, "", "every history of a few steps has the same results as a model", in: .histories, checks: .batches) {
      _ in
      // Reopening a store on disk a thousand times takes seconds.
      let length = lacking.contains(.persistence) ? 3 : 2
      try await expectNoFailure(of: HistoryTrialFailure.self) {
        try await HistoryTrial(name, lacking: lacking, open: openIntegers).runEveryHistory(upToLength: length)
      }
    }
    add(
      242, "", "the results of concurrent tasks are explained by one order of all operations", in: .histories,
      checks: .updates
    ) { trial in
      var generator = trial.makeGenerator()
      try await expectNoFailure(of: ConcurrencyTrialFailure.self) {
        try await ConcurrencyTrial(name, open: openIntegers).run(rounds: rounds, seed: generator.next())
      }
    }
  }
}

/// Throws a ``Mismatch`` with the full description of a failure if there is one.
private func expectNoFailure<Failure: Error & CustomStringConvertible>(
  of _: Failure.Type, file: String = #fileID, line: Int = #line, in body: () async throws -> Void
) async throws {
  do {
    try await body()
  } catch let failure as Failure {
    throw Mismatch(
      subject: "the results of a history", expected: "results that the promises allow", got: failure.description,
      place: "\(file):\(line)")
  }
}

/// A store of integers over a store of sample values, which runs histories on a store that a ``ConformanceSuite``
/// opens.
///
/// Zero represents a stored nil, so that histories cover it too.
private struct IntegerStore<Base: DataStore>: DataStore where Base.Value == SampleValue? {
  let base: Base

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Int? {
    try integer(from: await base.value(forKey: key))
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
    try await base.values(forKeys: keys).map(integer)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    try await base.entries(in: range, limit: limit, order: order).map { entry in
      StoreEntry(key: entry.key, value: try integer(from: entry.value))
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Int>) async throws {
    try await base.apply(ChangeBatch(changes.changes.map { $0.mapValue { _, integer in sample(of: integer) } }))
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Int?]) throws -> Result
  ) async throws -> Result {
    try await base.update(keys) { slots in
      var integers = try slots.map(integer)
      defer { slots = integers.map { $0.map(sample) } }
      return try body(&integers)
    }
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }

  private func sample(of integer: Int) -> SampleValue? {
    integer == 0 ? nil : SampleValue(integer: Int64(integer))
  }

  private func integer(from slot: SampleValue??) throws -> Int? {
    try slot.map { try integer(from: $0) }
  }

  private func integer(from sample: SampleValue?) throws -> Int {
    guard let sample else { return 0 }
    guard let integer = Int(exactly: sample.integer), integer != 0, sample == self.sample(of: integer) else {
      throw Mismatch(subject: "a value in a history", expected: "an integer other than 0", got: "\(sample)", place: "")
    }
    return integer
  }
}

extension IntegerStore: MaintainableStore where Base: MaintainableStore {
  func storeStatistics() async throws -> StoreStatistics { try await base.storeStatistics() }
  func verify() async throws -> VerificationReport { try await base.verify() }
  func compact() async throws { try await base.compact() }
  func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}
