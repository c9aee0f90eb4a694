import Larder
import TestSupport

/// A store in front of another in which the values of some keys cannot be read.
final class DamagedStore: ForwardingDecorator {
  typealias Value = Int

  /// Tells which keys cannot be read.
  private struct LostKeys: UnreadableKeysError, CustomStringConvertible {
    let keys: KeyRange
    var description: String { "some keys cannot be read" }
  }

  let base: MemoryStore<Int>
  private let damage: KeyRange
  private let namesKey: Bool

  /// Makes the store.
  ///
  /// - Parameters:
  ///   - base: The store that has the values.
  ///   - first: The first key that cannot be read.
  ///   - end: The first one behind those.
  ///   - namesKey: Whether an error names the key; it tells the range where it does not.
  init(_ base: MemoryStore<Int>, from first: StoreKey, to end: StoreKey, namesKey: Bool = true) {
    self.base = base
    damage = KeyRange(from: first, upTo: end)
    self.namesKey = namesKey
  }

  private func check(_ keys: [StoreKey], for operation: StoreOperation) throws {
    guard let key = keys.first(where: damage.contains) else { return }
    throw StoreError(
      .corrupted, during: operation, key: namesKey ? key : nil, message: "the value cannot be read",
      underlying: namesKey ? nil : LostKeys(keys: damage))
  }

  func value(forKey key: StoreKey) async throws -> Int? {
    try check([key], for: .value)
    return try base.value(forKey: key)
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
    try check(keys, for: .values)
    return try base.values(forKeys: keys)
  }
}
