import Larder
import Synchronization
import TestSupport

/// A store in memory with every ability, which notes what is asked of it.
final class AbleStore: ForwardingDecorator {
  typealias Value = Int

  let base = MemoryStore<Int>(name: "able")
  private let notes = Mutex<[String]>([])

  /// What was asked for, in order.
  var calls: [String] { notes.withLock { $0 } }

  private func note(_ call: String) { notes.withLock { $0.append(call) } }

  var information: StoreInformation {
    var information = base.information
    information.acknowledgement = .durable
    information.maintenance = NotedMaintenance { self.note($0) }
    return information
  }
  func apply(_ changes: ChangeBatch<Int>) throws {
    note("apply \(changes.count)")
    try base.apply(changes)
  }
  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Int?]) throws -> Result
  ) throws -> Result {
    note("update")
    return try base.update(keys, body)
  }
  func synchronize() throws {
    note("synchronize")
    try base.synchronize()
  }
  func close() {
    note("close")
    base.close()
  }
}

extension AbleStore: ExpirableStore {
  func touch(_ key: StoreKey, lifetime: Lifetime?) throws -> Bool {
    note("touch \(key.string ?? "")")
    return try base.value(forKey: key) != nil
  }
  func remainingTime(forKey key: StoreKey) throws -> Lifetime? {
    note("remainingTime \(key.string ?? "")")
    return try base.value(forKey: key).map { .limited(.seconds($0)) }
  }
  func purgeExpired(limit: Int) -> Int {
    note("purgeExpired \(limit)")
    return 3
  }
}

extension AbleStore: InvalidatableStore {
  func invalidate(_ key: StoreKey) { note("invalidate \(key.string ?? "")") }
  func invalidateAll() { note("invalidateAll") }
}

extension AbleStore: FlushableStore {
  func flush() { note("flush") }
}
