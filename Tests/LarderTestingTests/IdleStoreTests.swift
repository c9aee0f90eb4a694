import Larder
import LarderTesting
import Testing

@Suite struct IdleStoreTests {
  @Test func `every case rejects a store that does nothing`() async throws {
    let suite = ConformanceSuite(named: "idle") { _ in IdleStore(durability: .synced) }
    let report = try await suite.run()
    #expect(report.passed.map(\.description) == [])
    #expect(report.failures.count == suite.cases.count)
  }

  @Test func `every case rejects a volatile store that does nothing`() async throws {
    let suite = ConformanceSuite(named: "idle", lacking: [.persistence, .encoding]) { _ in
      IdleStore(durability: .volatile)
    }
    let report = try await suite.run()
    #expect(report.passed.map(\.description) == [])
  }
}

/// A store that does nothing.
///
/// It accepts every write and holds no entries.
///
/// Every case must reject it.
struct IdleStore: DataStore {
  let information: StoreInformation

  init(durability: Durability) {
    information = StoreInformation(name: "idle", durability: durability, sharing: .exclusive)
  }

  func value(forKey key: StoreKey) -> SampleValue?? { nil }

  func values(forKeys keys: [StoreKey]) -> [SampleValue??] { keys.map { _ in nil } }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreEntry<SampleValue?>] { [] }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreKey] { [] }

  func count(in range: KeyRange) -> Int { 0 }

  func apply(_ changes: ChangeBatch<SampleValue?>) {}

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<SampleValue?>) -> UpdateDecision<Result>
  ) throws -> Result {
    var slots = UpdateSlots(stored: values(forKeys: keys))
    return body(&slots).result
  }

  func synchronize() {}

  func close() {}
}
