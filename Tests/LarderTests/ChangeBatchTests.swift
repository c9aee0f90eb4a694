import Larder
import Testing

@Suite struct ChangeBatchTests {
  @Test func `keeps its changes in sequence`() {
    var batch = ChangeBatch<Int>()
    #expect(batch.isEmpty)
    batch.reserveCapacity(10)
    batch.setValue(1, forKey: "a")
    batch.removeValue(forKey: "a")
    batch.removeAll(in: "a"..<"b")
    batch.removeAll()
    batch.append(.set("a", 2))
    #expect(batch.changes == [.set("a", 1), .remove("a"), .removeAll("a"..<"b"), .removeAll(.all), .set("a", 2)])
    #expect(batch.count == 5)
    #expect(!batch.isEmpty)
    #expect(batch == ChangeBatch(batch.changes))
    #expect(batch == [.set("a", 1), .remove("a"), .removeAll("a"..<"b"), .removeAll(.all), .set("a", 2)])
    #expect(batch != [.set("a", 1)])
  }

  @Test func `is a value`() {
    var batch: ChangeBatch<Int> = [.set("a", 1)]
    let copy = batch
    batch.removeAll()
    #expect(copy.changes == [.set("a", 1)])
  }

  @Test func `a change names its key`() {
    #expect(BatchChange.set("a", 1).key == "a")
    #expect(BatchChange<Int>.remove("b").key == "b")
    #expect(BatchChange<Int>.removeAll(.only("c")).key == nil)
  }
}
