import Larder
import LarderTesting
import Testing

@testable import LarderBatching

@Suite struct PendingChangesTests {
  private static let keys: [StoreKey] = ["a", "b", "c", "d", "e", "f", "g", "h"]

  @Test func theLastChangeToEachKeyIsKeptAndBatchesStayWhole() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess)
    let bounds = BatchBounds<Int>(bytes: 1000) { $0 }
    for _ in 0..<200 {
      var pending = PendingChanges<Int>()
      var model: [StoreKey: Int?] = [:]
      var sets: [Set<StoreKey>] = []
      for value in 0..<Int.random(in: 0..<12, using: &generator) {
        let keys = PendingChangesTests.keys.shuffled(using: &generator).prefix(Int.random(in: 1...3, using: &generator))
        let batch = ChangeBatch(keys.map { Bool.random(using: &generator) ? .set($0, value) : .remove($0) })
        let displaced = pending.add(SizedBatch(batch, bounds: bounds))
        #expect(displaced.count == keys.count { model[$0] != nil })
        for change in batch.changes {
          switch change {
          case .set(let key, let value): model[key] = .some(value)
          case .remove(let key): model[key] = .some(nil)
          case .removeAll: break
          }
        }
        // What has a key in common becomes one.
        let touching = sets.filter { !$0.isDisjoint(with: keys) }
        sets.removeAll { !$0.isDisjoint(with: keys) }
        sets.append(touching.reduce(Set(keys)) { $0.union($1) })
      }
      let units = pending.changesByUnit()
      #expect(Set(units.map { Set($0.compactMap(\.key)) }) == Set(sets))
      var found: [StoreKey: Int?] = [:]
      for case .set(let key, let value) in units.joined() { found[key] = .some(value) }
      for case .remove(let key) in units.joined() { found[key] = .some(nil) }
      #expect(found == model)
      #expect(pending.size.changes == model.count)
      #expect(pending.size.bytes == model.reduce(0) { $0 + 1 + ($1.value ?? 0) })
      #expect(pending.isEmpty == model.isEmpty)
      for order in ScanOrder.allCases {
        var keys: [StoreKey] = []
        pending.forEach(in: "b"..<"f", order: order) { key, _ in keys.append(key) }
        let expected = model.keys.filter { ("b"..<"f").contains($0) }.sorted()
        #expect(keys == (order == .ascending ? expected : expected.reversed()))
        #expect(pending.count(in: "b"..<"f") == expected.count)
      }
    }
  }

  @Test func writingOneKeyAgainAndAgainTakesNoRoom() {
    var pending = PendingChanges<Int>()
    for value in 0..<1000 {
      _ = pending.add(SizedBatch([.set("a", value)], bounds: BatchBounds()))
    }
    #expect(pending.size.changes == 1)
    #expect(pending.changesByUnit() == [[.set("a", 999)]])
  }

  @Test func emptyBatchesTakeNoRoom() throws {
    var pending = PendingChanges<Int>()
    for _ in 0..<1000 { _ = pending.add(SizedBatch([], bounds: BatchBounds())) }
    #expect(pending.isEmpty)
    let units = try #require(Mirror(reflecting: pending).descendant("units") as? [Int])
    #expect(units.isEmpty)
  }
}
