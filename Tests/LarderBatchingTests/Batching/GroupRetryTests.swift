import Testing

@testable import LarderBatching

@Suite struct GroupRetryTests {
  /// Runs a retry of a group in which some calls always fail.
  ///
  /// - Returns: The parts that were tried, and those that succeeded, in order.
  private func run(count: Int, bad: Set<Int>) -> (tried: [Range<Int>], done: [Range<Int>], failed: [Int]) {
    var retry = GroupRetry(count: count)
    var (tried, done, failed): ([Range<Int>], [Range<Int>], [Int]) = ([], [], [])
    while let part = retry.next() {
      tried.append(part)
      if bad.isDisjoint(with: part) {
        done.append(part)
      } else if !retry.halve(part) {
        failed.append(part.lowerBound)
      }
    }
    return (tried, done, failed)
  }

  @Test func exactlyTheBadOnesFailAndTheOthersAreDoneOnceInOrder() {
    for count in 0...7 {
      for mask in 0..<(1 << count) {
        let bad = Set((0..<count).filter { mask >> $0 & 1 == 1 })
        let result = run(count: count, bad: bad)
        #expect(result.failed == bad.sorted())
        #expect(result.done.flatMap { Array($0) } == (0..<count).filter { !bad.contains($0) })
      }
    }
  }

  @Test func oneBadCallAmongAThousandCostsFewCommits() {
    for bad in [0, 1, 499, 500, 998, 999] {
      #expect(run(count: 1000, bad: [bad]).tried.count <= 21)
    }
  }
}
