#if HTTPCache
import LarderTesting
import Testing

@testable import LarderHTTPCache

/// Readers with different speeds, in simulated time.
@Suite struct BodyWindowDelayTests {
  private struct Reader {
    let id: BodyWindow.Reader
    /// The probability of a step in one millisecond; 0 for a reader that has paused.
    let speed: Double
    /// A Boolean value that indicates whether the reader never waits for anything but bytes.
    var isFast: Bool { speed == 1 }
    var position: Int64 = 0
    /// The time for which the reader has waited although the origin has more bytes.
    var waiting = 0
    var isWaiting = false
    var isCutOff = false
    var isDone = false
  }

  private static let limit = 40_000
  private static let longestDelay = 50

  /// A fast reader waits for each slower one for the limit at most, whether storing never began or stops in the middle.
  ///
  /// Memory has a bound. A reader is cut off only if it is far behind another one.
  @Test(arguments: 0..<200) func `readers of different speeds`(round: Int) {
    let seed = SeededGenerator.seedOfProcess &+ UInt64(round)
    var random = SeededGenerator(seed: seed)
    let length = Int64.random(in: 0...1_000_000, using: &random)
    let chunk = Int.random(in: 1...30_000, using: &random)
    var window = BodyWindow(
      isStoring: Bool.random(using: &random), limit: Self.limit, smallestBatch: 16_384, largestBatch: 32_768,
      longestDelay: .milliseconds(Self.longestDelay))
    let stop = Int64.random(in: 0...length, using: &random)
    var readers = (0..<Int.random(in: 1...6, using: &random)).map { _ in
      Reader(id: window.addReader(), speed: [0, 0.01, 0.1, 0.5, 1].randomElement(using: &random) ?? 1)
    }
    let fast = window.addReader()
    readers.append(Reader(id: fast, speed: 1))
    var now = 0
    while readers.contains(where: { !$0.isDone && $0.isFast }), now < 1_000_000 {
      now += 1
      if window.isStoring {
        while window.nextBatch() != nil { window.notePersisted(window.taken) }
        if window.end >= stop { window.stopStoring() }
      }
      while window.ending == nil, window.makeRoom(at: .milliseconds(now)) == .free {
        if window.end == length { window.finish(.complete) }
        window.append(Array(repeating: 7, count: min(chunk, Int(length - window.end))))
        if window.byteCount >= Self.limit + 2 * max(chunk, BodyWindow.smallBuffer) {
          Issue.record("\(window.byteCount) bytes in memory, seed \(seed)")
        }
      }
      for index in readers.indices where !readers[index].isDone && !readers[index].isCutOff {
        if readers[index].isWaiting { readers[index].waiting += 1 }
        guard Double.random(in: 0..<1, using: &random) < readers[index].speed else { continue }
        take(index, &readers, &window, seed)
      }
    }
    let slowCount = readers.count { !$0.isFast }
    for reader in readers where reader.isFast {
      let isRight = reader.isDone && reader.position == length
      #expect(isRight, "a fast reader got \(reader.position) of \(length) bytes, seed \(seed)")
      // The origin is fast, so that a reader without others waits for a tick for each filling of the window.
      let ticks = 2 + 2 * Int(length) / (Self.limit - 30_000)
      #expect(reader.waiting <= slowCount * Self.longestDelay + ticks, "seed \(seed)")
    }
  }

  private func take(_ index: Int, _ readers: inout [Reader], _ window: inout BodyWindow, _ seed: UInt64) {
    let id = readers[index].id
    while true {
      switch window.step(id) {
      case .bytes(let bytes): readers[index].position += Int64(bytes.count)
      case .stored(let range):
        window.advance(id, to: range.upperBound)
        readers[index].position = range.upperBound
      case .wait:
        readers[index].isWaiting = true
        return
      case .end:
        readers[index].isDone = true
        window.removeReader(id)
        return
      case .failure:
        Issue.record("no failure was injected, seed \(seed)")
        return
      case .cutOff:
        readers[index].isCutOff = true
        let isBehind = (readers.map(\.position).max() ?? 0) - readers[index].position >= Int64(Self.limit) / 2
        #expect(isBehind && !readers[index].isFast, "seed \(seed)")
        return
      }
      readers[index].isWaiting = false
      if !readers[index].isFast { return }
    }
  }
}
#endif
