public import Larder
public import LarderFiles

/// A store in one readable file: a JSON document that `jq` reads and a person can edit.
///
/// ```swift
/// let store = try await JSONFileStore<User>(path: "users.json")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try store.value(forKey: "user:1")
/// try await store.close()
/// ```
///
/// At rest the file is `{"larder":2,"generation":1,"entries":{…},"written":{…}}`, one entry on a line, keys in order. A
/// write does not rewrite it: it appends a line to a journal beside it, `users.json.journal`, which is folded into the
/// document on ``close()`` and when it has grown large. `Docs/JSONFileStore.md` has the format in full.
///
/// Everything is held in memory, as text; a value is decoded each time it is read, where the caller is, many or large ones
/// on the cooperative pool (`Docs/Concurrency.md`). Reads never wait for the disk. Writes run one after another on a thread of the store's own.
///
/// ## Editing by hand
///
/// Edit the document only while the store is closed and no journal lies beside it (a crash leaves one; opening and closing
/// the store once folds it). If both an edited document and a journal are found, the journal wins for the keys that it
/// names: its changes were acknowledged. A document that is not JSON, or has a key twice, is refused with line and column,
/// and left as it is. So is one whose bytes changed without an edit: Larder keeps checksums in the member `written`, which
/// you may leave as it is or delete.
///
/// ## Reading only
///
/// With ``StoreAccess/readOnly`` the store leaves every file as it is, works on a read-only mount, and opens a damaged
/// document too: entries that can be read are returned, and what damage hides throws `corrupted`.
///
/// ## Keys
///
/// A key that is not UTF-8 is written as `keyBytes:` and its bytes in hexadecimal, and so is a text that begins with
/// `keyBytes:`.
///
/// ## Sharing
///
/// One object in one process has the file open, guarded by a lock on `users.json.lock`. Symbolic links are resolved
/// first; a file with several hard links is refused.
public final class JSONFileStore<Value: Sendable>: DataStore {
  /// What the store is called, what its acknowledgement means, and its maintenance.
  public let information: StoreInformation

  private let writer: JSONFileWriter
  private let coder: JSONValueCoder<Value>

  private var contents: JSONFileContents { writer.contents }

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - path: The document. Its folder must exist. The file is created with permissions 0600, and keeps those that it has.
  ///   - codec: Turns values into bytes and back. Where what it writes is not JSON, values stand as strings in base64.
  ///   - durability: What happens before a write returns; defaults to ``Durability/synced``.
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``.
  ///   - createsIfMissing: Whether a missing document is created; defaults to `true`. A store that only reads never does.
  ///   - fileSystem: Where the files are; defaults to the real file system.
  /// - Throws: ``StoreError``: `locked` if another has it open; `corrupted` with line and column if the document or
  ///   its journal is damaged, or if they do not belong together; `unrecognizedFormat` if the file is no store;
  ///   `versionMismatch` if it was written by a newer version or with another codec; `notFound`; `unsupported` if it has
  ///   several hard links, is mounted by itself, or is larger than 4 GiB; `notPermitted`; `full`; `ioFailed`. The files
  ///   are left as they are then.
  public convenience init(
    path: String, codec: some Codec<Value>, durability: Durability = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, fileSystem: some FileSystem = POSIXFileSystem()
  ) async throws {
    try await self.init(
      path: path, durability: durability, access: access, createsIfMissing: createsIfMissing, fileSystem: fileSystem
    ) { _ in codec }
  }

  /// Opens a store with a codec that is chosen by the name of the one that it was written with.
  init(
    path: String, durability: Durability, access: StoreAccess, createsIfMissing: Bool, createsFolder: Bool = false,
    sizeLimit: Int64 = JSONFile.maximumSize, fileSystem: some FileSystem = POSIXFileSystem(),
    choosing codec: @escaping @Sendable (_ name: String) throws -> any Codec<Value>
  ) async throws {
    let name = FilePaths.split(path).name
    var information = StoreInformation(
      name: name, acknowledgement: Acknowledgement(durability), sharing: .exclusive, access: access)
    let configuration = StoreFileConfiguration(
      name: name, path: path, durability: durability, access: access, createsIfMissing: createsIfMissing,
      createsFolder: createsFolder, fileSystem: fileSystem)
    let (writer, codec) = try await JSONFileWriter.open(
      configuration, information: information, sizeLimit: sizeLimit, choosing: codec)
    let coder = JSONValueCoder(codec: codec, store: name)
    self.writer = writer
    information.maintenance = JSONFileMaintenance(writer: writer, coder: coder)
    self.coder = coder
    self.information = information
  }

