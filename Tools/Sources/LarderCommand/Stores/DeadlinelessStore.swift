import Larder
import LarderExpiry

/// A store of values that do not expire, without the place for a deadline that the tool opens every store with.
///
/// An `ExpiringStore` would show the same entries, but has to decode values to know which keys there are.
struct DeadlinelessStore<Base: DataStore, Value: Sendable>: DataStore where Base.Value == Expiring<Value> {
  let base: Base

  init(_ base: Base) {
    self.base = base
  }

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Value? {
    try await base.value(forKey: key)?.value
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try await base.values(forKeys: keys).map { $0?.value }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try await base.entries(in: range, limit: limit, order: order).map { StoreEntry(key: $0.key, value: $0.value.value) }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Value>) async throws {
    try await base.apply(
      ChangeBatch(
        changes.changes.map { change in
          switch change {
          case .set(let key, let value): .set(key, Expiring(value))
          case .remove(let key): .remove(key)
          case .removeAll(let range): .removeAll(range)
          }
        }))
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try await base.update(keys) { slots in
      var values = slots.map { $0?.value }
      defer { slots = values.map { $0.map { Expiring($0) } } }
      return try body(&values)
    }
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }
}
