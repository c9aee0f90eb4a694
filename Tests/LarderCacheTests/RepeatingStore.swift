import Larder
import Testing

/// A store that runs the body of each update twice, as one may whose first commit had no effect.
struct RepeatingStore: DataStore {
  private struct Repetition: Error {}

  let base: MemoryStore<Int>

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Int? { try base.value(forKey: key) }

  func values(forKeys keys: [StoreKey]) async throws -> [Int?] { try base.values(forKeys: keys) }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    try base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int { try base.count(in: range) }

  func apply(_ changes: ChangeBatch<Int>) async throws { try base.apply(changes) }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Int?]) throws -> Result
  ) async throws -> Result {
    #expect(throws: Repetition.self) {
      try base.update(keys) { slots in
        _ = try body(&slots)
        throw Repetition()
      }
    }
    return try base.update(keys, body)
  }

  func synchronize() async throws { try base.synchronize() }

  func close() async throws { base.close() }
}
