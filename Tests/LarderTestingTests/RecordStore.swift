import Larder

/// A store that encodes its values and keeps them after closing, as simply as possible.
///
/// Tests of the suite use it.
final class RecordStore<Value: Codable & Sendable>: DataStore {
  var information: StoreInformation {
    StoreInformation(name: "records", durability: .buffered, sharing: .exclusive, access: access)
  }

  private let disk: RecordDisk
  private let onCompaction: @Sendable () -> Void
  private let access: StoreAccess
  private let codec = JSONCodec<Value>()
  /// True until the store is open, because an initializer that throws leaves nothing to release.
  private let isClosed = Locked(true)

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - disk: The stored data.
  ///   - access: The access of the store to its data.
  ///   - isExclusive: A Boolean value that indicates whether opening a second store of the same disk fails, as it must.
  ///     Defaults to `true`.
  ///   - onCompaction: A closure that every compaction calls. Defaults to one that does nothing.
  init(
    disk: RecordDisk, access: StoreAccess = .readWrite, isExclusive: Bool = true,
    onCompaction: @escaping @Sendable () -> Void = {}
  ) throws {
    self.disk = disk
    self.onCompaction = onCompaction
    self.access = access
    try disk.state.withLock { state in
      let isRefused = state.hasWriter || (access == .readWrite && state.readers > 0)
      guard !isRefused || !isExclusive else {
        throw StoreError(.locked, during: .open, store: "records", message: "it is open already")
      }
      guard access == .readWrite || state.openings > 0 else {
        throw StoreError(.notFound, during: .open, store: "records", message: "it does not exist")
      }
      if access == .readWrite { state.hasWriter = true } else { state.readers += 1 }
      state.openings += 1
    }
    isClosed.withLock { $0 = false }
  }

  deinit {
    release()
  }

  func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    return try read(for: .value) { try decode($0[key], forKey: key, for: .value) }
  }

  func values(forKeys keys: [StoreKey]) throws -> [Value?] {
    try information.check(keys, for: .values)
    return try read(for: .values) { records in
      try keys.map { try decode(records[$0], forKey: $0, for: .values) }
    }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try read(for: .entries) { records in
      try records.entries(in: range, limit: limit, order: order).compactMap { entry in
        try decode(entry.value, forKey: entry.key, for: .entries).map { StoreEntry(key: entry.key, value: $0) }
      }
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try read(for: .keys) { $0.keys(in: range, limit: limit, order: order) }
  }

  func count(in range: KeyRange) throws -> Int {
    try read(for: .count) { $0.count(in: range) }
  }

  func apply(_ changes: ChangeBatch<Value>) throws {
    try information.check(changes)
    let encoded = try changes.changes.map { change -> BatchChange<[UInt8]> in
      switch change {
      case .set(let key, let value): .set(key, try encode(value, forKey: key, for: .apply))
      case .remove(let key): .remove(key)
      case .removeAll(let range): .removeAll(range)
      }
    }
    try write(for: .apply) { records in
      try Task.checkCancellation()
      var displaced: [[UInt8]] = []
      for change in encoded { records.apply(change, displacing: &displaced) }
    }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result {
    try information.check(updateOf: keys)
    return try write(for: .update) { records in
      try Task.checkCancellation()
      var slots = UpdateSlots(stored: try keys.map { try decode(records[$0], forKey: $0, for: .update) })
      let decision = body(&slots)
      guard decision.isCommit else { return decision.result }
      let changes = try slots.changes(of: keys).map { change in
        try change.mapValue { key, value in try encode(value, forKey: key, for: .update) }
      }
      var displaced: [[UInt8]] = []
      for change in changes { records.apply(change, displacing: &displaced) }
      return decision.result
    }
  }

  func synchronize() throws {
    try read(for: .synchronize) { _ in }
  }

  func close() {
    release()
  }

  private func release() {
    disk.state.withLock { state in
      isClosed.withLock { isClosed in
        if !isClosed {
          if access == .readWrite { state.hasWriter = false } else { state.readers -= 1 }
        }
        isClosed = true
      }
    }
  }

  private func read<Result>(
    for operation: StoreOperation, _ body: (SortedEntries<[UInt8]>) throws -> sending Result
  ) throws -> Result {
    try write(for: operation) { try body($0) }
  }

  private func write<Result>(
    for operation: StoreOperation, _ body: (inout SortedEntries<[UInt8]>) throws -> sending Result
  ) throws -> Result {
    try disk.state.withLock { state in
      guard !isClosed.withLock({ $0 }) else { throw information.closedError(for: operation) }
      return try body(&state.records)
    }
  }

  private func encode(_ value: Value, forKey key: StoreKey, for operation: StoreOperation) throws -> [UInt8] {
    var record: [UInt8] = []
    do {
      try codec.encode(value, into: &record)
    } catch {
      throw StoreError(
        .encodingFailed, during: operation, store: information.name, key: key, message: "it cannot be encoded",
        underlying: error)
    }
    return record
  }

  private func decode(_ record: [UInt8]?, forKey key: StoreKey, for operation: StoreOperation) throws -> Value? {
    guard let record else { return nil }
    do {
      return try codec.decode(record.span.bytes)
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: information.name, key: key, message: "it cannot be decoded",
        underlying: error)
    }
  }
}

/// The store has nothing to compact, and makes no backups.
extension RecordStore: MaintainableStore {
  func storeStatistics() throws -> StoreStatistics {
    StoreStatistics(entryCount: try count(in: .all), bytesOnDisk: nil)
  }

  func verify() throws -> VerificationReport {
    let keys = try keys(in: .all, limit: .max, order: .ascending)
    var report = VerificationReport(entryCount: keys.count)
    for key in keys {
      do {
        _ = try value(forKey: key)
      } catch let error as StoreError where error.code == .corrupted {
        report.findings.append(VerificationReport.Finding(key: key, place: "records", message: error.message))
      }
    }
    return report
  }

  func compact() throws {
    onCompaction()
    try synchronize()
  }

  func backup(to path: String, compacting: Bool) throws {
    try synchronize()
    throw StoreError(.unsupported, during: .backup, message: "backups are not supported")
  }
}

/// The data that a ``RecordStore`` keeps between closing and opening: encoded values in memory, and whether a store is
/// open.
final class RecordDisk: Sendable {
  struct State: Sendable {
    var records = SortedEntries<[UInt8]>()
    var hasWriter = false
    var readers = 0
    /// The number of times it was opened.
    var openings = 0
  }

  let state = Locked(State())
}
