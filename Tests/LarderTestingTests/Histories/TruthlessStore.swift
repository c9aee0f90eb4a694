import Larder

/// A decorator that says of every failed write that nothing was changed.
struct TruthlessStore<Base: DataStore>: DataStore {
  let base: Base

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Base.Value? {
    try await base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Base.Value?] {
    try await base.values(forKeys: keys)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Base.Value>] {
    try await base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Base.Value>) async throws {
    try await lying(during: .apply) { try await base.apply(changes) }
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Base.Value?]) throws -> Result
  ) async throws -> Result {
    try await lying(during: .update) { try await base.update(keys, body) }
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }

  private func lying<Result>(
    during operation: StoreOperation, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let error as StoreError {
      throw StoreError(error.code, during: operation, store: error.store, message: error.message)
    }
  }
}
