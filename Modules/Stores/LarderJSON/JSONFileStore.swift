public import Larder
public import LarderFiles

/// A store in one readable file: a JSON document that `jq` can read and you can edit.
///
/// ```swift
/// let store = try await JSONFileStore<User>(path: "users.json")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try store.value(forKey: "user:1")
/// try await store.close()
/// ```
///
/// At rest, the file is `{"larder":2,"generation":1,"entries":{…},"written":{…}}`, with one entry per line and the keys
/// in order. A write does not rewrite the file. It appends a line to a journal beside it, `users.json.journal`. The
/// journal is folded into the document on ``close()`` and when it has grown large. <doc:JSONFileFormat> describes the
/// full format.
///
/// All entries are held in memory as text. A read decodes its value on the caller's executor; many or large values are
/// decoded on the cooperative pool (see "Threads and actors" in the documentation of `Larder`). Reads never wait for
/// the disk. Writes run one after another on a thread that belongs to the store.
///
/// ## Editing by hand
///
/// Edit the document only while the store is closed and there is no journal beside it. A crash leaves a journal;
/// opening and closing the store once folds it. If the document was edited while there was a journal, the journal wins
/// for the keys that it names, because its changes were acknowledged. A document that is not JSON or has a duplicate
/// key is refused, with line and column, and left unchanged. So is a document whose bytes changed without an edit:
/// Larder stores checksums in the member `written`. You may leave it unchanged or delete it.
///
/// ## Reading only
///
/// With `StoreAccess.readOnly`, the store leaves every file unchanged, works on a read-only mount, and also opens a
/// damaged document. It returns the entries that can be read, and throws `corrupted` for entries that damage hides.
///
/// ## Keys
///
/// A key that is not UTF-8 is written as `keyBytes:` followed by its bytes in hexadecimal. So is a key that begins with
/// `keyBytes:`.
///
/// ## Sharing
///
/// Only one object in one process can have the file open, guarded by a lock on `users.json.lock`. Symbolic links are
/// resolved first. A file with several hard links is refused.
public final class JSONFileStore<Value: Sendable>: DataStore {
  /// The name and the durability of the store.
  public let information: StoreInformation

  private let contents: SharedContent<JSONEntries>
  private let writer: FileWriter<JSONFile>
  private let coder: JSONValueCoder<Value>

  /// The name of the codec, which a write records if the document has one that the codec adopts.
  private let codecName: String

  /// Opens a store.
  ///
  /// ```swift
  /// let notes = try await JSONFileStore(path: folder + "/notes.json", codec: .json(Note.self), durability: .buffered)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the document, whose folder must exist. A new file has permissions 0600; an existing file
  ///     keeps its permissions.
  ///   - codec: The codec of the values. Values are stored as base64 strings if its output is not
  ///     JSON.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its files. Defaults to `StoreAccess.readWrite`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the document if it is missing. Defaults to
  ///     `true`. A read-only store never creates it.
  ///   - fileSystem: The file system. Defaults to the real one.
  /// - Throws: `StoreError`: `locked` if another store has the file open; `corrupted`, with line and column, if the
  ///   document or its journal is damaged, or if they do not belong together; `unrecognizedFormat` if the file is not a
  ///   store; `versionMismatch` if it was written by another version or with a different codec; `notFound`;
  ///   `unsupported` if it has several hard links, is a mount point, or is larger than 4 GiB; `notPermitted`; `full`;
  ///   `ioFailed`. The files are left unchanged.
  public convenience init(
    path: String, codec: some Codec<Value>, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, fileSystem: some StoreFileSystem = POSIXFileSystem()
  ) async throws {
    try await self.init(
      StoreFileConfiguration(
        path: path, durability: durability, access: access, createsIfMissing: createsIfMissing, fileSystem: fileSystem),
      codec: codec)
  }

  convenience init(
    _ configuration: StoreFileConfiguration, sizeLimit: Int64 = JSONFile.maximumSize, codec: some Codec<Value>
  ) async throws {
    try self.init(
      await UntypedJSONFile(configuration, sizeLimit: sizeLimit, newCodecName: codec.name), codec: codec)
  }

  /// Creates a store from its open files.
  ///
  /// - Throws: `StoreError` with `versionMismatch` if they were written with a different codec.
  init(_ file: UntypedJSONFile, codec: some Codec<Value>) throws {
    contents = file.contents
    writer = file.writer
    var information = writer.information
    information.noteEncryption(by: codec)
    self.information = information
    coder = JSONValueCoder(codec: codec, store: information.name)
    codecName = try coder.codecRecord.name(replacing: file.codecName, during: .open, store: information.name)
  }

