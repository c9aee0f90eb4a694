import Larder
import Testing

@testable import LarderBatching

@Suite struct GroupCommitTests {
  /// Commits a group in which some calls always fail.
  ///
  /// - Returns: The parts that were tried, the parts that succeeded, and the calls that failed, in order.
  private func run(
    count: Int, bad: Set<Int>, _ code: StoreError.Code = .encodingFailed, singleFailureLimit: Int = 3
  ) async -> (tried: [Range<Int>], done: [Range<Int>], failed: [Int]) {
    var (tried, done): ([Range<Int>], [Range<Int>]) = ([], [])
    let commit = await GroupCommit(count: count, singleFailureLimit: { _ in singleFailureLimit }) { part in
      tried.append(part)
      if !bad.isDisjoint(with: part) { return StoreError(code, during: .apply, message: "a call is bad") }
      done.append(part)
      return nil
    }
    return (tried, done, commit.failures.flatMap { Array($0.part) })
  }

  @Test func `only bad calls fail and the others run once in order`() async {
    for count in 0...7 {
      for mask in 0..<(1 << count) {
        let bad = Set((0..<count).filter { mask >> $0 & 1 == 1 })
        let result = await run(count: count, bad: bad)
        #expect(result.failed == bad.sorted())
        #expect(result.done.flatMap { Array($0) } == (0..<count).filter { !bad.contains($0) })
      }
    }
  }

  /// Write-behind must not lose good writes, because it abandons those that fail.
  @Test(arguments: [StoreError.Code.encodingFailed, .full, .init(rawValue: "other")])
  func `only bad calls fail if good ones must succeed`(code: StoreError.Code) async {
    for count in 0...7 {
      for mask in 0..<(1 << count) {
        let bad = Set((0..<count).filter { mask >> $0 & 1 == 1 })
        let result = await run(count: count, bad: bad, code, singleFailureLimit: .max)
        #expect(result.failed == bad.sorted())
        #expect(result.done.flatMap { Array($0) } == (0..<count).filter { !bad.contains($0) })
        #expect(result.tried.count <= max(1, 2 * count - 1))
      }
    }
  }

  @Test func `one bad call among a thousand costs few commits`() async {
    for bad in [0, 1, 499, 500, 998, 999] {
      #expect(await run(count: 1000, bad: [bad]).tried.count <= 21)
      for code in [StoreError.Code.full, .init(rawValue: "other")] {
        #expect(await run(count: 1000, bad: [bad], code).failed == [bad])
      }
    }
  }

  @Test(arguments: [StoreError.Code.full, .init(rawValue: "other")])
  func `an error of all calls costs few commits`(code: StoreError.Code) async {
    let result = await run(count: 1000, bad: Set(0..<1000), code)
    #expect(result.failed == Array(0..<1000))
    #expect(result.tried.count <= 25)
  }

  @Test func `parts are no longer split after three failures in a row`() async {
    let result = await run(count: 6, bad: Set(0..<6), .full)
    #expect(result.tried == [0..<6, 0..<3, 0..<1, 1..<3, 1..<2, 2..<3, 3..<6])
  }

  @Test func `successful calls between failures separate them`() async {
    // Every call that succeeds shows that the disk is not full for all calls.
    let bad = Set((0..<64).filter { !$0.isMultiple(of: 3) })
    #expect(await run(count: 64, bad: bad, .full).failed == bad.sorted())
  }

  @Test func `an error of the store is not retried`() async {
    for code in [StoreError.Code.ioFailed, .closed, .locked, .timedOut, .notPermitted] {
      let result = await run(count: 9, bad: [4], code)
      #expect(result.failed == Array(0..<9))
      #expect(result.tried.count == 1)
    }
  }
}
