import Larder

/// A store of integers with one rare fault.
final class HistoryMutantStore: DataStore {
  private struct State: Sendable {
    var removed: [StoreKey: Int] = [:]
    var lastWritten: StoreKey?
    var stale: [StoreKey: Int] = [:]
  }

  let information: StoreInformation
  private let base: RecordStore<Int>
  private let fault: HistoryFault?
  private let state = Locked(State())

  init(disk: RecordDisk, fault: HistoryFault?) throws {
    base = try RecordStore(disk: disk)
    self.fault = fault
    information = base.information
  }

  func value(forKey key: StoreKey) async throws -> Int? {
    guard fault == .givesStaleValues else { return try base.value(forKey: key) }
    let value = try base.value(forKey: key)
    await Task.yield()
    return value == nil ? nil : state.withLock { $0.stale.updateValue(value ?? 0, forKey: key) ?? value }
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
    guard fault == .readsOneByOne else { return try base.values(forKeys: keys) }
    var values: [Int?] = []
    for key in keys {
      values.append(try base.value(forKey: key))
      await Task.yield()
    }
    return values
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Int>] {
    if fault == .limitsDescendingScansFirst, order == .descending {
      return try base.entries(in: range, limit: limit, order: .ascending).reversed()
    }
    return try base.entries(in: range, limit: limit, order: order)
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) throws -> Int {
    try base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Int>) async throws {
    var list = changes.changes
    switch fault {
    case .resurrectsAfterRemove:
      for case .remove(let key) in list {
        let value = try base.value(forKey: key)
        state.withLock { $0.removed[key] = value }
      }
    case .losesLastOfLargeBatch where list.count > 3: list.removeLast()
    case .forgetsLastWrite: state.withLock { $0.lastWritten = list.last?.key }
    case .appliesOneByOne:
      for change in list {
        try base.apply([change])
        await Task.yield()
      }
      return
    default: break
    }
    try base.apply(ChangeBatch(list))
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Int>) -> UpdateDecision<Result>
  ) async throws -> Result {
    switch fault {
    case .resurrectsAfterRemove:
      let removed = state.withLock { state in
        defer { state.removed = [:] }
        return state.removed
      }
      let result = try await base.update(deciding: keys, body)
      for (key, value) in removed where !keys.contains(key) { try base.apply([.set(key, value)]) }
      return result
    case .keepsAbandonedUpdates:
      return try await base.update(deciding: keys) { slots in .commit(body(&slots).result) }
    case .updateIsNotAtomic:
      var slots = UpdateSlots(stored: try base.values(forKeys: keys))
      await Task.yield()
      let decision = body(&slots)
      if decision.isCommit { try base.apply(ChangeBatch(slots.changes(of: keys))) }
      return decision.result
    default:
      return try await base.update(deciding: keys, body)
    }
  }

  func synchronize() throws {
    try base.synchronize()
  }

  func close() throws {
    if fault == .forgetsLastWrite, let key = state.withLock({ $0.lastWritten }) { try base.apply([.remove(key)]) }
    base.close()
  }
}

/// A fault of a ``HistoryMutantStore``.
enum HistoryFault: String, CaseIterable, Sendable {
  /// A removed key comes back with the next update.
  case resurrectsAfterRemove
  /// A batch of more than three changes loses its last one.
  case losesLastOfLargeBatch
  /// A descending scan with a limit starts at the wrong end.
  case limitsDescendingScansFirst
  /// The removals of an abandoned update stay.
  case keepsAbandonedUpdates
  /// The last write is lost by closing and opening.
  case forgetsLastWrite
  /// A read of several keys is not a snapshot.
  case readsOneByOne
  /// An update writes some time after its read.
  case updateIsNotAtomic
  /// The changes of a batch take effect one after another.
  case appliesOneByOne
  /// A value that was read is returned again some time later.
  case givesStaleValues

  /// The faults that only concurrent tasks reveal.
  static let concurrent: [HistoryFault] = [.readsOneByOne, .updateIsNotAtomic, .appliesOneByOne, .givesStaleValues]

  /// The faults that a single task reveals.
  static let sequential = allCases.filter { !concurrent.contains($0) }
}