  /// Opens a store of `Codable` values, with ``JSONCodec``.
  ///
  /// - Parameters:
  ///   - path: The document; see ``init(path:codec:durability:access:createsIfMissing:fileSystem:)``.
  ///   - durability: What happens before a write returns; defaults to ``Durability/synced``.
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``.
  ///   - createsIfMissing: Whether a missing document is created; defaults to `true`. A store that only reads never does.
  /// - Throws: As ``init(path:codec:durability:access:createsIfMissing:fileSystem:)``.
  public convenience init(
    path: String, durability: Durability = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws where Value: Codable {
    try await self.init(
      path: path, codec: JSONCodec<Value>(), durability: durability, access: access, createsIfMissing: createsIfMissing)
  }

  /// Opens a store in the folder where the platform wants an application to keep its data.
  ///
  /// On Linux that is `$XDG_DATA_HOME/PROCESS`, by default `~/.local/share/PROCESS`; on Apple platforms the folder of the
  /// bundle in `Application Support`, on tvOS in `Caches`. The folder is made, with permissions 0700, where it is missing.
  ///
  /// - Parameters:
  ///   - name: The name of the document, without `.json`.
  ///   - durability: What happens before a write returns; defaults to ``Durability/synced``.
  ///   - access: Whether the store may write; defaults to ``StoreAccess/readWrite``.
  /// - Throws: ``StoreError``: `invalidArgument` if the name is empty, begins with a dot, or has a slash or a NUL;
  ///   otherwise as ``init(path:codec:durability:access:createsIfMissing:fileSystem:)``.
  public convenience init(
    name: String, durability: Durability = .synced, access: StoreAccess = .readWrite
  ) async throws where Value: Codable {
    guard !name.isEmpty, !name.hasPrefix("."), !name.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 == 0 }) else {
      throw StoreError(
        .invalidArgument, during: .open, store: name,
        message: "the name of a store is not empty, does not begin with a dot, and has no slash and no NUL")
    }
    try await self.init(
      path: FilePaths.join(ApplicationDataFolder.current, "\(name).json"), durability: durability,
      access: access, createsIfMissing: true, createsFolder: true
    ) { _ in JSONCodec<Value>() }
  }

  // MARK: Reading

  /// Reads the value of one key.
  ///
  /// It is decoded where the caller is, however large it is.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` if the value cannot be decoded, or damage hides it; `closed`.
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

  /// Reads the values of several keys as they are at one moment.
  ///
  /// More than 64, or more than 64 KiB of text, are decoded off the caller's actor.
  ///
  /// - Throws: ``StoreError``: `invalidKey`; `corrupted` if a value cannot be decoded, or damage hides it; `closed`.
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

  /// Reads the first entries of a range as they are at one moment.
  ///
  /// If the limit is above 64, or the entries have more than 64 KiB of text, they are decoded off the caller's actor.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` if the limit is negative; `corrupted` if a value cannot be decoded, or
  ///   damage hides a part of the range; `closed`.
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

  /// Reads the first keys of a range as they are at one moment.
  ///
  /// - Throws: ``StoreError``: `invalidArgument` if the limit is negative; `corrupted` if damage hides a part of the range;
  ///   `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try read(for: .keys) { entries in
      let keys = entries.map.keys(in: range, limit: limit, order: order)
      try entries.checkScan(of: range, limit: limit, found: keys.count, upTo: keys.last, order: order)
      return keys
    }
  }

  /// Counts the entries of a range.
  ///
  /// - Throws: ``StoreError``: `corrupted` if damage hides a part of the range; `closed`.
  public func count(in range: KeyRange) throws -> Int {
    try read(for: .count) { entries in
      try entries.checkScan(of: range, limit: .max, found: 0, upTo: nil, order: .ascending)
      return entries.map.count(in: range)
    }
  }

  /// Reads from a snapshot, so that a long scan holds up no one.
  private func read<Result>(for operation: StoreOperation, _ body: (JSONEntries) throws -> Result) throws -> Result {
    try reporting(for: operation) { try contents.readSnapshot(body) }
  }

  /// Makes errors of the store of what a read meets: `nil` says that the store is closed.
  private func reporting<Result>(
    for operation: StoreOperation, _ key: StoreKey? = nil, _ body: () throws -> Result?
  ) throws -> Result {
    do {
      guard let result = try body() else { throw information.closedError(for: operation) }
      return result
    } catch let error as JSONEntries.Hidden {
      throw StoreError(
        .corrupted, during: operation, store: information.name, key: key,
        message: "a damaged part of the files hides what was asked for; verify says where they are damaged",
        underlying: error)
    }
  }

  // MARK: Writing

  /// Makes several changes, all or none of them; see ``DataStore/apply(_:)``.
  ///
  /// More than 64 values, or more than 64 KiB of text, are encoded off the caller's actor.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    try await writer.apply(await coder.texts(of: changes))
  }

  /// Reads, changes and writes back the values of some keys as one step; see ``DataStore/update(_:_:)``.
  ///
  /// `body` runs on the thread of the store's writer. If it leaves every value as it was, nothing is written.
  public func update<Result: Sendable>(
    _ keys: [StoreKey],
    _ body: @escaping @Sendable (inout [Value?]) throws -> Result
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let (coder, information) = (coder, information)
    return try await writer.update(keys) { try coder.update(keys, $0, checks: information, body) }
  }

  /// Makes everything written before durable against power loss, and folds the journal where it has grown large.
  ///
  /// - Throws: ``StoreError``: `closed`; `ioFailed`; `full`.
  public func synchronize() async throws {
    try await writer.synchronize()
  }

  /// Waits for running operations, folds the journal into the document, and lets others open it.
  ///
  /// - Throws: ``StoreError``: `ioFailed`; `full`. The store is closed all the same, and everything is in the journal.
  public func close() async throws {
    try await writer.close()
  }
}

extension JSONFileStore: CustomStringConvertible {
  /// The store's kind and name.
  public var description: String { "JSONFileStore(\(information.name))" }
}
