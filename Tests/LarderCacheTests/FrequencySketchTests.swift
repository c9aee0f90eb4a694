import LarderTesting
import Testing

@testable import LarderCache

@Suite struct FrequencySketchTests {
  @Test func `counts up to fifteen`() {
    var sketch = FrequencySketch(capacity: 1000)
    sketch.reserve(1000)
    for count in 0..<20 {
      #expect(sketch.estimate(7) == min(count, 15))
      sketch.increment(7)
    }
    #expect(sketch.estimate(8) == 0)
  }

  @Test func `estimates are seldom wrong for the relevant keys`() {
    let seed = SeededGenerator.seedOfProcess
    var random = SeededGenerator(seed: seed, purpose: "isSeldomWrong")
    var sketch = FrequencySketch(capacity: 1000)
    sketch.reserve(1000)
    let keys = (0..<1000).map { _ in UInt32.random(in: 0 ... .max, using: &random) }
    for (index, key) in keys.enumerated() {
      for _ in 0..<index % 10 { sketch.increment(key) }
    }
    let wrong = keys.enumerated().count { sketch.estimate($1) != $0 % 10 }
    let tooLow = keys.enumerated().count { sketch.estimate($1) < $0 % 10 }
    #expect(wrong < 20, "LARDER_SEED=\(seed)")
    #expect(tooLow == 0, "LARDER_SEED=\(seed)")
  }

  @Test func `growing keeps the counts`() {
    var sketch = FrequencySketch(capacity: 10_000)
    for hash in 0..<100 as Range<UInt32> {
      for _ in 0..<hash % 10 { sketch.increment(hash &* 0x9E37_79B1) }
    }
    let before = (0..<100 as Range<UInt32>).map { sketch.estimate($0 &* 0x9E37_79B1) }
    sketch.reserve(10_000)
    #expect((0..<100 as Range<UInt32>).map { sketch.estimate($0 &* 0x9E37_79B1) } == before)
    for hash in 1000..<1100 as Range<UInt32> {
      for _ in 0..<10 { sketch.increment(hash &* 0x9E37_79B1) }
    }
    #expect((1000..<1100 as Range<UInt32>).allSatisfy { sketch.estimate($0 &* 0x9E37_79B1) >= 10 })
  }

  @Test func `neighbours do not share counters`() {
    var sketch = FrequencySketch(capacity: 1000)
    sketch.reserve(1000)
    for hash in 0..<100 as Range<UInt32> {
      for _ in 0..<10 { sketch.increment(hash << 20) }
    }
    #expect((100..<1000 as Range<UInt32>).count { sketch.estimate($0 << 20) > 0 } < 20)
  }

  @Test func `halves counts after a sample`() {
    var sketch = FrequencySketch(capacity: 100)
    for _ in 0..<12 { sketch.increment(1) }
    // A sample is twenty uses per entry. After that, each use halves a part of the counters.
    for hash in 0..<1985 as Range<UInt32> { sketch.increment(hash &* 0x0101_0107 | 1 << 31) }
    #expect(sketch.estimate(1) >= 12)
    for hash in 0..<200 as Range<UInt32> { sketch.increment(hash &* 0x0201_0105 | 1 << 31) }
    #expect((6...7).contains(sketch.estimate(1)))
  }
}
