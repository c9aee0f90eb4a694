/// Whether many callers commit in two halves that take turns, or all together: plain state.
///
/// In turn, one half comes back while the group of the other half is being committed. That is faster where what a commit
/// has to write, and what the callers do, take the time. Together, all are in one group, and the disk waits while they
/// come back from it. That is faster where a commit takes long however little is in it. It depends on disk, values and
/// callers. So many callers begin in turn, now and then the other way is tried, and the one is kept that takes less time
/// for each caller; the longer it proves the better one, the less often the other is tried.
struct CommitPace: Sendable {
  /// From how many callers on they may commit in turn: groups of fewer than half as many gain nothing.
  static let leastCallerCount = 512

  /// The groups after a change of the way, which still belong to both.
  private static let settlingCount = 4

  /// The groups whose times are compared.
  private static let sampleCount = 11

  /// After how many groups the other way is tried, at the least and at the most.
  private static let trialIntervals = 64...8192

  /// Which share of the time the other way must take at the most to be kept: disks are not steady, and where there is
  /// hardly a difference there is nothing to gain.
  private static let worthwhileShare = 0.9

  /// Whether callers, where they are many, commit in two halves.
  private(set) var isInTurn = true

  // What each caller of the last groups took, in seconds.
  private var samples: [Double] = []

  // How many groups there were since the way was last changed, or had proved the better one.
  private var groupCount = 0

  // After how many groups the other way is tried.
  private var trialInterval = trialIntervals.lowerBound

  // What a caller took before, and how many there were then, while the other way is tried.
  private var beforeTrial: (time: Double, callerCount: Int)?

  /// The most callers that the next group is to have.
  ///
  /// - Parameter callerCount: How many there are: who waits, and who comes back from the last group.
  func groupLimit(of callerCount: Int) -> Int {
    isInTurn && callerCount >= CommitPace.leastCallerCount ? (callerCount + 1) / 2 : .max
  }

  /// Whether the next group is taken while the callers of the last one come back.
  ///
  /// - Parameters:
  ///   - waitingCount: How many wait.
  ///   - returningCount: How many come back.
  func goesOn(waitingCount: Int, returningCount: Int) -> Bool {
    let callerCount = waitingCount + returningCount
    // Where few wait, most come back, and would then wait for the commit of a few.
    return groupLimit(of: callerCount) < .max && waitingCount >= callerCount / 4
  }

  /// A group is over, and the next one begins.
  ///
  /// - Parameters:
  ///   - groupSize: How many callers it had.
  ///   - callerCount: How many callers there are in all.
  ///   - duration: The time from its beginning to that of the next one.
  mutating func finishGroup(of groupSize: Int, among callerCount: Int, after duration: Duration) {
    guard groupSize > 0, callerCount >= CommitPace.leastCallerCount else { return }
    groupCount += 1
    guard groupCount > CommitPace.settlingCount else { return }
    if samples.count == CommitPace.sampleCount { samples.removeFirst() }
    samples.append(duration / .seconds(1) / Double(groupSize))
    guard samples.count == CommitPace.sampleCount, beforeTrial != nil || groupCount >= trialInterval else { return }
    // The median, because now and then a disk stops for a while.
    let time = samples.sorted()[CommitPace.sampleCount / 2]
    if let beforeTrial {
      // Among many more, or fewer, each takes another time either way: that says nothing.
      let isComparable = (callerCount / 2...callerCount * 2).contains(beforeTrial.callerCount)
      endTrial(
        isBetter: isComparable ? time < CommitPace.worthwhileShare * beforeTrial.time : nil)
    } else {
      beforeTrial = (time, callerCount)
      isInTurn.toggle()
    }
    samples.removeAll(keepingCapacity: true)
    groupCount = 0
  }

  /// - Parameter isBetter: Whether the way that was tried is the better one; `nil` where that was not found out.
  private mutating func endTrial(isBetter: Bool?) {
    beforeTrial = nil
    switch isBetter {
    case true?: trialInterval = CommitPace.trialIntervals.lowerBound
    case false?: trialInterval = min(2 * trialInterval, CommitPace.trialIntervals.upperBound)
    case nil: break
    }
    if isBetter != true { isInTurn.toggle() }
  }
}
