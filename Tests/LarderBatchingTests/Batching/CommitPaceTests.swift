import Testing

@testable import LarderBatching

@Suite struct CommitPaceTests {
  /// How long groups take: some time for each, and some for each of its callers.
  private struct Disk {
    var commit: Duration
    var change: Duration
    var comingBack: Duration

    /// The time from the beginning of a group to that of the next.
    func time(of size: Int, isInTurn: Bool) -> Duration {
      let committing = commit + change * size
      // In turn, the others come back meanwhile.
      return isInTurn ? max(committing, comingBack * size) : committing + comingBack * size
    }
  }

  private static let fastDisk = Disk(
    commit: .microseconds(400), change: .nanoseconds(200), comingBack: .nanoseconds(700))
  private static let slowDisk = Disk(commit: .milliseconds(8), change: .nanoseconds(200), comingBack: .nanoseconds(700))

  /// Lets some callers, each of whom writes again and again, commit so many groups.
  ///
  /// - Returns: How many of them were halves.
  @discardableResult
  private func run(_ pace: inout CommitPace, _ disk: Disk, callers: Int, groups: Int) -> Int {
    var halves = 0
    for _ in 0..<groups {
      let size = min(callers, pace.groupLimit(of: callers))
      if size < callers { halves += 1 }
      pace.finishGroup(of: size, among: callers, after: disk.time(of: size, isInTurn: size < callers))
    }
    return halves
  }

  @Test func fewCallersAreAlwaysTogether() {
    var pace = CommitPace()
    for count in [1, 2, CommitPace.leastCallerCount - 1] {
      #expect(run(&pace, Self.slowDisk, callers: count, groups: 10_000) == 0)
      #expect(!pace.goesOn(waitingCount: count / 2, returningCount: count - count / 2))
    }
    #expect(pace.isInTurn, "few callers say nothing about many")
  }

  @Test func manyBeginInTurnInHalves() {
    let pace = CommitPace()
    #expect(pace.groupLimit(of: 1000) == 500)
    #expect(pace.groupLimit(of: 1001) == 501)
    #expect(pace.goesOn(waitingCount: 500, returningCount: 500))
  }

  @Test func whereNearlyAllComeBackTheyAreWaitedFor() {
    let pace = CommitPace()
    #expect(!pace.goesOn(waitingCount: 1, returningCount: 999))
    #expect(pace.goesOn(waitingCount: 250, returningCount: 750))
  }

  @Test func onAFastDiskTheyStayInTurn() {
    var pace = CommitPace()
    let halves = run(&pace, Self.fastDisk, callers: 1000, groups: 20_000)
    #expect(halves > 19_000)
    #expect(halves < 20_000, "together was never tried")
  }

  @Test func onASlowDiskTheyComeTogether() {
    var pace = CommitPace()
    let halves = run(&pace, Self.slowDisk, callers: 1000, groups: 20_000)
    #expect(halves < 1000)
    #expect(!pace.isInTurn)
  }

  @Test func whenTheDiskChangesSoDoThey() {
    var pace = CommitPace()
    run(&pace, Self.slowDisk, callers: 1000, groups: 20_000)
    #expect(run(&pace, Self.fastDisk, callers: 1000, groups: 20_000) > 10_000)
    #expect(run(&pace, Self.slowDisk, callers: 1000, groups: 20_000) < 10_000)
  }

  @Test func aDiskThatStopsNowAndThenChangesNothing() {
    var pace = CommitPace()
    var halves = 0
    for group in 0..<20_000 {
      let size = min(1000, pace.groupLimit(of: 1000))
      if size < 1000 { halves += 1 }
      let stop = group.isMultiple(of: 7) ? Duration.milliseconds(20) : .zero
      pace.finishGroup(of: size, among: 1000, after: Self.fastDisk.time(of: size, isInTurn: size < 1000) + stop)
    }
    #expect(halves > 19_000)
  }

  /// The same disk takes less time for each of many more callers, together or in turn.
  @Test func aTrialAmongManyMoreCallersSaysNothing() {
    var pace = CommitPace()
    while pace.isInTurn { run(&pace, Self.fastDisk, callers: 600, groups: 1) }
    run(&pace, Self.fastDisk, callers: 6000, groups: 100)
    #expect(pace.isInTurn)
    #expect(run(&pace, Self.fastDisk, callers: 6000, groups: 1000) > 900)
  }

  /// As with a clock that a test moves by hand.
  @Test func withoutTimeTheyStayAsTheyBegan() {
    var pace = CommitPace()
    let still = Disk(commit: .zero, change: .zero, comingBack: .zero)
    #expect(run(&pace, still, callers: 1000, groups: 20_000) > 19_000)
  }
}
