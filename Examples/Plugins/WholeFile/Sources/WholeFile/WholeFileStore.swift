// snippet.the-store
import Foundation
import Larder
import LarderFiles

/// A store that rewrites its whole file for each change.
public actor WholeFileStore<Value: Sendable>: DataStore {
  /// The content of the file, in JSON, with keys in hexadecimal.
  private struct Content: Codable {
    var codec: String
    var entries: [String: Data]
  }

  public nonisolated let information: StoreInformation
  private let coder: ValueCoder<Value>
  private var files: StoreFileConfiguration
  private var lock: FileLock?
  private var file: (any OpenStoreFile)?
  private var opened = OpenedFiles()
  private var stored = SortedEntries<[UInt8]>()
  private var codecName: String
  private var isOpen = true
  private var isFileInDoubt = false  // whether it may contain a failed change that no reader has seen

  // Calls of the file system block, so the actor has its own thread, outside of the cooperative pool.
  private nonisolated let executor = DispatchQueueExecutor(label: "WholeFileStore")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  public init(
    path: String, codec: some Codec<Value>, access: StoreAccess = .readWrite,
    fileSystem: some StoreFileSystem = POSIXFileSystem()
  ) async throws {
    files = StoreFileConfiguration(
      path: path, durability: .synced, access: access, createsIfMissing: true, fileSystem: fileSystem)
    var information = StoreInformation(
      name: files.name, durability: .synced, sharing: .exclusive, access: access, entryLifetime: .untilRemoved,
      identity: StoreIdentity(), readsMayBeCopies: false)
    information.noteEncryption(by: codec)
    self.information = information
    coder = ValueCoder(codec: codec, store: information.name)
    codecName = codec.name
    try files.reportingFileErrors(during: .open, message: "\(path) could not be read") { try open() }
  }

  private func open() throws {
    (files.path, lock, opened) = try files.takeLock()
    guard let file = try files.openFile(&opened) else { return }
    let content: Content
    do {
      content = try JSONDecoder().decode(Content.self, from: Data(file.readAll()))
    } catch let error as DecodingError {
      throw files.error(.corrupted, during: .open, "\(files.path) is damaged", underlying: error)
    }
    codecName = try coder.codecRecord.name(replacing: content.codec, during: .open, store: information.name)
    for (text, value) in content.entries {
      guard let key = StoreKey(hexadecimal: text), 1...StoreKey.maximumLength ~= key.count else {
        throw files.error(.corrupted, during: .open, "\(files.path) has a damaged key")
      }
      _ = stored.setValue(Array(value), forKey: key)
    }
    self.file = file
  }

  public func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    try checkOpen(for: .value)
    return try stored[key].map { try coder.value(of: $0, forKey: key, during: .value) }
  }

  public func values(forKeys keys: [StoreKey]) throws -> [Value?] {
    try information.check(keys, for: .values)
    try checkOpen(for: .values)
    return try keys.map { key in try stored[key].map { try coder.value(of: $0, forKey: key, during: .values) } }
  }

  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    try checkOpen(for: .entries)
    return try stored.entries(in: range, limit: limit, order: order).map { entry in
      StoreEntry(key: entry.key, value: try coder.value(of: entry.value, forKey: entry.key, during: .entries))
    }
  }

  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    try checkOpen(for: .keys)
    return stored.keys(in: range, limit: limit, order: order)
  }

  public func count(in range: KeyRange) throws -> Int {
    try checkOpen(for: .count)
    return stored.count(in: range)
  }

  public func apply(_ changes: ChangeBatch<Value>) throws {
    try information.check(changes)
    try checkOpen(for: .apply)
    try Task.checkCancellation()
    var (changed, displaced) = (stored, [[UInt8]]())
    for change in changes.changes {
      changed.apply(try change.mapValue { try coder.bytes(of: $1, forKey: $0, during: .apply) }, displacing: &displaced)
    }
    if !changes.isEmpty { try write(changed, during: .apply) }
  }

  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) throws -> Result {
    try information.check(updateOf: keys)
    try checkOpen(for: .update)
    try Task.checkCancellation()
    let (decision, _, changes) = try coder.update(keys, stored: keys.map { stored[$0]?[...] }, deciding: body)
    var (changed, displaced) = (stored, [[UInt8]]())
    for (key, bytes) in changes {
      changed.apply(bytes.map { .set(key, Array($0)) } ?? .remove(key), displacing: &displaced)
    }
    if !changes.isEmpty { try write(changed, during: .update) }
    return decision.result
  }

  /// Writes the file before it publishes the change, so everything a reader sees is durable.
  private func write(_ changed: SortedEntries<[UInt8]>, during operation: StoreOperation) throws {
    var content = Content(codec: codecName, entries: [:])
    changed.forEach { content.entries[$0.hexadecimal] = Data($1) }
    let bytes = try JSONEncoder().encode(content)
    do {
      file = try files.replaceFile(&opened, during: operation) { try $0.write(bytes) }
    } catch let error as StoreError where error.outcome == .unknown {
      isFileInDoubt = true  // Either file may be at the path, until the next write or synchronization.
      throw error
    }
    (isFileInDoubt, stored) = (false, changed)
  }

  public func synchronize() throws {
    try checkOpen(for: .synchronize)
    if isFileInDoubt { try write(stored, during: .synchronize) }
  }

  public func close() throws {
    defer { (isOpen, lock, file) = (false, nil, nil) }
    if isOpen, isFileInDoubt { try write(stored, during: .close) }
    try files.reportingFileErrors(during: .close, message: "\(files.path) is still locked") { try lock?.release() }
  }

  private func checkOpen(for operation: StoreOperation) throws {
    guard isOpen else { throw information.closedError(for: operation) }
  }
}
// snippet.end
