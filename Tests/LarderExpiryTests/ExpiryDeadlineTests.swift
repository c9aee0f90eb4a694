import Foundation
import LarderTesting
import Testing

@testable import LarderExpiry

@Suite struct ExpiryDeadlineTests {
  private func time(_ microseconds: Int64) -> WallTime {
    WallTime(microseconds: microseconds)
  }

  @Test func `an entry is live before its deadline and not at it`() {
    let deadline = ExpiryDeadline(time: time(500_000), windowMicroseconds: nil)
    #expect(!deadline.isPast(at: time(-1)))
    #expect(!deadline.isPast(at: time(499_999)))
    #expect(deadline.isPast(at: time(500_000)))
    #expect(deadline.isPast(at: time(.max)))
  }

  @Test func `a read moves only sliding deadlines after a tenth of the window`() {
    #expect(ExpiryDeadline(time: time(1000), windowMicroseconds: nil).moved(byReadAt: time(999)) == nil)
    let deadline = ExpiryDeadline(time: time(1000), windowMicroseconds: 1000)
    #expect(deadline.moved(byReadAt: time(0)) == nil)
    #expect(deadline.moved(byReadAt: time(99)) == nil)
    #expect(deadline.moved(byReadAt: time(100)) == ExpiryDeadline(time: time(1100), windowMicroseconds: 1000))
    #expect(deadline.moved(byReadAt: time(999)) == ExpiryDeadline(time: time(1999), windowMicroseconds: 1000))
  }

  @Test func `a tenth is at least a microsecond`() {
    for window in 1...10 as ClosedRange<Int64> {
      let deadline = ExpiryDeadline(time: time(window), windowMicroseconds: window)
      #expect(deadline.moved(byReadAt: time(0)) == nil)
      #expect(deadline.moved(byReadAt: time(1))?.time == time(window + 1))
    }
    // Rounds a tenth up to a microsecond. Rounding down would allow eleven writes in a window.
    let deadline = ExpiryDeadline(time: time(11), windowMicroseconds: 11)
    #expect(deadline.moved(byReadAt: time(1)) == nil)
    #expect(deadline.moved(byReadAt: time(2)) != nil)
  }

  @Test func `a deadline beyond its window means the clock was set back`() {
    let deadline = ExpiryDeadline(time: time(1000), windowMicroseconds: 1000)
    #expect(deadline.moved(byReadAt: time(-100)) == nil)
    #expect(deadline.moved(byReadAt: time(-101)) == ExpiryDeadline(time: time(899), windowMicroseconds: 1000))
    #expect(deadline.moved(byReadAt: time(.min)) == ExpiryDeadline(time: time(.min + 1000), windowMicroseconds: 1000))
    // A minute, if a tenth of the window is longer.
    let day: Int64 = 86_400_000_000
    let long = ExpiryDeadline(time: time(day), windowMicroseconds: day)
    #expect(long.moved(byReadAt: time(-60_000_000)) == nil)
    #expect(long.moved(byReadAt: time(-60_000_001))?.time == time(day - 60_000_001))
  }

  @Test func `a deadline moves at most ten times per window`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "ExpiryDeadlineTests")
    for _ in 0..<200 {
      let window = Int64.random(in: 2...1000, using: &generator)
      var deadline = ExpiryDeadline(time: time(window), windowMicroseconds: window)
      var (now, moves): (Int64, [Int64]) = (0, [])
      for _ in 0..<500 {
        now += Int64.random(in: 0...(window / 2 + 1) / 2, using: &generator)
        #expect(!deadline.isPast(at: time(now)))
        guard let moved = deadline.moved(byReadAt: time(now)) else {
          // A read leaves at least nine tenths of the window, less a microsecond.
          #expect(deadline.time.microseconds - now > window - window / 10 - 1)
          continue
        }
        deadline = moved
        moves.append(now)
      }
      for move in moves {
        let inWindow = moves.count { $0 >= move && $0 < move + window }
        #expect(inWindow <= 10, "seed \(SeededGenerator.seedOfProcess), window \(window)")
      }
    }
  }

  @Test func `a deadline shows its date and its window`() {
    let date = Date(timeIntervalSince1970: 1_767_225_600.25)
    #expect(ExpiryDeadline(date).date == date)
    #expect(ExpiryDeadline(date).window == nil)
    #expect(ExpiryDeadline(time: time(0), windowMicroseconds: 1_500_000).window == .milliseconds(1500))
  }
}
