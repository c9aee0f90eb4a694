import LarderTesting
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct RandomSampleTests {
  @Test func `few elements are all chosen`() {
    var generator = SeededGenerator(seed: 1)
    var sample = RandomSample<Int>(limit: 5)
    for number in 0..<4 { sample.add(number, using: &generator) }
    #expect(sample.elements == [0, 1, 2, 3])
  }

  @Test func `every element is chosen about equally often`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    var counts = [Int](repeating: 0, count: 20)
    for _ in 0..<4000 {
      var sample = RandomSample<Int>(limit: 5)
      for number in 0..<20 { sample.add(number, using: &generator) }
      #expect(Set(sample.elements).count == 5)
      for number in sample.elements { counts[number] += 1 }
    }
    // A thousand each, with a standard deviation of 27.
    #expect(counts.allSatisfy { (800...1200).contains($0) }, "seed \(SeededGenerator.seedOfProcess): \(counts)")
  }
}