  /// Opens a store of `Codable` values, with `JSONCodec`.
  ///
  /// - Parameters:
  ///   - path: The path of the document; see ``init(path:codec:durability:access:createsIfMissing:fileSystem:)``.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its files. Defaults to `StoreAccess.readWrite`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create the document if it is missing. Defaults to
  ///     `true`. A read-only store never creates it.
  /// - Throws: The same errors as ``init(path:codec:durability:access:createsIfMissing:fileSystem:)``.
  public convenience init(
    path: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws where Value: Codable {
    try await self.init(
      path: path, codec: JSONCodec<Value>(), durability: durability, access: access, createsIfMissing: createsIfMissing)
  }

  /// Opens a store in the folder where the platform expects an application to store its data.
  ///
  /// On Linux, this is `$XDG_DATA_HOME/PROCESS`. It defaults to `~/.local/share/PROCESS`. On Apple platforms, it is the
  /// bundle's folder in `Application Support`, or in `Caches` on tvOS. If the folder is missing, it is created with
  /// permissions 0700.
  ///
  /// ```swift
  /// let settings = try await JSONFileStore<Settings>(name: "settings")
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the document, without `.json`.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its files. Defaults to `StoreAccess.readWrite`.
  /// - Throws: `StoreError`: `invalidArgument` if the name is empty, begins with a dot, or contains a slash or a NUL;
  ///   otherwise the same errors as ``init(path:codec:durability:access:createsIfMissing:fileSystem:)``.
  public convenience init(
    name: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite
  ) async throws where Value: Codable {
    guard !name.isEmpty, !name.hasPrefix("."), !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }) else {
      throw StoreError(
        .invalidArgument, during: .open, store: name,
        message: "the store name must not be empty, begin with a dot, or contain a slash or a NUL")
    }
    try await self.init(
      StoreFileConfiguration(
        path: FilePaths.join(ApplicationDataFolder.current, "\(name).json"), durability: durability, access: access,
        createsIfMissing: true, createsFolder: true, fileSystem: POSIXFileSystem()),
      codec: JSONCodec<Value>())
  }

  // MARK: Reading

  /// Returns the value of a key.
  ///
  /// The value is decoded on the caller's executor, whatever its size.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` if damage hides the value; `corrupted` or `undecodable` if it
  ///   cannot be decoded; `closed`.
  public func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    return try reporting(for: .value, key) {
      try contents.read {
        try $0.value(forKey: key)
      } then: { text in
        try text.map { try coder.value(of: $0, forKey: key, during: .value) }
      }
    }
  }

  /// Returns the values of several keys from one consistent snapshot.
  ///
  /// More than 64 values, or more than 64 KiB of text, are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` if damage hides a value; `corrupted` or `undecodable` if one
  ///   cannot be decoded; `closed`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try read(for: .values) { entries in
        try keys.map { key in
          guard let text = try reporting(for: .values, key, { .some(try entries.value(forKey: key)) }) else {
            return nil
          }
          try allowance.take(text.count)
          return try coder.value(of: text, forKey: key, during: .values)
        }
      }
    }
  }

  /// Returns the first entries of a range from one consistent snapshot.
  ///
  /// If the limit is above 64, or the entries have more than 64 KiB of text, they are decoded off the caller's actor.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `corrupted` if damage hides a part of the
  ///   range; `corrupted` or `undecodable` if a value cannot be decoded; `closed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await BulkWork.run(atMost: limit) { [self] allowance in
      try read(for: .entries) { entries in
        let texts = entries.map.entries(in: range, limit: limit, order: order)
        try entries.checkScan(
          of: range, limit: limit, found: texts.count, upTo: texts.last?.key, order: order)
        return try texts.map { entry in
          try allowance.take(entry.value.count)
          return StoreEntry(
            key: entry.key, value: try coder.value(of: entry.value, forKey: entry.key, during: .entries))
        }
      }
    }
  }

  /// Returns the first keys of a range from one consistent snapshot.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `corrupted` if damage hides a part of the
  ///   range; `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try read(for: .keys) { entries in
      let keys = entries.map.keys(in: range, limit: limit, order: order)
      try entries.checkScan(of: range, limit: limit, found: keys.count, upTo: keys.last, order: order)
      return keys
    }
  }

  /// Returns the number of entries in a range.
  ///
  /// - Throws: `StoreError`: `corrupted` if damage hides a part of the range; `closed`.
  public func count(in range: KeyRange) throws -> Int {
    try read(for: .count) { entries in
      try entries.checkScan(of: range, limit: .max, found: 0, upTo: nil, order: .ascending)
      return entries.map.count(in: range)
    }
  }

  /// Reads from a snapshot, so a long scan does not block other callers.
  private func read<Result>(for operation: StoreOperation, _ body: (JSONEntries) throws -> Result) throws -> Result {
    try reporting(for: operation) { try contents.read(\.self, then: body) }
  }

  /// Runs a read and converts its errors to store errors.
  ///
  /// A result of `nil` means that the store is closed.
  private func reporting<Result>(
    for operation: StoreOperation, _ key: StoreKey? = nil, _ body: () throws -> Result?
  ) throws -> Result {
    do {
      guard let result = try body() else { throw information.closedError(for: operation) }
      return result
    } catch let error as JSONEntries.Hidden {
      throw StoreError(
        .corrupted, during: operation, store: information.name, key: key,
        message: "the requested entries are in a damaged part of the files; run verify to locate the damage",
        underlying: error)
    }
  }

  // MARK: Writing

  /// Applies a batch of changes atomically; see `DataStore.apply(_:)`.
  ///
  /// More than 64 values, or more than 64 KiB of text, are encoded off the caller's actor. A small buffered write runs on the
  /// caller's thread, unless the caller is on the main actor or the store is in use.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    let texts = try await coder.texts(of: changes)
    let codecName = codecName
    let write = { @Sendable (file: inout JSONFile) in try file.write(texts, codecName: codecName, during: .apply) }
    let isWritten: Void? = try writer.writeInPlace(if: { $0.canAppend(texts, codecName: codecName) }) { writer in
      try writer.write(.apply, write)
    }
    if isWritten == nil { try await writer.write(.apply, write) }
  }

  /// Reads, changes and writes back the values of several keys atomically; see `DataStore.update(deciding:_:)`.
  ///
  /// `body` runs on the thread of the store's writer. If it assigns nothing, or only values that are stored already, nothing is written.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let (coder, codecName, contents) = (coder, codecName, contents)
    return try await writer.write(.update) { file in
      let texts = contents.look { entries in keys.map { entries.map[$0] } }
      let (changes, result) = try coder.update(keys, texts, deciding: body)
      try file.write(changes, codecName: codecName, during: .update)
      return result
    }
  }

  /// Flushes all previous writes to disk, so they survive power loss, and folds the journal if it has grown large.
  ///
  /// - Throws: `StoreError`: `closed`; `ioFailed`; `full`.
  public func synchronize() async throws {
    try await writer.run(.synchronize) { try $0.synchronize() }
  }

  /// Waits for running operations, folds the journal into the document, and releases the lock.
  ///
  /// - Throws: `StoreError`: `ioFailed`; `full`. The store is closed even if an error is thrown, and all changes are
  ///   in the journal.
  public func close() async throws {
    await writer.stopReading()
    try await writer.close { try $0.close() }
  }
}

