import Larder
import LarderTesting
import Testing

@Suite struct ConcurrentHistoryTests {
  private func operation(
    _ step: HistoryStep, _ result: HistoryResult, _ times: ClosedRange<Int>, task: Int = 0
  ) -> ConcurrentOperation {
    ConcurrentOperation(
      task: task, step, invocation: times.lowerBound, response: .init(result, time: times.upperBound))
  }

  private func set(_ key: StoreKey, _ value: Int, _ times: ClosedRange<Int>) -> ConcurrentOperation {
    operation(.apply([.set(key, value)]), .done, times)
  }

  private func read(_ key: StoreKey, _ value: Int?, _ times: ClosedRange<Int>) -> ConcurrentOperation {
    operation(.value(key), .slots([value]), times)
  }

  /// Returns a write with an unknown outcome.
  private func set(_ key: StoreKey, _ value: Int, from time: Int) -> ConcurrentOperation {
    ConcurrentOperation(task: 9, .apply([.set(key, value)]), invocation: time, response: nil)
  }

  @Test func `an empty history is linearizable`() {
    #expect(ConcurrentHistory([]).isLinearizable)
    #expect(ConcurrentHistory(start: ["a": 1], []).violation == nil)
  }

  @Test func `initial values are read`() {
    #expect(ConcurrentHistory(start: ["a": 1], [read("a", 1, 0...1), read("b", nil, 2...3)]).isLinearizable)
    #expect(!ConcurrentHistory(start: ["a": 1], [read("a", nil, 0...1)]).isLinearizable)
  }

  @Test func `sequential operations take effect in order`() {
    #expect(ConcurrentHistory([set("a", 1, 0...1), set("a", 2, 2...3), read("a", 2, 4...5)]).isLinearizable)
    #expect(!ConcurrentHistory([set("a", 1, 0...1), set("a", 2, 2...3), read("a", 1, 4...5)]).isLinearizable)
    #expect(!ConcurrentHistory([set("a", 1, 0...1), read("a", nil, 2...3)]).isLinearizable)
    #expect(!ConcurrentHistory([read("a", 1, 0...1), set("a", 1, 2...3)]).isLinearizable)
  }

  @Test func `concurrent operations may take effect in any order`() {
    #expect(ConcurrentHistory([set("a", 1, 0...5), read("a", nil, 1...2), read("a", 1, 3...4)]).isLinearizable)
    #expect(ConcurrentHistory([set("a", 1, 0...3), set("a", 2, 1...2), read("a", 1, 4...5)]).isLinearizable)
    #expect(ConcurrentHistory([set("a", 1, 0...3), set("a", 2, 1...2), read("a", 2, 4...5)]).isLinearizable)
  }

  @Test func `no reader sees an old value again`() {
    let history = ConcurrentHistory([set("a", 1, 0...9), read("a", 1, 1...2), read("a", nil, 3...4)])
    #expect(!history.isLinearizable)
  }

  @Test func `two readers agree on the order of two writes`() {
    let writes = [set("a", 1, 0...9), set("a", 2, 1...10)]
    let agreeing = [read("a", 1, 2...3), read("a", 2, 4...5), read("a", 2, 6...7)]
    let disagreeing = [read("a", 1, 2...3), read("a", 2, 4...5), read("a", 1, 6...7)]
    #expect(ConcurrentHistory(writes + agreeing).isLinearizable)
    #expect(!ConcurrentHistory(writes + disagreeing).isLinearizable)
  }

  @Test func `a lost update is found`() {
    func add(_ sum: Int, _ times: ClosedRange<Int>) -> ConcurrentOperation {
      operation(.add(1, to: ["a"]), .slots([sum]), times)
    }
    #expect(ConcurrentHistory([add(1, 0...3), add(2, 1...2)]).isLinearizable)
    #expect(!ConcurrentHistory([add(1, 0...3), add(1, 1...2)]).isLinearizable)
  }

  @Test func `an unknown outcome may take effect later or never`() {
    #expect(ConcurrentHistory([set("a", 1, from: 0), read("a", nil, 1...2)]).isLinearizable)
    #expect(ConcurrentHistory([set("a", 1, from: 0), read("a", nil, 1...2), read("a", 1, 3...4)]).isLinearizable)
    #expect(ConcurrentHistory([set("a", 1, from: 0), set("a", 2, 1...2), read("a", 1, 3...4)]).isLinearizable)
    #expect(!ConcurrentHistory([read("a", 1, 0...1), set("a", 1, from: 2)]).isLinearizable)
    // The write takes effect at most once.
    let twice = [set("a", 1, from: 0), read("a", 1, 1...2), set("a", 2, 3...4), read("a", 1, 5...6)]
    #expect(!ConcurrentHistory(twice).isLinearizable)
    let sum = ConcurrentOperation(task: 1, .add(1, to: ["a"]), invocation: 0, response: nil)
    #expect(ConcurrentHistory([sum, read("a", 1, 1...2)]).isLinearizable)
    #expect(!ConcurrentHistory([sum, read("a", 2, 1...2)]).isLinearizable)
  }

