import Foundation
import Larder
import LarderFiles

/// The store of the guide before it passed keys to its codec, told errors of codecs apart and recorded its codec.
///
/// The suite must find each of these faults.
actor FormerGuideStore<Value: Sendable>: DataStore {
  private struct Record: Codable {
    var key: Data
    var value: Data
  }

  nonisolated let information: StoreInformation
  private var path: String
  private let codec: any Codec<Value>
  private let fileSystem: any FileSystem
  private var isOpen = true
  private var lock: FileLock?
  private var opened = OpenedFiles()
  private var records: [StoreKey: [UInt8]] = [:]

  /// Whether the file may contain a failed change that no reader has seen.
  private var isFileInDoubt = false

  // File operations block, so the actor runs on its own thread, not in the cooperative pool.
  private nonisolated let executor = DispatchQueueExecutor(label: "FormerGuideStore")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(
    path: String, codec: some Codec<Value>, access: StoreAccess = .readWrite,
    fileSystem: some FileSystem = POSIXFileSystem()
  ) async throws {
    information = StoreInformation(
      name: "FormerGuideStore", durability: .synced, sharing: .exclusive, access: access, entryLifetime: .untilRemoved,
      identity: StoreIdentity(), readsMayBeCopies: false)
    self.path = path
    self.codec = codec
    self.fileSystem = fileSystem
    try open()
  }

  private func open() throws {
    try reportingFileErrors(during: .open) {
      // All paths to the file share one lock.
      path = try fileSystem.canonicalPath(of: path)
      try takeLock()
      guard let attributes = try fileSystem.attributes(at: path) else { return }
      guard attributes.linkCount == 1 || information.access != .readWrite else {
        throw StoreError(.unsupported, during: .open, store: information.name, message: "\(path) has other hard links")
      }
      let bytes = try fileSystem.open(path, .read).readAll()
      do {
        for record in try JSONDecoder().decode([Record].self, from: Data(bytes)) {
          records[StoreKey(bytes: record.key)] = Array(record.value)
        }
      } catch {
        throw StoreError(
          .corrupted, during: .open, store: information.name, message: "\(path) is damaged", underlying: error)
      }
    }
  }

  /// Takes the lock, exclusively for a writer and shared for readers, which change nothing.
  private func takeLock() throws {
    let lockPath = path + ".lock"
    switch information.access {
    case .readWrite:
      lock = try FileLock.acquire(lockPath, in: fileSystem)
    case .readOnly, .immutable:
      guard try fileSystem.attributes(at: path) != nil else {
        throw StoreError(.notFound, during: .open, store: information.name, message: "there is no file \(path)")
      }
      guard information.access == .readOnly, try fileSystem.attributes(at: lockPath) != nil else { return }
      lock = try FileLock.acquire(lockPath, .shared, in: fileSystem)
    }
    guard let lock else {
      throw StoreError(.locked, during: .open, store: information.name, message: "\(path) is open already")
    }
    opened.note(try lock.identity(), at: lockPath, as: .lock)
    if information.access == .readWrite { try fileSystem.removeStaleTemporaryFiles(of: path) }
  }

  // MARK: Reading

  func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    try checkOpen(for: .value)
    return try decode(key, during: .value)
  }

  func values(forKeys keys: [StoreKey]) throws -> [Value?] {
    try information.check(keys, for: .values)
    try checkOpen(for: .values)
    return try keys.map { try decode($0, during: .values) }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try sortedKeys(in: range, limit: limit, order: order, during: .entries).compactMap { key in
      try decode(key, during: .entries).map { StoreEntry(key: key, value: $0) }
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try sortedKeys(in: range, limit: limit, order: order, during: .keys)
  }

  func count(in range: KeyRange) throws -> Int {
    try sortedKeys(in: range, limit: .max, order: .ascending, during: .count).count
  }

  private func sortedKeys(
    in range: KeyRange, limit: Int, order: ScanOrder, during operation: StoreOperation
  ) throws -> [StoreKey] {
    try checkOpen(for: operation)
    let keys = records.keys.filter(range.contains).sorted()
    return Array((order == .ascending ? keys : keys.reversed()).prefix(limit))
  }

  private func decode(_ key: StoreKey, during operation: StoreOperation) throws -> Value? {
    do {
      return try records[key].map { try codec.decode($0.span.bytes) }
    } catch {
      throw StoreError(
        .corrupted, during: operation, store: information.name, key: key, message: "the value cannot be decoded",
        underlying: error)
    }
  }

  // MARK: Writing

  func apply(_ changes: ChangeBatch<Value>) throws {
    try information.check(changes)
    try checkOpen(for: .apply)
    try Task.checkCancellation()
    var changed = records
    for change in changes.changes {
      switch change {
      case .set(let key, let value): changed[key] = try encode(value, forKey: key, during: .apply)
      case .remove(let key): changed[key] = nil
      case .removeAll(let range): changed = changed.filter { !range.contains($0.key) }
      }
    }
    try write(changed, during: .apply)
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result {
    try information.check(updateOf: keys)
    try checkOpen(for: .update)
    try Task.checkCancellation()
    var slots = UpdateSlots(stored: try keys.map { try decode($0, during: .update) })
    let decision = body(&slots)
    guard decision.isCommit else { return decision.result }
    var changed = records
    for index in slots.assignedIndices {
      changed[keys[index]] = try slots[index].map { try encode($0, forKey: keys[index], during: .update) }
    }
    if changed != records { try write(changed, during: .update) }
    return decision.result
  }

  /// Writes the file before it publishes the change, so that everything a reader sees is durable.
  private func write(_ changed: [StoreKey: [UInt8]], during operation: StoreOperation) throws {
    try reportingFileErrors(during: operation) {
      guard try opened.firstMismatch(in: fileSystem) == nil else {
        throw StoreError(
          .conflict, during: operation, store: information.name, message: "the lock of \(path) was moved or replaced")
      }
      let list = changed.sorted { $0.key < $1.key }.map { Record(key: Data($0.key.bytes), value: Data($0.value)) }
      let bytes = try JSONEncoder().encode(list)
      do {
        try fileSystem.replaceFile(at: path) { try $0.write(bytes) }
      } catch let error as FileError where error.operation == .rename || error.operation == .synchronizeDirectory {
        // It is unknown which of the two files is at the path. The next write or synchronization resolves this.
        isFileInDoubt = true
        throw error
      }
      isFileInDoubt = false
      records = changed
    }
  }

  private func encode(_ value: Value, forKey key: StoreKey, during operation: StoreOperation) throws -> [UInt8] {
    do {
      var bytes: [UInt8] = []
      try codec.encode(value, into: &bytes)
      return bytes
    } catch {
      throw StoreError(
        .encodingFailed, during: operation, store: information.name, key: key, message: "the value cannot be encoded",
        underlying: error)
    }
  }

  // MARK: Lifecycle

  func synchronize() throws {
    try checkOpen(for: .synchronize)
    if isFileInDoubt { try write(records, during: .synchronize) }
  }

  func close() throws {
    defer { (isOpen, lock) = (false, nil) }
    if isOpen, isFileInDoubt { try write(records, during: .close) }
    try reportingFileErrors(during: .close) { try lock?.release() }
  }

  private func checkOpen(for operation: StoreOperation) throws {
    guard isOpen else { throw information.closedError(for: operation) }
  }

  private func reportingFileErrors<Result>(
    during operation: StoreOperation, _ body: () throws -> Result
  ) throws -> Result {
    do {
      return try body()
    } catch let error as FileError {
      throw StoreError(
        error, during: operation, store: information.name, message: "\(path) could not be read or written",
        outcome: isFileInDoubt ? .unknown : .nothingChanged)
    }
  }
}
