import LarderTesting
import Testing

@testable import LarderBatching

@Suite struct WaitingLineTests {
  @Test func itGivesWhatAnArrayWould() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for _ in 0..<50 {
      var line = WaitingLine<Int>()
      var model: [(number: UInt64, element: Int)] = []
      for step in 0..<400 {
        switch Int.random(in: 0..<7, using: &generator) {
        case 0..<4:
          let number = line.append(step)
          #expect(model.last.map { $0.number < number } ?? true)
          model.append((number, step))
        case 4:
          let first = line.removeFirst()
          #expect(first?.number == model.first?.number)
          #expect(first?.element == model.first?.element)
          if !model.isEmpty { model.removeFirst() }
        case 5 where !model.isEmpty:
          let entry = model.remove(at: Int.random(in: model.indices, using: &generator))
          #expect(line.remove(entry.number) == entry.element)
          #expect(line.remove(entry.number) == nil)
        default:
          let unknown = UInt64.random(in: 0..<UInt64(step + 1), using: &generator)
          if !model.contains(where: { $0.number == unknown }) { #expect(line.remove(unknown) == nil) }
        }
        #expect(line.count == model.count)
        #expect(line.isEmpty == model.isEmpty)
        #expect(line.first == model.first?.element)
      }
    }
  }
}
