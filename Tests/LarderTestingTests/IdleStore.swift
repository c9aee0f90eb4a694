import Larder
import LarderTesting

/// A store that does nothing: it takes everything, and has nothing.
///
/// No case may be content with it.
struct IdleStore: DataStore {
  let information: StoreInformation

  init(acknowledgement: Acknowledgement) {
    information = StoreInformation(name: "idle", acknowledgement: acknowledgement, sharing: .exclusive)
  }

  func value(forKey key: StoreKey) -> SampleValue?? { nil }

  func values(forKeys keys: [StoreKey]) -> [SampleValue??] { keys.map { _ in nil } }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreEntry<SampleValue?>] { [] }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) -> [StoreKey] { [] }

  func count(in range: KeyRange) -> Int { 0 }

  func apply(_ changes: ChangeBatch<SampleValue?>) {}

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [SampleValue??]) throws -> Result
  ) throws -> Result {
    var slots = values(forKeys: keys)
    return try body(&slots)
  }

  func synchronize() {}

  func close() {}
}
