import LarderTesting
import Testing

@testable import LarderBatching

@Suite struct WaitQueueTests {
  @Test func `it behaves like an array`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    for _ in 0..<50 {
      var queue = WaitQueue<Int>()
      var model: [(number: UInt64, element: Int)] = []
      for step in 0..<400 {
        switch Int.random(in: 0..<7, using: &generator) {
        case 0..<4:
          let number = queue.append(step)
          #expect(model.last.map { $0.number < number } ?? true)
          model.append((number, step))
        case 4:
          #expect(queue.removeFirst() == model.first?.element)
          if !model.isEmpty { model.removeFirst() }
        case 5 where !model.isEmpty:
          let entry = model.remove(at: Int.random(in: model.indices, using: &generator))
          #expect(queue.remove(entry.number) == entry.element)
          #expect(queue.remove(entry.number) == nil)
        default:
          let unknown = UInt64.random(in: 0..<UInt64(step + 1), using: &generator)
          if !model.contains(where: { $0.number == unknown }) { #expect(queue.remove(unknown) == nil) }
        }
        #expect(queue.count == model.count)
        #expect(queue.isEmpty == model.isEmpty)
        #expect(queue.first == model.first?.element)
      }
    }
  }
}
