import LarderTesting
import Testing

@Suite struct SeededGeneratorTests {
  @Test func `the same seed gives the same numbers`() {
    var generator = SeededGenerator(seed: 1_234_567)
    // The published output of SplitMix64 for this seed.
    #expect(generator.next() == 6_457_827_717_110_365_317)
    #expect(generator.next() == 3_203_168_211_198_807_973)
  }

  @Test func `the purpose affects the numbers`() {
    var first = SeededGenerator(seed: 1, purpose: "a")
    var again = SeededGenerator(seed: 1, purpose: "a")
    var other = SeededGenerator(seed: 1, purpose: "b")
    let number = first.next()
    #expect(again.next() == number)
    #expect(other.next() != number)
  }
}
