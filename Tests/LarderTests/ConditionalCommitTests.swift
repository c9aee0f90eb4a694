import LarderTesting
import Testing

@testable import Larder

/// Conditional commits, first as plain state and then over a store.
@Suite struct ConditionalCommitTests {
  private enum Refusal: Sendable { case isFull }

  /// The entries of a store, without I/O.
  private struct Entries {
    var values: [StoreKey: [UInt8]] = [:]

    mutating func perform<Refusal>(
      _ commit: ConditionalCommit<Refusal>
    ) -> (outcome: ConditionalCommit<Refusal>.Outcome, assigned: [StoreKey]) {
      let keys = commit.keys.sorted()
      var slots = UpdateSlots(stored: keys.map { values[$0] })
      let outcome = commit.perform(on: &slots, with: keys)
      for (key, value) in zip(keys, slots) { values[key] = value }
      return (outcome, slots.assignedIndices.map { keys[$0] })
    }
  }

  @Test func `a commit is performed if its conditions hold`() {
    var entries = Entries(values: ["a": [1], "b": [2]])
    var commit = ConditionalCommit<Never>()
    commit.require([1], forKey: "a")
    commit.require(nil, forKey: "c")
    commit.setValue([3], forKey: "c")
    commit.setValue(nil, forKey: "b")
    #expect(Set(commit.keys) == ["a", "b", "c"])
    #expect(commit.plannedValue(forKey: "a") == .some([1]))
    #expect(commit.plannedValue(forKey: "b") == .some(nil))
    #expect(commit.plannedValue(forKey: "c") == .some([3]))
    #expect(commit.plannedValue(forKey: "d") == nil)
    #expect(commit.concerns("b") && !commit.concerns("d"))
    #expect(!commit.isEmpty && ConditionalCommit<Never>().isEmpty)
    let (outcome, assigned) = entries.perform(commit)
    #expect(outcome.isPerformed)
    #expect(assigned == ["b", "c"])
    #expect(entries.values == ["a": [1], "c": [3]])
  }

  @Test(arguments: [["a": [9]], ["a": [1], "c": [4]], [:]] as [[StoreKey: [UInt8]]])
  func `a commit is stale if a condition does not hold`(_ stored: [StoreKey: [UInt8]]) {
    var entries = Entries(values: stored)
    var commit = ConditionalCommit<Never>()
    commit.require([1], forKey: "a")
    commit.require(nil, forKey: "c")
    commit.setValue([3], forKey: "d")
    let (outcome, assigned) = entries.perform(commit)
    guard case .isStale = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(assigned.isEmpty)
    #expect(entries.values == stored)
  }

  @Test func `the last change of a key counts`() {
    var entries = Entries(values: [:])
    var commit = ConditionalCommit<Never>()
    commit.setValue([3], forKey: "a")
    commit.setValue([4], forKey: "a")
    commit.setValue([5], forKey: "b")
    commit.computeValue(forKey: "b") { _ in .set([6]) }
    commit.computeValue(forKey: "c") { _ in .set([7]) }
    commit.setValue([8], forKey: "c")
    #expect(entries.perform(commit).outcome.isPerformed)
    #expect(entries.values == ["a": [4], "b": [6], "c": [8]])
    #expect(commit.plannedValue(forKey: "b") == nil)
    #expect(Set(commit.changes.map(\.key)) == ["a", "c"])
  }

  /// The commit was planned from both values.
  @Test func `a commit that requires two values is stale`() {
    var entries = Entries(values: ["a": [1]])
    var commit = ConditionalCommit<Never>()
    commit.require([1], forKey: "a")
    commit.require([1], forKey: "a")
    #expect(entries.perform(commit).outcome.isPerformed)
    var added = commit
    commit.require([2], forKey: "a")
    #expect(!entries.perform(commit).outcome.isPerformed)
    added.add(commit)
    #expect(!entries.perform(added).outcome.isPerformed)
  }

  @Test func `a change can require what it replaces`() {
    for (stored, isPerformed) in [([1], true), ([2], false), (nil, false)] as [([UInt8]?, Bool)] {
      var entries = Entries(values: stored.map { ["a": $0] } ?? [:])
      var commit = ConditionalCommit<Never>()
      commit.setValue([3], forKey: "a", replacing: [1])
      #expect(entries.perform(commit).outcome.isPerformed == isPerformed)
      #expect(entries.values["a"] == (isPerformed ? [3] : stored))
    }
    var entries = Entries(values: ["a": [1]])
    var commit = ConditionalCommit<Never>()
    commit.setValue([3], forKey: "a", replacing: [1])
    commit.setValue([4], forKey: "a", replacing: [2])
    #expect(!entries.perform(commit).outcome.isPerformed)
  }

  @Test func `a commit can be added to another`() {
    var entries = Entries(values: ["a": [1], "d": [2]])
    var commit = ConditionalCommit<Never>()
    commit.require([1], forKey: "a")
    commit.setValue([1], forKey: "b")
    var other = ConditionalCommit<Never>()
    other.require([1], forKey: "a")
    other.setValue([2], forKey: "b")
    other.computeValue(forKey: "c", reading: ["d"]) { stored in .set(stored("d")) }
    commit.add(other)
    #expect(entries.perform(commit).outcome.isPerformed)
    #expect(entries.values == ["a": [1], "b": [2], "c": [2], "d": [2]])
  }

