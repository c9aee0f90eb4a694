import Larder
import LarderJSON
import LarderTesting
import Testing

/// Walks and pages over a store with one undecodable entry.
@Suite struct DamagedWalkTests {
  private func store(damagedAt damaged: Int, of count: Int) async throws -> JSONFileStore<Int> {
    let disk = SimulatedFileSystem(seed: 1)
    let entries = (0..<count).map { "\"\($0 + 1_000)\":\($0 == damaged ? "null" : "\($0)")" }.joined(separator: ",")
    try disk.place(Array("{\"larder\":2,\"entries\":{\(entries)}}".utf8), at: "/s.json")
    return try await JSONFileStore(path: "/s.json", codec: .json(), fileSystem: disk)
  }

  @Test(arguments: [(0, 3), (2, 3), (199, 200), (256, 300), (300, 600)], ScanOrder.allCases)
  func `a walk returns every entry before the damaged one`(_ place: (damaged: Int, count: Int), _ order: ScanOrder)
    async throws
  {
    let store = try await store(damagedAt: place.damaged, of: place.count)
    let all = order == .ascending ? Array(0..<place.count) : (0..<place.count).reversed()
    var seen: [Int] = []
    do {
      for try await entry in store.entries(order: order) { seen.append(entry.value) }
      Issue.record("the damage was not reported")
    } catch let error as StoreError {
      #expect(error.code == .undecodable && error.key == StoreKey("\(place.damaged + 1_000)"))
    }
    #expect(seen == Array(all.prefix { $0 != place.damaged }))
  }

  @Test func `a page before the damaged entry succeeds`() async throws {
    let store = try await store(damagedAt: 4, of: 6)
    let page = try await store.pages(size: 4).page()
    #expect(page.entries.map(\.value) == [0, 1, 2, 3])
    let next = try #require(page.next)
    await #expect(throws: StoreError.self) { try await store.pages(size: 1).page(after: next) }
    let behind = try await store.pages(size: 4).page(after: PageCursor(after: "1004"))
    #expect(behind.entries.map(\.value) == [5])
  }
}
