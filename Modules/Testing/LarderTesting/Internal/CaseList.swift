import Larder

/// Gathers the cases of a suite; each file of cases adds its own.
struct CaseList<Store: DataStore> where Store.Value == SampleValue? {
  typealias Opener = @Sendable (ConformanceLocation) async throws -> Store

  let suite: String
  let lacking: StoreAbilities
  let seed: UInt64
  let rounds: Int
  /// How many bytes the longest key of the store has.
  let maximumKeyLength: Int
  let timeLimit: Duration
  let child: ConformanceChild.Start?
  let open: Opener
  private(set) var cases: [ConformanceCase] = []

  init(
    suite: String, lacking: StoreAbilities, seed: UInt64, rounds: Int, maximumKeyLength: Int, timeLimit: Duration,
    child: ConformanceChild.Start?, open: @escaping Opener
  ) {
    self.suite = suite
    self.lacking = lacking
    self.seed = seed
    self.rounds = rounds
    self.maximumKeyLength = maximumKeyLength
    self.timeLimit = timeLimit
    self.child = child
    self.open = open
  }

  mutating func addAll() {
    addPointCases()
    addKeyCases()
    addValueCases()
    addMultiGetCases()
    addBatchCases()
    addUpdateCases()
    addScanCases()
    addPageCases()
    addClearCases()
    addLifecycleCases()
    addReopeningCases()
    addDamageCases()
    addErrorCases()
    addCancellationCases()
    addConcurrencyCases()
    addHistoryCases()
    addMaintenanceCases()
    addFileCases()
    addSizeCases()
    addAlteredFileCases()
    addProcessCases()
  }

  /// Adds a case.
  ///
  /// - Parameters:
  ///   - number: Its number, and `variant` the letter that follows it.
  ///   - name: What must hold.
  ///   - group: What it is about.
  ///   - promise: Which promise it checks.
  ///   - needs: What the store must be able to do.
  ///   - body: Throws what `expect` throws where the promise is broken.
  mutating func add(
    _ number: Int, _ variant: String = "", _ name: String, in group: ConformanceGroup,
    checks promise: ConformancePromise, needs: StoreAbilities = [],
    _ body: @escaping @Sendable (Trial<Store>) async throws -> Void
  ) {
    let (suite, lacking, seed, open) = (suite, lacking, seed, open)
    let (timeLimit, child) = (timeLimit, child)
    cases.append(
      ConformanceCase(number: number, variant: variant, name: name, group: group, promise: promise, needs: needs) {
        conformanceCase in
        do {
          try await TimeLimit(timeLimit, of: "case \(conformanceCase) of \(suite)").run {
            let trial = try Trial(
              location: ConformanceLocation(), lacking: lacking, seed: seed, purpose: conformanceCase.id, child: child,
              opener: open)
            try await trial.run(body)
          }
        } catch let mismatch as Mismatch {
          throw ConformanceFailure(mismatch, in: conformanceCase, of: suite, seed: seed)
        } catch {
          try Task.checkCancellation()
          let mismatch = Mismatch(
            subject: "whether the case runs to its end", expected: "no error", got: text(of: error), place: "")
          throw ConformanceFailure(mismatch, in: conformanceCase, of: suite, seed: seed, underlying: error)
        }
      })
  }
}
