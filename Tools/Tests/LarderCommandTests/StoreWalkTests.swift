import Larder
import Testing

@testable import LarderCommand

@Suite struct StoreWalkTests {
  private func store(_ count: Int) throws -> MemoryStore<JSONText> {
    let store = MemoryStore<JSONText>()
    try store.apply(ChangeBatch((0..<count).map { .set(StoreKey(integer: Int64($0)), JSONText(string: "\($0)")) }))
    return store
  }

  private func keys(_ walk: inout StoreWalk, _ store: MemoryStore<JSONText>) async throws -> [Int64?] {
    var keys: [Int64?] = []
    let order = walk.order
    try await walk.run(key: \.self) { range, limit in
      try store.keys(in: range, limit: limit, order: order)
    } visit: {
      keys.append($0.integer)
    }
    return keys
  }

  @Test(arguments: [0, 1, 255, 256, 257, 512, 513, 1000])
  func itVisitsTheWholeRange(count: Int) async throws {
    let store = try store(count)
    for order in ScanOrder.allCases {
      var walk = try StoreWalk(.all, order: order)
      let expected = (0..<Int64(count)).map { $0 as Int64? }
      #expect(try await keys(&walk, store) == (order == .ascending ? expected : expected.reversed()))
      #expect(walk.next == nil)
    }
  }

  @Test(arguments: [1, 100, 256, 257, 600])
  func theCursorContinuesAfterALimit(limit: Int) async throws {
    let store = try store(600)
    for order in ScanOrder.allCases {
      var all: [Int64?] = []
      var cursor: PageCursor?
      var rounds = 0
      repeat {
        var walk = try StoreWalk(.all, order: order, after: cursor, limit: limit)
        all += try await keys(&walk, store)
        cursor = walk.next
        rounds += 1
      } while cursor != nil
      #expect(all.count == 600)
      #expect(Set(all).count == 600)
      // A list that ends exactly at the limit has no cursor.
      #expect(rounds == (600 + limit - 1) / limit)
    }
  }

  @Test func aLimitOfZeroPrintsNothing() async throws {
    var walk = try StoreWalk(.all, limit: 0)
    #expect(try await keys(&walk, store(3)).isEmpty)
    #expect(walk.next == nil)
  }

  @Test func aCursorOfTheOtherDirectionIsRefused() throws {
    #expect(throws: (any Error).self) {
      try StoreWalk(.all, order: .descending, after: PageCursor(after: "a", order: .ascending))
    }
  }
}
