import Larder
import TestSupport
import Testing

/// The verification of stores that have none of their own.
@Suite struct EntryByEntryVerificationTests {
  /// A store in which some values cannot be decoded, and which has no verification of its own.
  private struct DamagedStore: DataStore {
    let base = MemoryStore<Int>()
    let damaged: Set<StoreKey>
    var information: StoreInformation { base.information }

    func value(forKey key: StoreKey) throws -> Int? {
      guard !damaged.contains(key) else {
        throw StoreError(.corrupted, during: .value, store: "x", key: key, message: "the value cannot be decoded")
      }
      return try base.value(forKey: key)
    }
    func values(forKeys keys: [StoreKey]) throws -> [Int?] { try keys.map { try value(forKey: $0) } }
    func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Int>] {
      try base.entries(in: range, limit: limit, order: order)
    }
    func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
      try base.keys(in: range, limit: limit, order: order)
    }
    func count(in range: KeyRange) throws -> Int { try base.count(in: range) }
    func apply(_ changes: ChangeBatch<Int>) throws { try base.apply(changes) }
    func update<Result: Sendable>(
      deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
    ) throws -> Result { try base.update(deciding: keys, body) }
    func synchronize() throws { try base.synchronize() }
    func close() { base.close() }
  }

  @Test func `one damaged entry hides no other`() async throws {
    let store = DamagedStore(damaged: ["k003", "k007"])
    for index in 0..<10 { try store.apply([.set("k00\(index)", index)]) }
    let report = try await AnyDataStore(store).verify()
    #expect(report.entryCount == 10)
    #expect(report.findings.map(\.key) == ["k003", "k007"])
    #expect(report.findings.first?.message == "the value cannot be decoded")
  }

  @Test func `a store that cannot be read is a failure`() async throws {
    let store = DamagedStore(damaged: [])
    store.close()
    await expectStoreError(.closed) { try await AnyDataStore(store).verify() }
  }
}
