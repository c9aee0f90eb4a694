import Larder
import TestSupport
import Testing

/// Loops over the pages of a store whose keys are in no order, as in a damaged file: each comes to an end.
@Suite(.timeLimit(.minutes(5))) struct DisorderedKeysTests {
  private let store = DisorderedStore<Int>()

  init() throws {
    try store.base.apply(ChangeBatch((0..<3000).map { .set(StoreKey(integer: $0), $0) }))
    store.damage()
  }

  @Test(arguments: ScanOrder.allCases) func `a scan returns what it has read and then throws`(_ order: ScanOrder)
    async throws
  {
    var count = 0
    await expectStoreError(.corrupted) { for try await _ in store.keys(in: .all, order: order) { count += 1 } }
    #expect(count > 0 && count < 3000)
  }

  @Test func `a verification with findings has one more`() async throws {
    var report = VerificationReport(entryCount: 0)
    try await report.addEntries(of: "s") { range, limit in
      try await store.keys(in: range, limit: limit, order: .ascending).map { ($0, "it is damaged") }
    }
    #expect(report.findings.last?.message == "the entries after \(report.entryCount) cannot be read")
    #expect(report.findings.count == report.entryCount + 1)
  }

  @Test func `a verification without findings throws`() async throws {
    await expectStoreError(.corrupted) { try await store.verifyEachEntry() }
  }

  @Test func `pages end`() async throws {
    await expectStoreError(.corrupted) { for try await _ in store.pages(of: .all, size: 100) {} }
  }

  @Test func `a salvage reports the rest as unreadable`() async throws {
    var (count, lost) = (0, [KeyRange]())
    for try await part in store.salvage() {
      switch part {
      case .entries(let entries): count += entries.count
      case .unreadable(let keys, let error):
        #expect(error.code == .corrupted)
        lost.append(keys)
      }
    }
    #expect(count == 1000 && lost.count == 1)
  }

  @Test func `a comparison a copy and a migration end`() async throws {
    await expectStoreError(.corrupted) { try await store.forEachDifference(from: store) { _ in } }
    await expectStoreError(.corrupted) { try await store.copy(to: MemoryStore<Int>()) }
    await expectStoreError(.corrupted) { try await store.migrateAll() }
  }
}