  @Test func `a torn batch is found`() {
    let batch = operation(.apply([.set("a", 1), .set("b", 1)]), .done, 0...9)
    func both(_ slots: [Int?], _ times: ClosedRange<Int>) -> ConcurrentOperation {
      operation(.values(["a", "b"]), .slots(slots), times)
    }
    #expect(ConcurrentHistory([batch, both([nil, nil], 1...2), both([1, 1], 3...4)]).isLinearizable)
    #expect(!ConcurrentHistory([batch, both([1, nil], 1...2)]).isLinearizable)
    // Each key by itself is linearizable; only the two together are not.
    #expect(!ConcurrentHistory([batch, read("a", 1, 1...2), read("b", nil, 3...4)]).isLinearizable)
    let apart = [set("a", 1, 0...9), set("b", 1, 0...9), read("a", 1, 1...2), read("b", nil, 3...4)]
    #expect(ConcurrentHistory(apart).isLinearizable)
  }

  @Test func `ranges join their keys`() {
    let clear = operation(.apply([.removeAll("a"..<"c"), .set("c", 3)]), .done, 4...9)
    let sets = [set("a", 1, 0...1), set("b", 2, 2...3)]
    let entries: (HistoryResult) -> ConcurrentOperation = {
      self.operation(.entries(.all, limit: .max, .ascending), $0, 5...6)
    }
    let before = [StoreEntry(key: "a", value: 1), StoreEntry(key: "b", value: 2)]
    #expect(ConcurrentHistory(sets + [clear, entries(.entries(before))]).isLinearizable)
    #expect(ConcurrentHistory(sets + [clear, entries(.entries([StoreEntry(key: "c", value: 3)]))]).isLinearizable)
    #expect(!ConcurrentHistory(sets + [clear, entries(.entries([before[1]]))]).isLinearizable)
    #expect(!ConcurrentHistory(sets + [clear, entries(.entries([]))]).isLinearizable)
  }

  @Test func `values that no operation wrote are found`() {
    let keys = operation(.keys(.all, limit: .max, .ascending), .keys(["z"]), 0...1)
    #expect(!ConcurrentHistory([keys]).isLinearizable)
    #expect(!ConcurrentHistory([set("a", 1, 2...3), keys]).isLinearizable)
  }

  @Test func `a violation is short and concerns one key`() throws {
    let others = (0..<20).map { set("b", $0, (100 + 2 * $0)...(101 + 2 * $0)) }
    let before = [set("a", 1, 0...1), read("a", 1, 2...3)]
    let spoiled = [set("a", 2, 4...20), read("a", 2, 5...6), read("a", 1, 7...8)]
    let after = [read("a", 2, 30...31), set("a", 3, 32...33)]
    let violation = try #require(ConcurrentHistory(others + before + spoiled + after).violation)
    #expect(!violation.isLinearizable)
    #expect(violation.operations.count == 5)
    #expect(violation.operations.last == spoiled[2])
    #expect(violation.operations[2].response == nil, "the operation had no response when the violation was complete")
    #expect(violation.description.contains(#"task 0, 7…8: .value("a") returned [1]"#))
    #expect(violation.description.contains(#"4…?: .apply([.set("a", 2)]) has an unknown outcome"#))
  }

  @Test func `long histories are checked quickly`() {
    // Rounds of eight overlapping operations, which take too long unless the search remembers the visited states.
    var operations: [ConcurrentOperation] = []
    for wave in 0..<25 {
      for task in 0..<8 {
        let begin = wave * 100 + task
        operations.append(set("a", wave * 8 + task, begin...(begin + 50)))
      }
      operations.append(read("a", wave * 8 + wave % 8, (wave * 100 + 80)...(wave * 100 + 81)))
    }
    #expect(ConcurrentHistory(operations).isLinearizable)
    operations.append(read("a", -1, 9_000...9_001))
    #expect(!ConcurrentHistory(operations).isLinearizable)
  }

  /// Tries every order one by one, which is slow but certain.
  private func canBeExplained(_ operations: [ConcurrentOperation], state: [StoreKey: Int] = [:]) -> Bool {
    guard operations.contains(where: { $0.response != nil }) else { return true }
    let end = operations.compactMap(\.response?.time).min() ?? .max
    return operations.indices.contains { index in
      let operation = operations[index]
      guard operation.invocation < end else { return false }
      var state = state
      var rest = operations
      rest.remove(at: index)
      guard case .apply(let changes) = operation.step else {
        guard case .value(let key) = operation.step else { return false }
        return operation.response?.result == .slots([state[key]]) && canBeExplained(rest, state: state)
      }
      for case .set(let key, let value) in changes { state[key] = value }
      return canBeExplained(rest, state: state)
    }
  }

  @Test func `the search agrees with trying every order`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "every order")
    var verdicts: [Bool: Int] = [:]
    for round in 0..<2_000 {
      let moments = (0..<12).shuffled(using: &generator)
      let operations = (0..<6).map { index -> ConcurrentOperation in
        let times = [moments[2 * index], moments[2 * index + 1]].sorted()
        let key: StoreKey = Int.random(in: 0..<4, using: &generator) == 0 ? "b" : "a"
        let number = Int.random(in: 1...2, using: &generator)
        switch Int.random(in: 0..<7, using: &generator) {
        case 0..<2: return set(key, number, times[0]...times[1])
        case 2: return operation(.apply([.set("a", number), .set("b", number)]), .done, times[0]...times[1])
        case 3: return set(key, number, from: times[0])
        default: return read(key, number, times[0]...times[1])
        }
      }
      let verdict = ConcurrentHistory(operations).isLinearizable
      verdicts[verdict, default: 0] += 1
      #expect(verdict == canBeExplained(operations), "seed \(SeededGenerator.seedOfProcess), round \(round)")
    }
    #expect(verdicts.values.allSatisfy { $0 > 100 } && verdicts.count == 2, "\(verdicts)")
  }
}
