import LarderTesting
import Testing

@testable import FileCatalog

@Suite("The ranking")
struct RankingTests {
  @Test(arguments: [0, 1, 3, 10, 100])
  func `A ranking keeps the first elements of the sorted input`(capacity: Int) {
    let seed = Seed.value
    var generator = SeededGenerator(seed: seed)
    let numbers = (0..<60).map { _ in Int.random(in: 0..<30, using: &generator) }
    var ranking = Ranking<Int>(capacity: capacity, by: >)
    for number in numbers {
      ranking.insert(number)
    }
    #expect(ranking.elements == Array(numbers.sorted(by: >).prefix(capacity)), "seed \(seed)")
  }

  @Test func `Of equal elements, the first ones are kept in their order`() {
    var ranking = Ranking<(name: String, size: Int)>(capacity: 2) { $0.size > $1.size }
    for name in ["first", "second", "third"] {
      ranking.insert((name, 1))
    }
    #expect(ranking.elements.map(\.name) == ["first", "second"])
  }
}
