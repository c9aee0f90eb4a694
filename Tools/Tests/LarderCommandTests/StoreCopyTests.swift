import Larder
import Synchronization
import Testing

@testable import LarderCommand

@Suite struct StoreCopyTests {
  private let source = WatchedStore()
  private let destination = WatchedStore()

  private func fill(_ store: WatchedStore, _ numbers: some Sequence<Int>, value: String = "") throws {
    try store.apply(ChangeBatch(numbers.map { .set(StoreKey(integer: Int64($0)), JSONText(string: "\($0)\(value)")) }))
    store.notes.withLock { $0 = WatchedStore.Notes() }
  }

  private func entries(_ store: WatchedStore) throws -> [StoreEntry<JSONText>] {
    try store.entries(in: .all, limit: .max, order: .ascending)
  }

  @Test(arguments: [1, 2, 99, 100, 101, 1000])
  func itCopiesPageByPage(pageSize: Int) async throws {
    try fill(source, 0..<100)
    var copy = StoreCopy(pageSize: pageSize)
    var visited: [Int] = []
    try await copy.run(from: source, to: destination, pageWasCopied: { visited.append($0.visited) }) { $0 }
    #expect(visited == stride(from: 0, to: 100, by: pageSize).map { min(100, $0 + pageSize) })
    #expect(copy.copied == 100)
    #expect(copy.equal == 0)
    // One entry more than a page shows whether another page follows.
    #expect(source.notes.withLock { $0.largestCall } <= pageSize + 1)
    #expect(destination.notes.withLock { $0.largestCall } <= pageSize)
    #expect(try entries(destination) == entries(source))
  }

  @Test func onlyDifferentValuesAreWritten() async throws {
    try fill(source, 0..<20)
    try fill(destination, [0, 1, 2, 5])
    try fill(destination, [3, 100], value: "other")
    var copy = StoreCopy(pageSize: 3)
    try await copy.run(from: source, to: destination) { $0 }
    #expect(copy.copied == 16)
    #expect(copy.equal == 4)
    // All entries of the first page were equal.
    #expect(destination.notes.withLock { $0.batches } == 6)
    #expect(try destination.value(forKey: StoreKey(integer: 100)) == JSONText(string: "100other"))
    #expect(try destination.entries(in: .all, limit: 20, order: .ascending) == entries(source))
  }

  @Test func anInterruptedCopyContinues() async throws {
    try fill(source, 0..<100)
    destination.notes.withLock { $0.mostBatches = 4 }
    var copy = StoreCopy(pageSize: 10)
    await #expect(throws: StoreError.self) { try await copy.run(from: source, to: destination) { $0 } }
    #expect(copy.visited == 40)
    destination.notes.withLock { $0.mostBatches = .max }
    copy = StoreCopy(pageSize: 10)
    try await copy.run(from: source, to: destination) { $0 }
    #expect(copy.copied == 60)
    #expect(copy.equal == 40)
    #expect(try entries(destination) == entries(source))
  }

  @Test func theSummaryCountsBoth() async throws {
    try fill(source, 0..<3)
    try fill(destination, [1])
    var copy = StoreCopy(pageSize: 10)
    #expect(copy.summary(elapsed: .zero) == "copied 0 entries in 0.0 s, 0 were already equal")
    try await copy.run(from: source, to: destination) { $0 }
    #expect(copy.summary(elapsed: .milliseconds(1990)) == "copied 2 entries in 1.9 s, 1 was already equal")
  }
}
