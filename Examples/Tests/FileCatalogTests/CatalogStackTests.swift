import ExampleSupport
import Larder
import LarderLMDB
import LarderMetrics
import Testing

@testable import FileCatalog

@Suite("The decorated store of a catalog")
struct CatalogStackTests {
  private func record(size: Int64) -> FileRecord {
    let time = FileTime(seconds: 0, nanoseconds: 0)
    return FileRecord(kind: .file, size: size, mode: 0, modified: time, changed: time)
  }

  @Test func `The meters show what the cache and group commit saved, and continue when the store is opened again`()
    async throws
  {
    let folder = try TemporaryFolder()
    let stack = CatalogStack(registry: StoreRegistry(providers: [LMDBStoreProvider()]))
    let url = "lmdb:\(folder.path)/catalog"
    var store = try await stack.open(url)
    let paths = (0..<50).map { StoreKey("\($0)") }
    try await store.apply(ChangeBatch(paths.map { .set($0, record(size: 7)) }))
    try await store.close()
    store = try await stack.open(url)
    let visitors = Visitors(store: store, paths: paths)
    try await visitors.look(1000, tasks: 4)
    try await visitors.renew(200, tasks: 50)
    #expect(try await store.values(forKeys: paths).allSatisfy { $0?.size == 7 })
    try await store.close()

    let (asked, arrived) = (stack.asked.report(), stack.arrived.report())
    #expect(asked["value"]?.count == 1200)
    #expect((1...600).contains(arrived["value"]?.count ?? 0))
    #expect(asked["apply"]?.count == 201)
    #expect((2..<201).contains(arrived["apply"]?.count ?? 0))
    #expect(asked["close"]?.count == 2 && arrived["close"]?.count == 2)
    let rows = stack.report.description.split(separator: "\n").map { $0.split(separator: " ").first.map(String.init) }
    let sentences = try #require(stack.conclusion).split(separator: "\n")
    #expect(sentences.count == 3)
    #expect(sentences[0].wholeMatch(of: /\d\d % of 1,200 reads came from memory\./) != nil)
    #expect(sentences[1].wholeMatch(of: /201 writes became \d+ commits\./) != nil)
    // These are calls of expiry, which checks some entries with every sixteenth write.
    #expect(rows == ["calls", "value", "values", "apply", "close", "entries"])
  }

  @Test func `There are no visits to an empty catalog`() async throws {
    let stack = CatalogStack(registry: StoreRegistry(providers: [MemoryStoreProvider()]))
    let store = try await stack.open("memory:")
    try await Visitors(store: store, paths: []).look(10, tasks: 2)
    #expect(stack.asked.report().operations.isEmpty)
    #expect(stack.conclusion == nil)
    try await store.close()
  }
}
