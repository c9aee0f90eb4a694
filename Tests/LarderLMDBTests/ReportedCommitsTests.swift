#if LMDB
import Testing

@testable import LarderLMDB

/// Every order in which this process, other processes and polls can take their steps.
@Suite struct ReportedCommitsTests {
  /// The origin of a transaction that has committed.
  enum Origin: Hashable {
    case own, other
    /// One of this process, which does not know that it took effect.
    case unknown
  }

  /// A step of a transaction of this process.
  enum Step: Hashable {
    case idle
    case begun
    case announced
    case ended(hasWritten: Bool)
  }

  /// A state of all processes.
  struct World: Hashable {
    /// The transactions that have committed, of which the first has the number 1.
    var commits: [Origin] = []
    /// The transaction of this process.
    ///
    /// It has LMDB's write lock in the steps `begun` and `announced`.
    var step = Step.idle
    /// The numbers that polls have found and not used yet.
    var found: [Int] = []
    var reported = ReportedCommits()
    var ownCount = 0
    var otherCount = 0
    var pollCount = 0

    var isLocked: Bool { step == .begun || step == .announced }

    /// Checks that a step has reported what it must, and nothing else.
    func check(hasReportedOthers: Bool, after previous: World) {
      let last = previous.reported.last
      // A plain comparison first, because expectations are slow.
      let isInRange = reported.last >= last && reported.last <= commits.count
      let hasPassedOthers = isInRange && commits[last..<reported.last].contains { $0 != .own }
      if !isInRange || hasPassedOthers != hasReportedOthers {
        Issue.record("reported others: \(hasReportedOthers), from \(previous) to \(self)")
      }
    }

    /// Returns the states that can follow.
    func successors() -> [World] {
      var successors: [World] = []
      func add(_ change: (inout World) -> Void) {
        var world = self
        change(&world)
        successors.append(world)
      }
      switch step {
      case .idle where ownCount < 2:
        add {
          $0.ownCount += 1
          $0.step = .begun
        }
      case .idle: break
      case .begun:
        add { $0.step = .idle }
        add {
          $0.reported.willCommit(commits.count + 1)
          $0.step = .announced
        }
      case .announced:
        add {
          $0.commits.append(.own)
          $0.step = .ended(hasWritten: true)
        }
        add {
          $0.commits.append(.unknown)
          $0.step = .ended(hasWritten: false)
        }
        add { $0.step = .ended(hasWritten: false) }
      case .ended(let hasWritten):
        add {
          let isReported = $0.reported.didEnd(hasWritten: hasWritten)
          $0.step = .idle
          $0.check(hasReportedOthers: isReported, after: self)
        }
      }
      if !isLocked, otherCount < 3 {
        add {
          $0.otherCount += 1
          $0.commits.append(.other)
        }
      }
      if pollCount < 3 {
        add {
          $0.pollCount += 1
          $0.found.append(commits.count)
        }
      }
      for index in found.indices {
        add {
          let latest = $0.found.remove(at: index)
          let isReported = $0.reported.didFind(latest)
          $0.check(hasReportedOthers: isReported, after: self)
          // Only the number of the transaction in flight is not reported yet.
          if $0.reported.last < latest - (reported.own == latest ? 1 : 0) {
            Issue.record("poll of \(latest), from \(self) to \($0)")
          }
        }
      }
      return successors
    }
  }

  @Test func `every commit of another process is reported and none of this one`() {
    var visited: Set<World> = [World()]
    var open = [World()]
    while let world = open.popLast() {
      for next in world.successors() where visited.insert(next).inserted { open.append(next) }
    }
    #expect(visited.count > 1000)
    for world in visited where world.step == .idle {
      var last = world
      let isReported = last.reported.didFind(world.commits.count)
      last.check(hasReportedOthers: isReported, after: world)
      #expect(last.reported.last == world.commits.count)
    }
  }

  @Test func `an observation begins after the commits before`() {
    var reported = ReportedCommits()
    reported.begin(after: 7)
    var isReported = [reported.didFind(7)]
    reported.willCommit(8)
    isReported.append(reported.didFind(8))
    isReported.append(reported.didEnd(hasWritten: true))
    isReported.append(reported.didFind(8))
    isReported.append(reported.didFind(9))
    #expect(isReported == [false, false, false, false, true])
  }
}
#endif
