import Larder
import LarderExpiry

/// A store in memory that ignores some changes, which a test must notice.
struct ForgetfulStore: DataStore {
  typealias Value = Expiring<[UInt8]>

  /// The changes that it ignores: `set` or `removeAll`.
  let forgotten: String

  private let base = MemoryStore<Value>()
  var information: StoreInformation { base.information }

  init(forgets forgotten: String) {
    self.forgotten = forgotten
  }

  func value(forKey key: StoreKey) throws -> Value? { try base.value(forKey: key) }
  func values(forKeys keys: [StoreKey]) throws -> [Value?] { try base.values(forKeys: keys) }
  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try base.entries(in: range, limit: limit, order: order)
  }
  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }
  func count(in range: KeyRange) throws -> Int { try base.count(in: range) }
  func apply(_ changes: ChangeBatch<Value>) throws {
    let kept = changes.changes.filter { change in
      switch change {
      case .set: forgotten != "set"
      case .removeAll: forgotten != "removeAll"
      case .remove: true
      }
    }
    try base.apply(ChangeBatch(kept))
  }
  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result { try base.update(deciding: keys, body) }
  func synchronize() throws { try base.synchronize() }
  func close() { base.close() }
}