extension JSONFileStore: MaintainableStore {
  /// Returns statistics about the store; see `MaintainableStore/storeStatistics()`.
  public func storeStatistics() async throws -> StoreStatistics {
    try await writer.run(.statistics) { $0.statistics() }
  }

  /// Reads and checks all entries; see `MaintainableStore/verify()`.
  public func verify() async throws -> VerificationReport {
    try await writer.run(.verify) { [coder] file in
      try file.verify { key, text in coder.problem(in: text, forKey: key) }
    }
  }

  /// Folds the journal into the document; see `MaintainableStore/compact()`.
  public func compact() async throws {
    let information = information
    try await writer.run(.compact) { file in
      try information.checkWritable(for: .compact)
      try file.fold(during: .compact)
    }
  }

  /// Writes a complete copy of the store; see `MaintainableStore/backup(to:compacting:)`.
  public func backup(to path: String, compacting: Bool) async throws {
    // A document has no free space to omit.
    try await writer.run(.backup) { try $0.backup(to: path) }
  }
}

/// A provider that opens ``JSONFileStore``s for `StoreRegistry`, for URLs such as `json:users.json`.
///
/// ```swift
/// let registry = StoreRegistry(providers: [JSONFileStoreProvider()])
/// let users = try await registry.open("json:users.json", codec: .json(User.self))
/// ```
public struct JSONFileStoreProvider: StoreProvider {
  /// Creates the provider.
  public init() {}

  /// The scheme `json`.
  public var scheme: String { "json" }

  /// A one-line description of the stores.
  public var summary: String { "one readable JSON document at a path" }

  /// The default codec of new stores, `json`.
  public var codecName: String { "json" }

  /// Opens the store whose document is at the path in a URL.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the path is empty; the errors of opening a ``JSONFileStore``.
  public func open(
    _ url: StoreURL, options: StoreOptions, newCodecName: String?
  ) async throws -> some UntypedStore {
    try await UntypedJSONFile(StoreFileConfiguration(url, options), newCodecName: newCodecName ?? codecName)
  }

  /// Returns the files of the store that a URL names, whether or not they exist.
  ///
  /// - Parameter url: The URL, such as `json:users.json`.
  public func files(of url: StoreURL) -> StoreFileSet { JSONFile.files(at: url.location) }
}

/// An open JSON file whose type of values is not chosen yet.
struct UntypedJSONFile: UntypedStore {
  let contents = SharedContent(JSONEntries())
  let writer: FileWriter<JSONFile>
  let codecName: String

  /// Opens the files; see ``JSONFileStore``.
  init(
    _ configuration: StoreFileConfiguration, sizeLimit: Int64 = JSONFile.maximumSize, newCodecName: String
  ) async throws {
    let contents = contents
    writer = try await FileWriter(label: "Larder.JSONFileStore", configuration, content: contents) {
      try JSONFile.open(configuration, contents: contents, sizeLimit: sizeLimit, newCodecName: newCodecName)
    }
    codecName = await writer.file.codecName
  }

  func typed<Value: Sendable>(codec: some Codec<Value>) throws -> AnyDataStore<Value> {
    AnyDataStore(try JSONFileStore(self, codec: codec))
  }
}
