import Larder
import LarderTesting
import Testing

@Suite struct HistoryTrialTests {
  private func trial(of fault: HistoryFault?) -> HistoryTrial<HistoryMutantStore> {
    HistoryTrial(fault?.rawValue ?? "no fault") { location in
      try HistoryMutantStore(disk: location.object { RecordDisk() }, fault: fault)
    }
  }

  @Test func `a store without a fault passes`() async throws {
    try await trial(of: nil).run(rounds: 50, seed: SeededGenerator.seedOfProcess)
    try await trial(of: nil).runEveryHistory(upToLength: 3)
  }

  @Test(arguments: HistoryFault.sequential) func `every fault is found and its history is short`(
    _ fault: HistoryFault
  ) async throws {
    let failure = try await #require(throws: TrialFailure.self) {
      try await trial(of: fault).run(rounds: 100, seed: SeededGenerator.seedOfProcess)
    }
    #expect(failure.store == fault.rawValue && failure.seed == SeededGenerator.seedOfProcess)
    // Of 40 steps, those remain that cannot be left out. A shorter history may exist.
    #expect((1...8).contains(failure.history.count), "\(failure)")
    for step in failure.history {
      #expect(failure.description.contains("\n  \(step),"))
    }
    await #expect(throws: TrialFailure.self) { try await trial(of: fault).repeatTrial(failure.history) }
    try await trial(of: nil).repeatTrial(failure.history)
  }

  @Test func `the shortest history is found`() async throws {
    let failure = try await #require(throws: TrialFailure.self) {
      try await trial(of: .keepsAbandonedUpdates).runEveryHistory(upToLength: 3)
    }
    #expect(failure.history == [.apply([.set("a", 1)]), .abandon(["a"])])
    #expect(failure.seed == nil)
    let forgetting = try await #require(throws: TrialFailure.self) {
      try await trial(of: .forgetsLastWrite).runEveryHistory(upToLength: 3)
    }
    #expect(forgetting.history == [.apply([.set("a", 1)]), .reopen])
  }

  @Test func `a failure names the actual and the expected result`() async throws {
    let history: [HistoryStep] = [
      .apply([.set("a", 1), .set("b", 2)]), .entries(.all, limit: 1, .descending), .reopen,
    ]
    let failure = try await #require(throws: TrialFailure.self) {
      try await trial(of: .limitsDescendingScansFirst).repeatTrial(history)
    }
    #expect(
      failure.description == """
        limitsDescendingScansFirst: at step 1, .entries(.all, limit: 1, .descending) returned ["a": 1], \
        expected ["b": 2]
        (history:
        [
          .apply([.set("a", 1), .set("b", 2)]),
          .entries(.all, limit: 1, .descending),
          .reopen,
        ])
        """)
  }

  @Test func `an error is a failure`() async throws {
    let trial = HistoryTrial("failing") { _ in
      let store = MemoryStore<Int>().faulty()
      store.schedule(.error(.ioFailed), on: .count)
      return store
    }
    let failure = try await #require(throws: TrialFailure.self) { try await trial.repeatTrial([.count(.all)]) }
    #expect(failure.message.hasPrefix("at step 0, .count(.all) threw StoreError ioFailed"))
    let unopenable = HistoryTrial("unopenable") { _ -> MemoryStore<Int> in
      throw StoreError(.notPermitted, during: .open, message: "no")
    }
    await #expect(throws: TrialFailure.self) { try await unopenable.repeatTrial([]) }
  }

  @Test func `a volatile store is not reopened`() async throws {
    let trial = HistoryTrial("memory", lacking: .persistence) { _ in MemoryStore<Int>() }
    try await trial.run(rounds: 20, seed: SeededGenerator.seedOfProcess)
    try await trial.runEveryHistory(upToLength: 2)
  }

  @Test func `steps are printed as Swift`() {
    let steps: [HistoryStep] = [
      .apply([.set("a", -1), .remove(StoreKey(bytes: [0x80, 0xC0])), .removeAll("a"..<"b"), .removeAll(.all)]),
      .add(2, to: ["\0", StoreKey(String(repeating: "x", count: 400))]), .abandon([]),
      .keys("a"..., limit: .max, .ascending), .count(..<"b"), .pages(.all, size: 2, .descending), .contains("\""),
    ]
    #expect(
      steps.map(\.description) == [
        #".apply([.set("a", -1), .remove(StoreKey(bytes: [128, 192])), .removeAll("a"..<"b"), .removeAll(.all)])"#,
        #".add(2, to: ["\0", StoreKey(String(repeating: "x", count: 400))])"#, ".abandon([])",
        #".keys("a"..., limit: .max, .ascending)"#, #".count(..<"b")"#, ".pages(.all, size: 2, .descending)",
        #".contains("\"")"#,
      ])
  }

  @Test func `a cancelled trial is not a failure`() async {
    let trial = trial(of: nil)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await trial.run(rounds: 1, seed: 1)
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