  @Test func `what is stored already is not written unless it is reported`() {
    var entries = Entries(values: ["a": [1], "t": [7]])
    var commit = ConditionalCommit<Never>()
    commit.setValue([1], forKey: "a")
    commit.setValue(nil, forKey: "b")
    commit.computeValue(forKey: "t") { _ in .set([7]) }
    let (outcome, assigned) = entries.perform(commit)
    #expect(outcome.isPerformed)
    #expect(assigned.isEmpty)
    for key: StoreKey in ["a", "b", "c"] { commit.report(key) }
    #expect(entries.perform(commit).assigned == ["a", "b", "c"])
    var sum = ConditionalCommit<Never>()
    sum.add(commit)
    #expect(!sum.isEmpty && entries.perform(sum).assigned == ["a", "b", "c"])
  }

  @Test func `a computation sees the values before the commit`() {
    var entries = Entries(values: ["a": [1], "t": [5]])
    var commit = ConditionalCommit<Refusal>()
    commit.setValue([2, 2], forKey: "a")
    commit.computeValue(forKey: "t") { stored in
      .set([(stored("t")?[0] ?? 0) + UInt8(2 - (stored("a")?.count ?? 0))])
    }
    commit.computeValue(forKey: "u") { _ in .keep }
    #expect(entries.perform(commit).outcome.isPerformed)
    #expect(entries.values == ["a": [2, 2], "t": [6]])
  }

  @Test func `a computation that refuses changes nothing`() {
    var entries = Entries(values: ["t": [5]])
    var commit = ConditionalCommit<Refusal>()
    commit.setValue([1], forKey: "a")
    commit.computeValue(forKey: "b") { _ in .set([1]) }
    commit.computeValue(forKey: "t") { stored in stored("t") == [5] ? .refuse(.isFull) : .isStale }
    let (outcome, assigned) = entries.perform(commit)
    guard case .refused(.isFull) = outcome else {
      Issue.record("\(outcome)")
      return
    }
    #expect(assigned.isEmpty)
    entries.values["t"] = [6]
    guard case .isStale = entries.perform(commit).outcome else {
      Issue.record("not stale")
      return
    }
    #expect(entries.values == ["t": [6]])
  }

  /// Ten of each, because the entries of a commit have no order.
  @Test func `of several refusals that of the first key counts`() {
    var entries = Entries()
    var commit = ConditionalCommit<StoreKey>()
    for key in ["c", "a", "b"] as [StoreKey] { commit.computeValue(forKey: key) { _ in .refuse(key) } }
    guard case .refused("a") = entries.perform(commit).outcome else {
      Issue.record("another one counted")
      return
    }
  }

  @Test func `a stale commit is not refused`() {
    for number in 0..<10 {
      var entries = Entries(values: [:])
      var commit = ConditionalCommit<Refusal>()
      commit.computeValue(forKey: StoreKey(integer: number)) { _ in .refuse(.isFull) }
      var other = commit
      commit.require([1], forKey: "a")
      other.computeValue(forKey: "a") { _ in .isStale }
      for commit in [commit, other] {
        guard case .isStale = entries.perform(commit).outcome else {
          Issue.record("not stale")
          return
        }
      }
    }
  }

  @Test func `of several commits the current and wanted ones are performed`() async throws {
    let store = MemoryStore<[UInt8]>()
    try await store.apply([.set("1", [0]), .set("2", [1]), .set("3", [0]), .set("4", [0])])
    let commits = ["1", "2", "3", "4", "1"].map { (key: StoreKey) in
      var commit = ConditionalCommit<Never>()
      commit.require([0], forKey: key)
      commit.setValue([1], forKey: key)
      return commit
    }
    // The second is stale, the fourth is not wanted, and the last one is not current after the first.
    #expect(try await store.perform(commits) { index, count in index != 3 || count < 2 } == [0, 2])
    #expect(try store.values(forKeys: ["1", "2", "3", "4"]) == [[1], [1], [1], [0]])
    #expect(try await store.perform(commits) == [3])
    #expect(try await store.perform([]) == [])
  }

  @Test func `a stale commit leaves no trace in the store`() async throws {
    let store = MemoryStore<[UInt8]>()
    let counted = store.faulty()
    var commit = ConditionalCommit<Never>()
    commit.require([1], forKey: "a")
    commit.setValue([2], forKey: "a")
    #expect(try await !counted.perform(commit).isPerformed)
    #expect(try store.value(forKey: "a") == nil)
    #expect(try await counted.perform(ConditionalCommit<Never>()).isPerformed)
  }

  @Test func `an operation is repeated while it is stale`() async throws {
    let information = MemoryStore<Int>(name: "stock").information
    var numbers: [Int] = []
    let result = try await information.repeating(.update) { number in
      numbers.append(number)
      return number == 3 ? "done" : nil
    }
    #expect(result == "done")
    #expect(numbers == [0, 1, 2, 3])
    var count = 0
    let error = await #expect(throws: StoreError.self) {
      try await information.repeating(.update) { _ -> Int? in
        count += 1
        return nil
      }
    }
    #expect(error?.code == .conflict)
    #expect(error?.isRetryable == true)
    #expect(count == 100)
  }

  @Test func `a cancelled operation is not repeated`() async throws {
    let information = MemoryStore<Int>().information
    let task = Task {
      try await information.repeating(.update) { number -> Int? in
        if number == 2 { withUnsafeCurrentTask { $0?.cancel() } }
        #expect(number <= 2)
        return nil
      }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }
}
