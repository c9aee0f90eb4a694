import Larder
import LarderTesting
import Testing

@testable import LarderBatching

@Suite struct PendingChangesTests {
  private static let keys: [StoreKey] = ["a", "b", "c", "d", "e", "f", "g", "h"]

  @Test func `the last change to each key is seen and every batch is kept`() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    let bounds = BatchBounds<Int>(bytes: 1000) { $0 }
    for _ in 0..<200 {
      var pending = PendingChanges<Int>()
      var model: [StoreKey: Int?] = [:]
      var batches: [ChangeBatch<Int>] = []
      for value in 0..<Int.random(in: 0..<12, using: &generator) {
        let keys = PendingChangesTests.keys.shuffled(using: &generator).prefix(Int.random(in: 1...3, using: &generator))
        let batch = ChangeBatch(keys.map { Bool.random(using: &generator) ? .set($0, value) : .remove($0) })
        pending.add(SizedBatch(batch, bounds: bounds))
        batches.append(batch)
        for change in batch.changes {
          switch change {
          case .set(let key, let value): model[key] = .some(value)
          case .remove(let key): model[key] = .some(nil)
          case .removeAll: break
          }
        }
      }
      #expect(pending.batches.map(\.batch) == batches)
      #expect(pending.size == batches.reduce(into: BatchSize()) { $0 += bounds.size(of: $1) })
      #expect(pending.isEmpty == model.isEmpty)
      var found: [StoreKey: Int?] = [:]
      pending.contents.forEach { found[$0] = .some($1.value) }
      #expect(found == model)
      let joined = PendingChanges.joined(pending.batches[...])
      #expect(batches.count == 1 || Set(joined.changes.compactMap(\.key)).count == joined.count)
      var written: [StoreKey: Int?] = [:]
      for case .set(let key, let value) in joined.changes { written[key] = .some(value) }
      for case .remove(let key) in joined.changes { written[key] = .some(nil) }
      #expect(written == model)
    }
  }

  @Test func `the rest of a batch is as old as the batch`() {
    var batch = SizedBatch([.set("a", 1), .remove("b")], bounds: BatchBounds<Int>())
    batch.acceptedAt = .seconds(3)
    let rest = batch.without(["a"], bounds: BatchBounds())
    #expect(rest.batch == [.remove("b")] && rest.size.changes == 1 && rest.acceptedAt == .seconds(3))
  }

  @Test func `empty batches take no room`() {
    var pending = PendingChanges<Int>()
    for _ in 0..<1000 { pending.add(SizedBatch([], bounds: BatchBounds())) }
    #expect(pending.isEmpty)
    #expect(pending.batches.isEmpty)
  }
}
